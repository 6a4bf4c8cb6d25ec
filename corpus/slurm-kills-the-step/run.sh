#!/bin/bash
srun python run_clm.py \
  --model_name_or_path Qwen/Qwen2.5-0.5B \
  --train_file corpus.txt --do_train \
  --per_device_train_batch_size 16 --block_size 1024 \
  --dataloader_num_workers 32 \
  --bf16 --output_dir out
