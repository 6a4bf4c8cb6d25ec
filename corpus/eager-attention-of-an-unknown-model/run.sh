#!/bin/bash
trl sft \
  --model_name_or_path orchid-labs/orchid-6b \
  --trust_remote_code \
  --attn_implementation eager \
  --dataset_name data/chat \
  --max_seq_length 8192 \
  --per_device_train_batch_size 1 \
  --gradient_checkpointing \
  --bf16 \
  --output_dir out
