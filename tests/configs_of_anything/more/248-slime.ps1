$env:CUDA_VISIBLE_DEVICES = "0"
python tools\train.py `
  --config configs\seg.yml `
  --batch_size 5 `
  --num_workers 2 `
  --iters 80000 `
  --precision fp16
