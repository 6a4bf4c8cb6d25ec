#!/bin/sh
export TOKENIZERS_PARALLELISM=false
accelerate launch --num_processes 2 pretrain.py \
  --train_file data/all.jsonl \
  --max_seq_length 512 \
  --per_device_train_batch_size 128 \
  --num_train_epochs 5 \
  --learning_rate 2e-4
