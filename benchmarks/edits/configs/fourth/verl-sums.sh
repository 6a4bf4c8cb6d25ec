#!/usr/bin/env bash
set -x
gpus=8
rows=512
answers=8
mini=$((rows / 4))
micro=$((mini * answers / gpus / 16))
len_in=2048
len_out=$((1024 * 8))
python3 -m verl.trainer.main_ppo \
  algorithm.adv_estimator=grpo \
  data.train_files=data/train.parquet data.val_files=data/val.parquet \
  data.train_batch_size=${rows} \
  data.max_prompt_length=$len_in data.max_response_length=$len_out \
  actor_rollout_ref.model.path=Qwen/Qwen3-8B \
  actor_rollout_ref.model.enable_gradient_checkpointing=True \
  actor_rollout_ref.actor.ppo_mini_batch_size=$mini \
  actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=$micro \
  actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.n=$answers \
  actor_rollout_ref.rollout.tensor_model_parallel_size=1 \
  actor_rollout_ref.rollout.gpu_memory_utilization=0.85 \
  actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=$((micro * 2)) \
  actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=$((micro * 2)) \
  trainer.n_gpus_per_node=$gpus trainer.nnodes=1 trainer.logger=['console']
