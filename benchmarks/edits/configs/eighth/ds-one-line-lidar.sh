#!/bin/bash
cd /srv/b4/mllm
eval "$(/opt/conda/bin/conda shell.bash hook)"
conda activate b4

echo "Start: $(date)"

export WANDB_MODE=offline
export PYTHONUNBUFFERED=1
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True

MODEL_VERSION=vicuna-v1-5-7b

deepspeed --include localhost:0 --master_port 29578 vtime/train/train_mem.py     --deepspeed ./scripts/zero3.json     --lora_enable True     --model_name_or_path ./base/vicuna-v1-5-7b     --version v1     --data_path ./d/stage2.json     --feat_folder ../feats     --output_dir ./checkpoints/v-$MODEL_VERSION-full     --bf16 True     --num_train_epochs 3     --per_device_train_batch_size 8     --gradient_accumulation_steps 16     --evaluation_strategy no     --save_strategy steps     --save_steps 200     --learning_rate 1e-4     --freeze_mm_mlp_adapter True     --lora_r 64     --lora_alpha 128     --weight_decay 0.     --lr_scheduler_type cosine     --logging_steps 1     --model_max_length 2048     --gradient_checkpointing True     --dataloader_num_workers 4     --lazy_preprocess True
