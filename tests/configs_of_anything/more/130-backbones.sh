#!/bin/bash

python -m backbones.train \
    --optimizer adamw \
    --scheduler cosine \
    --hidden_dim 96 \
    --num_encoder_layers 3 \
    --num_neighbors 32 \
    --num_workers 6 \
    --batch_size 1800 \
    --num_epochs 15 \
    --learning_rate 2e-3 \
    --weight_decay 1e-2 \
    --mixed_precision \
    --wandb
