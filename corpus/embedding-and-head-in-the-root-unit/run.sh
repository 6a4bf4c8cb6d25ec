#!/bin/bash
accelerate launch --config_file fsdp.yaml sft.py \
  --model_name_or_path meta-llama/Meta-Llama-3-8B \
  --dataset_name trl-lib/Capybara \
  --per_device_train_batch_size 1 \
  --gradient_accumulation_steps 1 \
  --gradient_checkpointing true \
  --max_seq_length 4096 \
  --bf16 true \
  --use_liger_kernel true \
  --output_dir out
