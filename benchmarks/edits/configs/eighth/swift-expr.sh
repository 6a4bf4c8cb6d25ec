#!/bin/bash
nvidia-smi
source /pool/miniconda3/etc/profile.d/conda.sh
conda activate vl

cd /pool/ms-swift

nproc_per_node=8
# CUDA_VISIBLE_DEVICES= \
NPROC_PER_NODE=$nproc_per_node \
PYTORCH_CUDA_ALLOC_CONF='expandable_segments:True' \
VIDEO_MAX_PIXELS=157456 \
VIDEO_MAX_TOKEN_NUM=768 \
IMAGE_MAX_TOKEN_NUM=1024 \
FPS_MAX_FRAMES=64 \
swift sft \
    --model /pool/models/Qwen3-VL-4B-Instruct \
    --dataset /pool/data/train.jsonl \
    --val_dataset /pool/data/test.jsonl \
    --output_dir output/vl-rslora \
    --add_version false \
    --torch_dtype bfloat16 \
    --train_type lora \
    --freeze_vit false \
    --freeze_llm false \
    --freeze_aligner false \
    --lora_rank 32 \
    --lora_alpha 64 \
    --target_modules all-linear \
    --use_rslora true \
    --learning_rate 2e-4 \
    --num_train_epochs 8 \
    --per_device_train_batch_size 8 \
    --per_device_eval_batch_size 1 \
    --gradient_accumulation_steps $(expr 16 / $nproc_per_node) \
    --max_length 16384 \
    --warmup_ratio 0.05 \
    --dataloader_num_workers 8 \
    --deepspeed zero2
