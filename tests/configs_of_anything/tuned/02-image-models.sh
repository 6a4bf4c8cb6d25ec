#!/bin/bash
torchrun --nproc_per_node=4 train.py /data/imagenet --model vit_large_patch16_384 -b 48 --img-size 384 --epochs 90 \
  --opt adamw --lr 1e-3 --weight-decay 0.05 --amp --grad-checkpointing --grad-accum-steps 2 -j 12 --validation-batch-size 96 --torchcompile
