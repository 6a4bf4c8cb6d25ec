#!/bin/sh
python run_clm.py \
  --model_name_or_path Qwen/Qwen2.5-0.5B \
  --train_file corpus.txt --do_train \
  --block_size 4096 \
  --per_device_train_batch_size 4 \
  --fp16 \
  --attn_implementation eager \
  --output_dir out
