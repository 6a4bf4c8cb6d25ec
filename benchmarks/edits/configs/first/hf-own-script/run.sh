python train.py --model_name_or_path meta-llama/Llama-2-7b-hf --per_device_train_batch_size 8 --output_dir o
