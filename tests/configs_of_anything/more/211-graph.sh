#!/usr/bin/env bash
n_gpu=2
epoch=100
batch_size=48
CUDA_VISIBLE_DEVICES=0,1 fairseq-train --user-dir ./graphormer --num-workers 12 --ddp-backend=legacy_ddp --task graph_prediction --criterion l1_loss --arch graphormer_base --optimizer adam --lr 2e-4 --fp16 --batch-size $batch_size --update-freq 2
