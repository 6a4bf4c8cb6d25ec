#!/bin/bash
torchrun --nproc_per_node=1 run_sft.py \
  --model_name_or_path mistralai/Mistral-7B-v0.1 \
  --bf16 True --output_dir out \
  --num_train_epochs 3 --per_device_train_batch_size 1 --gradient_accumulation_steps 16 \
  --learning_rate 1e-5 --save_strategy epoch
