#!/bin/bash
BS=8
llamafactory-cli train \
    --stage sft --do_train true \
    --model_name_or_path Qwen/Qwen3-8B \
    --finetuning_type freeze --freeze_trainable_layers 4 \
    --dataset alpaca_en --template qwen3 \
    --cutoff_len 8192 --per_device_train_batch_size $BS \
    --gradient_accumulation_steps $((64 / BS / 4)) \
    --output_dir out --bf16 true --optim adamw_torch
