#!/bin/bash
#SBATCH --gpus-per-task=2
#SBATCH --mem-per-gpu=32G
#SBATCH --ntasks-per-node=1
torchrun --nproc_per_node=2 train.py --config-name=zinc batch_size_per_device=320 max_seq_length=96 bf16=true grad_ckpt=true
