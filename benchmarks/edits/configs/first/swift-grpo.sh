CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 NPROC_PER_NODE=7 swift rlhf \
  --rlhf_type grpo --model Qwen/Qwen2.5-7B --reward_funcs accuracy --use_vllm true \
  --vllm_gpu_memory_utilization 0.7 --vllm_max_model_len 8192 --train_type lora --torch_dtype bfloat16 \
  --dataset AI-MO/NuminaMath-TIR --max_completion_length 4096 --per_device_train_batch_size 4 \
  --num_generations 7 --deepspeed zero3
