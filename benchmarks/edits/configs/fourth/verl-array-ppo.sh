set -euo pipefail
ENGINE=${1:-vllm}
common=(
  algorithm.adv_estimator=gae
  data.train_files=$HOME/rl/train.parquet
  data.val_files=$HOME/rl/test.parquet
  data.train_batch_size=1024
  data.max_prompt_length=512
  data.max_response_length=1024
)
actor=(
  actor_rollout_ref.model.path=deepseek-ai/deepseek-llm-7b-chat
  actor_rollout_ref.model.use_remove_padding=True
  actor_rollout_ref.actor.ppo_mini_batch_size=256
  actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=16
  actor_rollout_ref.actor.fsdp_config.param_offload=False
  actor_rollout_ref.actor.fsdp_config.optimizer_offload=False
  actor_rollout_ref.rollout.name=$ENGINE
  actor_rollout_ref.rollout.gpu_memory_utilization=0.6
  actor_rollout_ref.rollout.tensor_model_parallel_size=4
  actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=32
)
critic=(critic.model.path=deepseek-ai/deepseek-llm-7b-chat critic.ppo_micro_batch_size_per_gpu=32 critic.model.enable_gradient_checkpointing=False)
python3 -m verl.trainer.main_ppo "${common[@]}" "${actor[@]}" "${critic[@]}" trainer.n_gpus_per_node=8 trainer.nnodes=1
