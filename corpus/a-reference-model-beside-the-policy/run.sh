#!/bin/bash
accelerate launch --config_file zero2.yaml dpo.py \
  --model_name_or_path Qwen/Qwen2.5-3B-Instruct \
  --torch_dtype bfloat16 \
  --dataset_name trl-lib/ultrafeedback_binarized \
  --per_device_train_batch_size 2 \
  --gradient_accumulation_steps 4 \
  --gradient_checkpointing true \
  --max_length 2048 \
  --bf16 true \
  --output_dir out
