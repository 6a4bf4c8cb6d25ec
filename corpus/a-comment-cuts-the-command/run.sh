#!/bin/bash
MODEL=internlm/internlm2-base-7b
accelerate launch finetune.py \
    --model_name_or_path $MODEL \
    --train_file data/train.jsonl \
    --per_device_train_batch_size 1 \
    --learning_rate 1e-5 \
    # --warmup_steps 100 \
    --gradient_checkpointing true \
    --bf16 true \
    --optim adamw_bnb_8bit \
    --output_dir out
