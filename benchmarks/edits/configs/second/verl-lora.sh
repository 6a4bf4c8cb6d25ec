set -x
export VLLM_USE_V1=1
HYDRA_FULL_ERROR=1 python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=256 data.max_prompt_length=512 data.max_response_length=2048 \
 actor_rollout_ref.model.path=Qwen/Qwen2.5-14B-Instruct actor_rollout_ref.model.lora_rank=64 actor_rollout_ref.model.lora_alpha=32 actor_rollout_ref.model.target_modules=all-linear \
 actor_rollout_ref.model.enable_gradient_checkpointing=False actor_rollout_ref.actor.strategy=fsdp2 actor_rollout_ref.actor.use_dynamic_bsz=True actor_rollout_ref.actor.ppo_max_token_len_per_gpu=32768 \
 actor_rollout_ref.actor.ppo_mini_batch_size=64 actor_rollout_ref.rollout.name=sglang actor_rollout_ref.rollout.gpu_memory_utilization=0.85 actor_rollout_ref.rollout.tensor_model_parallel_size=4 actor_rollout_ref.rollout.n=8 \
 trainer.n_gpus_per_node=4 trainer.nnodes=2
