MAX=16384
python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo \
 data.train_files=a.parquet data.val_files=b.parquet data.train_batch_size=128 \
 data.max_prompt_length=2048 data.max_response_length=14336 \
 actor_rollout_ref.model.path=Qwen/Qwen3-8B actor_rollout_ref.model.use_remove_padding=False \
 actor_rollout_ref.actor.use_dynamic_bsz=True actor_rollout_ref.actor.ppo_max_token_len_per_gpu=$MAX \
 actor_rollout_ref.actor.ppo_mini_batch_size=32 \
 actor_rollout_ref.rollout.log_prob_use_dynamic_bsz=True actor_rollout_ref.ref.log_prob_use_dynamic_bsz=True \
 actor_rollout_ref.rollout.name=sglang actor_rollout_ref.rollout.n=8 actor_rollout_ref.rollout.gpu_memory_utilization=0.8 \
 actor_rollout_ref.actor.use_kl_loss=True trainer.n_gpus_per_node=8 trainer.nnodes=2
