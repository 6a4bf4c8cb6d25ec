for SEED in 1 2 3; do
    RUN_NAME=grpo-seed${SEED}
    MODEL_DIR=out/${RUN_NAME}
    TP=2
    N_GPUS=4
    python3 -m verl.trainer.main_ppo \
        algorithm.adv_estimator=grpo \
        data.train_files=data/math/train.parquet \
        data.val_files=data/math/test.parquet \
        data.train_batch_size=256 \
        data.val_batch_size=1312 \
        data.max_prompt_length=512 \
        data.max_response_length=1024 \
        actor_rollout_ref.model.path=Qwen/Qwen2.5-3B \
        actor_rollout_ref.actor.optim.lr=1e-6 \
        actor_rollout_ref.model.use_remove_padding=True \
        actor_rollout_ref.actor.ppo_mini_batch_size=64 \
        actor_rollout_ref.actor.ppo_micro_batch_size=16 \
        actor_rollout_ref.model.enable_gradient_checkpointing=True \
        actor_rollout_ref.actor.fsdp_config.param_offload=False \
        actor_rollout_ref.actor.fsdp_config.grad_offload=False \
        actor_rollout_ref.actor.fsdp_config.optimizer_offload=False \
        actor_rollout_ref.rollout.log_prob_micro_batch_size=8 \
        actor_rollout_ref.rollout.tensor_model_parallel_size=$TP \
        actor_rollout_ref.rollout.name=vllm \
        actor_rollout_ref.rollout.gpu_memory_utilization=0.5 \
        actor_rollout_ref.rollout.n=4 \
        +actor_rollout_ref.rollout.disable_log_stats=False \
        actor_rollout_ref.ref.log_prob_micro_batch_size=8 \
        reward_model.enable=False \
        algorithm.kl_ctrl.kl_coef=0.001 \
        trainer.critic_warmup=0 \
        trainer.default_local_dir=$MODEL_DIR \
        trainer.default_hdfs_dir=null \
        trainer.logger=['console','wandb'] \
        trainer.project_name='verl_math' \
        trainer.experiment_name=${RUN_NAME} \
        trainer.n_gpus_per_node=$N_GPUS \
        trainer.nnodes=1 \
        trainer.save_freq=20 \
        trainer.total_epochs=3

    for ((STEP=20; STEP<=160; STEP+=20)); do
        python merge.py --local_dir ckpt/${RUN_NAME}/global_step_${STEP} --save_dir m/${RUN_NAME}-${STEP}
        for BENCH in gsm8k math; do
            MAX_NEW_TOKENS=512
            [[ "$BENCH" == "math" ]] && MAX_NEW_TOKENS=1024
            python eval_rl.py --model-path m/${RUN_NAME}-${STEP} --max-new-tokens $MAX_NEW_TOKENS --batch-size 64
        done
    done
done
