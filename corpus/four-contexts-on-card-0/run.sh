#!/bin/bash
torchrun --nproc_per_node 4 sft.py \
  --model_name_or_path Qwen/Qwen2.5-3B \
  --use_peft --lora_r 16 \
  --torch_dtype bfloat16 --bf16 \
  --per_device_train_batch_size 2 \
  --max_seq_length 2048 \
  --output_dir out
