#!/bin/bash
deepspeed --num_gpus 4 finetune.py \
  --model_name_or_path orchid-labs/orchid-22b \
  --per_device_train_batch_size 1 \
  --gradient_checkpointing True \
  --bf16 True \
  --deepspeed ds_zero3.json \
  --output_dir out
