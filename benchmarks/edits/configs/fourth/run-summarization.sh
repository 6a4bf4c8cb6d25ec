#!/bin/bash
#SBATCH --gres=gpu:a100:2
torchrun --nproc_per_node=2 examples/pytorch/summarization/run_summarization.py \
    --model_name_or_path google/flan-t5-xl \
    --dataset_name cnn_dailymail --dataset_config "3.0.0" --source_prefix "summarize: " \
    --do_train --do_eval --predict_with_generate \
    --max_source_length 1024 --max_target_length 128 \
    --per_device_train_batch_size=8 --per_device_eval_batch_size=16 \
    --gradient_accumulation_steps 2 --bf16 --optim adafactor --output_dir sum
