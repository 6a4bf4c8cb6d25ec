set -x
python3 -m verl.trainer.main_ppo \
    algorithm.adv_estimator=gae \
    data.train_files=train.parquet data.val_files=test.parquet \
    data.train_batch_size=512 data.max_prompt_length=1024 data.max_response_length=1024 \
    actor_rollout_ref.model.path=deepseek-ai/deepseek-llm-7b-chat \
    actor_rollout_ref.actor.optim.lr=1e-6 \
    actor_rollout_ref.actor.ppo_mini_batch_size=256 \
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=16 \
    actor_rollout_ref.rollout.name=vllm \
    actor_rollout_ref.rollout.tensor_model_parallel_size=4 \
    actor_rollout_ref.rollout.gpu_memory_utilization=0.85 \
    actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=32 \
    critic.model.path=deepseek-ai/deepseek-llm-7b-chat \
    critic.optim.lr=1e-5 critic.ppo_micro_batch_size_per_gpu=32 \
    algorithm.use_kl_in_reward=False trainer.critic_warmup=0 \
    trainer.n_gpus_per_node=8 trainer.nnodes=1 trainer.save_freq=-1 trainer.total_epochs=15
