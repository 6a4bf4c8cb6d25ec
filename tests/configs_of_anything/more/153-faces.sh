#!/usr/bin/env bash
#SBATCH --job-name=faces
#SBATCH --gres=gpu:1
#SBATCH --cpus-per-task=6

srun python -m pretrain /scratch/faces -b 88
