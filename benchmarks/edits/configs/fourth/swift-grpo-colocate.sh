MAX_PIXELS=401408 \
CUDA_VISIBLE_DEVICES=0,1,2,3 \
NPROC_PER_NODE=4 \
swift rlhf \
    --rlhf_type grpo \
    --model Qwen/Qwen2.5-VL-7B-Instruct \
    --reward_funcs accuracy format \
    --use_vllm true --vllm_mode colocate --vllm_gpu_memory_utilization 0.6 --vllm_max_model_len 8192 \
    --train_type full --torch_dtype bfloat16 \
    --dataset lmms-lab/multimodal-open-r1-8k-verified \
    --max_completion_length 2048 --max_length 4096 \
    --per_device_train_batch_size 4 --gradient_accumulation_steps 2 --num_generations 8 \
    --learning_rate 1e-6 --num_train_epochs 1 --deepspeed zero3 \
    --output_dir out --temperature 1.0 --log_completions true
