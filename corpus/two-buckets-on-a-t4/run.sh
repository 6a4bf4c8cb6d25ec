#!/bin/bash
deepspeed --num_gpus 4 finetune.py \
  --model_name_or_path Qwen/Qwen2.5-1.5B \
  --per_device_train_batch_size 1 \
  --gradient_accumulation_steps 8 \
  --model_max_length 1024 \
  --gradient_checkpointing True \
  --fp16 True \
  --deepspeed ds.json \
  --output_dir out
