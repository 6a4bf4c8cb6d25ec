export CUDA_VISIBLE_DEVICES=0,1,2,3
export VLLM_ATTENTION_BACKEND=XFORMERS
BASE=meta-llama/Llama-3.2-3B
PYTHONUNBUFFERED=1 python3 -m verl.trainer.main_ppo \
    data.train_files=nq/train.parquet data.val_files=nq/test.parquet \
    data.train_data_num=null data.val_data_num=null \
    data.train_batch_size=512 data.val_batch_size=256 \
    data.max_prompt_length=4096 data.max_response_length=500 data.max_start_length=2048 data.max_obs_length=500 \
    algorithm.adv_estimator=grpo \
    actor_rollout_ref.model.path=$BASE \
    actor_rollout_ref.model.enable_gradient_checkpointing=true actor_rollout_ref.model.use_remove_padding=True \
    actor_rollout_ref.actor.ppo_mini_batch_size=256 actor_rollout_ref.actor.ppo_micro_batch_size=64 \
    actor_rollout_ref.actor.fsdp_config.param_offload=true actor_rollout_ref.actor.fsdp_config.grad_offload=true \
    actor_rollout_ref.actor.fsdp_config.optimizer_offload=true \
    actor_rollout_ref.rollout.log_prob_micro_batch_size=128 actor_rollout_ref.rollout.tensor_model_parallel_size=1 \
    actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.gpu_memory_utilization=0.6 actor_rollout_ref.rollout.n_agent=5 \
    actor_rollout_ref.ref.log_prob_micro_batch_size=128 actor_rollout_ref.ref.fsdp_config.param_offload=True \
    trainer.n_gpus_per_node=4 trainer.nnodes=1 max_turns=2 do_search=true retriever.url="http://127.0.0.1:8000/retrieve"
