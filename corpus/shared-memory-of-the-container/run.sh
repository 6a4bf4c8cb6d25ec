#!/bin/bash
python run_clm.py --model_name_or_path Qwen/Qwen2.5-0.5B --train_file corpus.txt --do_train --per_device_train_batch_size 4 --dataloader_num_workers 8 --bf16 --output_dir out
