deepspeed --num_gpus 2 stage3.py \
  --output_dir out/stage3 \
  --per_device_train_batch_size 8 \
  --gradient_accumulation_steps 4 \
  --deepspeed zero2.json \
  --num_train_epochs 3
