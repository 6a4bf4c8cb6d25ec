#!/bin/bash
python sft_vlm.py \
  --model_name_or_path Qwen/Qwen2-VL-2B-Instruct \
  --dataset_name data/floor_plans \
  --use_peft --lora_r 16 \
  --torch_dtype bfloat16 --bf16 \
  --per_device_train_batch_size 1 \
  --gradient_checkpointing \
  --use_liger \
  --output_dir out
