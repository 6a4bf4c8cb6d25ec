#!/bin/bash
ray job submit --address="http://127.0.0.1:8265" -- python3 -m openrlhf.cli.train_ppo_ray \
  --ref_num_nodes 1 --ref_num_gpus_per_node 1 \
  --reward_num_nodes 1 --reward_num_gpus_per_node 1 \
  --critic_num_nodes 1 --critic_num_gpus_per_node 4 \
  --actor_num_nodes 1 --actor_num_gpus_per_node 2 \
  --vllm_num_engines 1 --vllm_tensor_parallel_size 1 \
  --pretrain meta-llama/Meta-Llama-3-8B-Instruct \
  --reward_pretrain OpenRLHF/Llama-3-8b-rm-mixture \
  --micro_train_batch_size 8 --train_batch_size 128 \
  --micro_rollout_batch_size 16 --rollout_batch_size 512 \
  --prompt_max_len 1024 --generate_max_len 1024 \
  --zero_stage 3 --bf16 --flash_attn --gradient_checkpointing
