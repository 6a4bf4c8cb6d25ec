#!/bin/bash
#SBATCH --gpus=1

for batch_size in 384 # 96 192 384
do
    python3 train_gru.py \
        --workers 18 \
        --batch-size ${batch_size} \
        --epochs 30 \
        --amp \
        > out/${batch_size}.log 2>&1
done
