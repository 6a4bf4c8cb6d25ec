python3 main_two_pools.py algorithm.adv_estimator=gae data.train_batch_size=1024 data.max_prompt_length=512 data.max_response_length=512 \
  actor_rollout_ref.model.path=deepseek-ai/deepseek-llm-7b-chat actor_rollout_ref.actor.ppo_mini_batch_size=256 actor_rollout_ref.actor.ppo_micro_batch_size=32 \
  actor_rollout_ref.actor.fsdp_config.param_offload=False actor_rollout_ref.rollout.tensor_model_parallel_size=4 actor_rollout_ref.rollout.gpu_memory_utilization=0.5 trainer.n_gpus_per_node=8
