#!/bin/bash
accelerate launch --num_processes 2 src/summarize.py \
    --model_name_or_path google/flan-t5-large \
    --do_train --do_eval \
    --eval_strategy steps --eval_steps 50 \
    --save_strategy steps --save_steps 50 \
    --load_best_model_at_end True --metric_for_best_model rougeL \
    --predict_with_generate True \
    --per_device_train_batch_size 8 --per_device_eval_batch_size 32 \
    --output_dir out
