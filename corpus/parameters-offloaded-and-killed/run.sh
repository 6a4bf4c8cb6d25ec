#!/bin/bash
accelerate launch --config_file ds.yaml sft.py \
  --model_name_or_path Qwen/Qwen2.5-32B \
  --torch_dtype bfloat16 \
  --dataset_name trl-lib/Capybara \
  --per_device_train_batch_size 1 \
  --gradient_checkpointing true \
  --max_seq_length 2048 \
  --bf16 true \
  --output_dir out
