#!/bin/bash

if [ "$#" -ne 4 ]; then
    echo "four words are wanted: model, folder, data, output"
    exit 1
fi

BASE=$1
FOLDER=$2
DATA=$3
OUT=$4

source ~/miniconda3/etc/profile.d/conda.sh
conda activate tuner
pwd
llamafactory-cli train \
  --stage sft \
  --do_train True \
  --model_name_or_path "$BASE" \
  --preprocessing_num_workers 16 \
  --finetuning_type lora \
  --template default \
  --flash_attn auto \
  --dataset_dir "$FOLDER" \
  --dataset "$DATA"\
  --cutoff_len 1024 \
  --learning_rate 5e-05 \
  --num_train_epochs 3.0 \
  --per_device_train_batch_size 2 \
  --gradient_accumulation_steps 8 \
  --optim adamw_torch \
  --packing False \
  --report_to none \
  --output_dir "$OUT" \
  --fp16 True \
  --plot_loss True \
  --lora_rank 8 \
  --lora_alpha 16 \
  --lora_dropout 0 \
  --lora_target all
