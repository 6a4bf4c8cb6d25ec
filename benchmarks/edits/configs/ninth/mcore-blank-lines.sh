#!/bin/bash
export MEGATRON_LM_PATH='/srv/omni/Megatron-LM/' 
export HF_HUB_OFFLINE=1
export PYTHONPATH=$MEGATRON_LM_PATH:$PYTHONPATH 
export PYTORCH_CUDA_ALLOC_CONF='expandable_segments:True'

NPROC_PER_NODE=4 \
CUDA_VISIBLE_DEVICES=0,1,2,3 \
megatron sft \
    --model /srv/omni/Qwen3-Omni-30B-A3B-Instruct \
    --load_safetensors true \
    --save_safetensors true \
    \
    --dataset 'train.jsonl' \
    --val_dataset 'val.jsonl' \
    \
    --tensor_model_parallel_size 1 \
    --sequence_parallel false \
    \
    --freeze_vit true \
    --freeze_aligner true \
    \
    --micro_batch_size 1 \
    --global_batch_size 8 \
    \
    --tensor_model_parallel_size 1 \
    --sequence_parallel false \
    --expert_model_parallel_size 4 \
    \
    --train_type lora --lora_rank 16 --lora_alpha 32 \
    --lr 1e-4 \
    --max_length 8192 \
    --save out/omni
