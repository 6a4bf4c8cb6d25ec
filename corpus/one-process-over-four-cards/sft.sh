CUDA_VISIBLE_DEVICES=0,1,2,3 swift sft --model Qwen/Qwen2.5-72B-Instruct \
  --train_type lora --dataset x --per_device_train_batch_size 1 \
  --gradient_accumulation_steps 16 --max_length 4096 --torch_dtype bfloat16 \
  --target_modules all-linear --lora_rank 8 --output_dir output
