#!/bin/bash
# Pretraining of a 7B model in eight pipeline stages of two chunks each.
export CUDA_DEVICE_MAX_CONNECTIONS=1
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True

torchrun --nproc_per_node 8 --nnodes 2 --node_rank $NODE_RANK --master_addr $MASTER_ADDR --master_port 6000 \
    pretrain_gpt.py \
    --tensor-model-parallel-size 2 \
    --pipeline-model-parallel-size 8 \
    --sequence-parallel \
    --num-layers-per-virtual-pipeline-stage 2 \
    --num-layers 32 \
    --hidden-size 4096 \
    --num-attention-heads 32 \
    --seq-length 4096 \
    --max-position-embeddings 4096 \
    --micro-batch-size 2 \
    --global-batch-size 256 \
    --bf16 \
    --cross-entropy-loss-fusion \
    --use-distributed-optimizer \
    --recompute-granularity selective \
    --train-iters 100000 \
    --lr 3.0e-4
