#!/bin/bash
python run_clm.py --model_name_or_path gpt2-xl \
  --dataset_name wikitext --dataset_config_name wikitext-2-raw-v1 \
  --per_device_train_batch_size 1 \
  --block_size 512 \
  --do_train --output_dir out
