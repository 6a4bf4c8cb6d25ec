#!/bin/bash
deepspeed --num_gpus 8 pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 \
  --micro-batch-size 8 --global-batch-size 256 --train-iters 10000 --lr 2e-4 --fp16 --data-impl mmap \
  --train-weighted-split-paths-path train.txt --deepspeed --deepspeed_config ds.json --zero-stage 1
