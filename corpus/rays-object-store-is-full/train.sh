#!/bin/bash
python3 -m openrlhf.cli.train_ppo_ray \
  --pretrain Qwen/Qwen2.5-VL-7B-Instruct \
  --vllm_num_engines 4 \
  --actor_num_gpus_per_node 4 \
  --zero_stage 3 --bf16 --gradient_checkpointing \
  --micro_train_batch_size 1 --train_batch_size 256 \
  --rollout_batch_size 1024 --n_samples_per_prompt 16 \
  --advantage_estimator group_norm
