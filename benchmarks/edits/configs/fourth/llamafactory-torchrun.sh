#!/bin/bash
NPROC=$(nvidia-smi --list-gpus | wc -l)
ACC=$((64 / NPROC / 4))
FORCE_TORCHRUN=1 NNODES=1 NPROC_PER_NODE=$NPROC llamafactory-cli train \
    --stage sft --do_train True \
    --model_name_or_path meta-llama/Meta-Llama-3-8B-Instruct \
    --finetuning_type full \
    --template llama3 --dataset alpaca_en_demo --cutoff_len 4096 \
    --per_device_train_batch_size 4 --gradient_accumulation_steps $ACC \
    --learning_rate 1e-5 --num_train_epochs 2 --bf16 True \
    --deepspeed examples/deepspeed/ds_z2_config.json \
    --output_dir saves/llama3-full --overwrite_output_dir --logging_steps 5
