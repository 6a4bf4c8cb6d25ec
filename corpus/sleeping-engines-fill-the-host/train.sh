#!/bin/bash
python3 -m openrlhf.cli.train_ppo_ray \
  --pretrain Qwen/Qwen2.5-32B-Instruct \
  --colocate_all_models \
  --vllm_num_engines 4 \
  --vllm_tensor_parallel_size 2 \
  --vllm_enable_sleep \
  --vllm_gpu_memory_utilization 0.5 \
  --actor_num_gpus_per_node 8 \
  --ref_num_gpus_per_node 8 \
  --zero_stage 3 --bf16 --gradient_checkpointing \
  --micro_train_batch_size 1 --train_batch_size 128 \
  --rollout_batch_size 128 --n_samples_per_prompt 8 \
  --advantage_estimator group_norm
