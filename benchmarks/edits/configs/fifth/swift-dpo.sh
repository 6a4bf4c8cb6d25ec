swift rlhf --rlhf_type dpo --model Qwen/Qwen2.5-14B-Instruct --train_type full \
  --dataset hjh0119/shareAI-Llama3-DPO-zh-en-emoji --torch_dtype bfloat16 --max_length 2048 \
  --per_device_train_batch_size 2 --gradient_accumulation_steps 8 --rpo_alpha 0.1 --output_dir output
