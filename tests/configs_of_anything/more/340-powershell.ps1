$env:CUDA_VISIBLE_DEVICES = "0"
python .\train_inpaint.py `
  --batch-size 3 `
  --resolution 768 `
  --mixed-precision fp16 `
  --epochs 12 `
  --lr 5e-6
