#!/bin/bash
python train.py \
    --c 0 \
    --p coco \
    --batch_size 8 \
    --num_workers 12
