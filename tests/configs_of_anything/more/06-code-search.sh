#!/bin/bash
OUT=./out
BS=4
python -m torch.distributed.launch \
    --nproc_per_node=4 \
    run_siamese.py \
    --data_folder ../data/train \
    --output_dir $OUT \
    --per_gpu_train_batch_size $BS \
    --per_gpu_eval_batch_size 10 \
    --max_seq_length 384 \
    --model_path microsoft/codebert-base \
    --gradient_accumulation_steps 12 \
    --num_train_epochs 2 \
    --learning_rate 3e-5 2>&1 | tee run.log
