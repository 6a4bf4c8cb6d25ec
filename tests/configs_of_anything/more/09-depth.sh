#!/bin/bash
max_len=640
batch_size=14
workers=3

python -u main.py --max_len ${max_len} --bs ${batch_size} --n_workers $workers --lr 2e-4 --epochs 30 | tee log.txt
