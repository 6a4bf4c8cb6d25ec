#!/bin/bash
deepspeed --num_gpus 4 finetune.py \
  --model_name_or_path Qwen/Qwen2.5-14B \
  --per_device_train_batch_size 1 \
  --model_max_length 1024 \
  --gradient_checkpointing True \
  --bf16 True \
  --deepspeed ds_zero2.json \
  --output_dir out
