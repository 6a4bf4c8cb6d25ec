#!/bin/bash
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:a100:4
#SBATCH --cpus-per-task=16
#SBATCH --mem=488GB
#SBATCH --time=48:00:00

export MASTER_ADDR=$(hostname -s)
export WORLD_SIZE=4

srun python -u /scratch/me/mae_st/main_pretrain.py \
    --path_to_data_dir /scratch/me/minute/S \
    --output_dir /scratch/me/out \
    --model mae_vit_huge_patch14 \
    --resume "" \
    --batch_size_per_gpu 2 \
    --accum_iter 3 \
    --epochs 100000 \
    --num_frames 24 \
    --input_size 224 \
    --decoder_depth 4 \
    --pin_mem \
    --num_workers 14 \
    --t_patch_size 2 \
    --lr 0.0001 \
    --mask_ratio 0.9
