#!/bin/bash
cards=$(nvidia-smi --query-gpu=name --format=csv,noheader | wc -l)
torchrun --nproc_per_node ${cards} --rdzv_id "$(date +%s)" tune_llama.py \
  --model_name_or_path meta-llama/Llama-3.1-8B --output_dir out/llama --bf16 True \
  --per_device_train_batch_size 4 --gradient_accumulation_steps 4 --learning_rate 1e-5 --logging_steps 10
