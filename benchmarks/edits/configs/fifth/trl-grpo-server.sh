CUDA_VISIBLE_DEVICES=0 trl vllm-serve --model Qwen/Qwen2.5-7B-Instruct --tensor-parallel-size 1 --gpu-memory-utilization 0.9 &
CUDA_VISIBLE_DEVICES=1,2,3,4 accelerate launch --num_processes 4 --mixed_precision bf16 -m trl.scripts.grpo \
  --model_name_or_path Qwen/Qwen2.5-7B-Instruct --dataset_name trl-lib/tldr --output_dir out \
  --reward_model_name_or_path OpenAssistant/reward-model-deberta-v3-large-v2 \
  --num_generations 8 --per_device_train_batch_size 8 --gradient_accumulation_steps 4 \
  --max_completion_length 2048 --use_vllm --vllm_mode server --learning_rate 1e-6
