NPROC_PER_NODE=8 \
swift rlhf \
    --rlhf_type grpo \
    --model Qwen/Qwen2.5-72B-Instruct \
    --train_type lora \
    --torch_dtype bfloat16 \
    --attn_impl flash_attn \
    --dataset data/math.jsonl \
    --use_vllm true \
    --vllm_server_host 10.1.0.7 \
    --num_generations 4 \
    --max_length 2048 \
    --max_completion_length 1024 \
    --per_device_train_batch_size 1 \
    --gradient_accumulation_steps 4 \
    --deepspeed zero3
