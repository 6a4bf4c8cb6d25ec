#!/bin/bash
deepspeed --num_gpus 2 finetune.py \
  --model_name_or_path meta-llama/Meta-Llama-3-8B \
  --per_device_train_batch_size 1 \
  --gradient_accumulation_steps 16 \
  --model_max_length 8192 \
  --gradient_checkpointing True \
  --bf16 True \
  --deepspeed ds_zero2.json \
  --output_dir out
