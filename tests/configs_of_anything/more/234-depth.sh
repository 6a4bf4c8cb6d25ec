#!/bin/bash
now=$(date +"%Y%m%d")
epoch=60
bs=3
gpus=4
lr=0.000005
img_size=518
python3 -m torch.distributed.launch --nproc_per_node=$gpus --nnodes 1 train.py --epoch $epoch --encoder vitl --bs $bs --lr $lr --save-path exp --dataset hypersim --img-size $img_size --port 20596
