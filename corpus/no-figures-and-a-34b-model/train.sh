#!/bin/bash
deepspeed --num_gpus 8 src/train_bash.py \
    --stage dpo \
    --finetuning_type lora \
    --per_device_train_batch_size 1 \
    --per_device_eval_batch_size 1 \
    --gradient_accumulation_steps 1 \
    --model_name_or_path 01-ai/Yi-34B \
    --do_train True
