#!/bin/bash
export CUDA_DEVICE_MAX_CONNECTIONS=1
torchrun --nproc_per_node 8 pretrain_gpt.py \
  --use-mcore-models --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 \
  --group-query-attention --num-query-groups 8 --seq-length 8192 --max-position-embeddings 8192 \
  --position-embedding-type rope --swiglu --untie-embeddings-and-output-weights --disable-bias-linear \
  --micro-batch-size 2 --global-batch-size 256 --train-samples 1000000 --lr 3e-4 --bf16 \
  --tensor-model-parallel-size 2 --sequence-parallel --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 4 \
  --tokenizer-type NullTokenizer --vocab-size 128256 --mock-data
