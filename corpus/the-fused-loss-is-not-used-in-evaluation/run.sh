#!/bin/bash
torchrun --nproc_per_node 4 sft.py \
  --model_name_or_path Qwen/Qwen2.5-3B \
  --deepspeed zero3.json \
  --per_device_train_batch_size 4 \
  --per_device_eval_batch_size 4 \
  --max_seq_length 8192 \
  --eval_strategy steps --eval_steps 200 \
  --gradient_checkpointing True \
  --use_liger_kernel True \
  --bf16 True \
  --output_dir out
