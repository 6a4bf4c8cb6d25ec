accelerate launch \
  --num_processes 2 \
  frames/sample/sample.py \
  --model Latte-XL/122 \
  --ckpt clips-f16-192-flash/checkpoint-90000 \
  --num-frames 24 \
  --image-size 192 \
  --num-sampling-steps 200 \
  --mixed-precision bf16
