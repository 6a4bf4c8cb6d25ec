torchrun --nproc_per_node 4 src/train.py --stage sft --do_train \
  --model_name_or_path meta-llama/Llama-2-13b-hf --dataset d --template default \
  --finetuning_type full --output_dir out --per_device_train_batch_size 1 \
  --gradient_accumulation_steps 8 --cutoff_len 1024 --bf16
