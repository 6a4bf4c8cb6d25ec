NPUS_T=12
NPUS_R=4
max_prompt_length=1024
max_response_length=8192
common_params=(
    data.train_files=d/train.parquet
    data.val_files=d/val.parquet
    data.max_prompt_length=${max_prompt_length}
    data.max_response_length=${max_response_length}
    data.train_batch_size=64
    actor_rollout_ref.model.path=Qwen/Qwen3-8B
    actor_rollout_ref.rollout.n=8
    actor_rollout_ref.rollout.enable_chunked_prefill=True
    actor_rollout_ref.rollout.name=vllm
    actor_rollout_ref.rollout.gpu_memory_utilization=0.8
    trainer.logger=['console']
    trainer.nnodes=1
    trainer.n_gpus_per_node=${NPUS_T}
    rollout.nnodes=1
    rollout.n_gpus_per_node=${NPUS_R}

)

gen_tp=2
sp_size=2
actor_offload=False

python3 -m verl.experimental.one_step_off_policy.main_ppo \
    "${common_params[@]}" \
    actor_rollout_ref.actor.strategy=fsdp2 \
    critic.strategy=fsdp2 \
    actor_rollout_ref.actor.grad_clip=1.0 \
    actor_rollout_ref.model.use_remove_padding=True \
    actor_rollout_ref.model.enable_gradient_checkpointing=True \
    actor_rollout_ref.actor.use_dynamic_bsz=True \
    actor_rollout_ref.actor.ppo_max_token_len_per_gpu=20480 \
    actor_rollout_ref.actor.ppo_mini_batch_size=32 \
    actor_rollout_ref.actor.fsdp_config.param_offload=${actor_offload} \
    actor_rollout_ref.actor.fsdp_config.optimizer_offload=${actor_offload} \
    actor_rollout_ref.actor.ulysses_sequence_parallel_size=${sp_size} \
    actor_rollout_ref.rollout.tensor_model_parallel_size=${gen_tp} $@
