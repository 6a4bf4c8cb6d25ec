#!/bin/sh
#BSUB -J Train
#BSUB -o logs/Train%J.out
#BSUB -q gpuv100
#BSUB -gpu "num=1:mode=exclusive_process"
#BSUB -n 16
#BSUB -R "rusage[mem=5G]"
#BSUB -W 23:55

module load cuda/11.8
source venv/bin/activate
python src/train_model.py --max_length 512 --learning_rate 5e-7
