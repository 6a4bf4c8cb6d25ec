export CUDA_DEVICE_MAX_CONNECTIONS=1
uv run python -m verl.trainer.main_ppo --config-path=config --config-name='ppo_megatron_trainer.yaml' \
  algorithm.adv_estimator=gae data.train_batch_size=256 data.max_prompt_length=1024 data.max_response_length=1024 \
  actor_rollout_ref.model.path=deepseek-ai/deepseek-llm-7b-chat \
  actor_rollout_ref.actor.ppo_mini_batch_size=64 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 \
  actor_rollout_ref.actor.megatron.tensor_model_parallel_size=2 actor_rollout_ref.actor.megatron.pipeline_model_parallel_size=2 \
  actor_rollout_ref.rollout.tensor_model_parallel_size=2 actor_rollout_ref.rollout.gpu_memory_utilization=0.5 \
  critic.model.path=deepseek-ai/deepseek-llm-7b-chat critic.ppo_micro_batch_size_per_gpu=4 \
  trainer.n_gpus_per_node=8 trainer.nnodes=1
