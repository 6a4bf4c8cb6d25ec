export ACCELERATE_LOG_LEVEL=info
accelerate launch --config_file fsdp.yaml sft.py \
    --model_name_or_path meta-llama/Llama-3.1-70B \
    --dataset_name HuggingFaceH4/ultrachat_200k \
    --per_device_train_batch_size 1 --gradient_accumulation_steps 16 \
    --max_length 8192 --bf16 --num_train_epochs 1 --output_dir out \
    --use_peft --lora_r 16 --lora_alpha 32 --lora_target_modules all-linear
