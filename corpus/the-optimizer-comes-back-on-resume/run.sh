#!/bin/bash
python run_clm.py \
  --model_name_or_path Qwen/Qwen2.5-3B \
  --train_file corpus.txt --do_train \
  --block_size 2048 \
  --per_device_train_batch_size 1 \
  --gradient_checkpointing \
  --bf16 --torch_dtype float32 \
  --resume_from_checkpoint out/checkpoint-1500 \
  --output_dir out
