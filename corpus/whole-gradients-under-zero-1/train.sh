#!/bin/bash
deepspeed --num_gpus 8 finetune.py \
  --model_name_or_path Qwen/Qwen2.5-7B \
  --data_path data/chat.jsonl \
  --model_max_length 2048 \
  --per_device_train_batch_size 1 \
  --gradient_accumulation_steps 16 \
  --gradient_checkpointing True \
  --bf16 True \
  --deepspeed ds_zero1.json \
  --output_dir out
