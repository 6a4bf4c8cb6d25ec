accelerate launch --config_file acc.yaml sft.py --model_name_or_path Qwen/Qwen3-8B --dataset_name d --output_dir o --per_device_train_batch_size 4 --max_length 8192
