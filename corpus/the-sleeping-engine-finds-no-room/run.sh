NPROC_PER_NODE=8 \
swift rlhf \
  --rlhf_type grpo \
  --model Qwen/Qwen2.5-32B-Instruct \
  --train_type full \
  --torch_dtype bfloat16 \
  --dataset AI-MO/NuminaMath-TIR \
  --num_train_epochs 1 \
  --max_length 4096 \
  --max_completion_length 2048 \
  --per_device_train_batch_size 1 \
  --gradient_accumulation_steps 8 \
  --num_generations 8 \
  --learning_rate 1e-6 \
  --use_vllm true \
  --vllm_mode colocate \
  --vllm_gpu_memory_utilization 0.4 \
  --vllm_tensor_parallel_size 4 \
  --sleep_level 1 \
  --deepspeed zero3
