#!/bin/bash
torchrun --nproc_per_node 8 pretrain_gpt.py \
  --tensor-model-parallel-size 1 --pipeline-model-parallel-size 1 \
  --num-layers 40 --hidden-size 5120 --ffn-hidden-size 13824 --num-attention-heads 40 \
  --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 1 --global-batch-size 64 \
  --vocab-size 32000 --untie-embeddings-and-output-weights --swiglu --disable-bias-linear \
  --normalization RMSNorm --use-rotary-position-embeddings --bf16 --train-iters 1000
