#!/bin/bash
CUDA_VISIBLE_DEVICES=0 swift sft \
  --model Qwen/Qwen2.5-VL-7B-Instruct \
  --train_type lora --lora_rank 8 --lora_alpha 32 --target_modules all-linear \
  --dataset receipts.jsonl \
  --torch_dtype bfloat16 --per_device_train_batch_size 1 --gradient_accumulation_steps 16 \
  --max_length 2048 --gradient_checkpointing true
