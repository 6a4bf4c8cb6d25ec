#!/bin/bash
accelerate launch --config_file zero3.yaml sft.py \
  --model_name_or_path meta-llama/Meta-Llama-3-70B \
  --torch_dtype bfloat16 \
  --per_device_train_batch_size 1 \
  --gradient_checkpointing true \
  --max_seq_length 2048 \
  --bf16 true \
  --output_dir out
