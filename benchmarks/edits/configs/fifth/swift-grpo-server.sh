CUDA_VISIBLE_DEVICES=0,1,2,3,4,5 NPROC_PER_NODE=6 swift rlhf \
  --rlhf_type grpo --model Qwen/Qwen2.5-7B --use_vllm true --vllm_mode server --vllm_server_host 127.0.0.1 --vllm_server_port 8000 \
  --train_type full --dataset AI-MO/NuminaMath-TIR --max_completion_length 4096 --num_generations 12 \
  --per_device_train_batch_size 4 --gradient_accumulation_steps 4 --deepspeed zero3 --beta 0.04
