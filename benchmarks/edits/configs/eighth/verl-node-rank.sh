set -x
HEAD_ADDR=${HEAD_ADDR:-localhost}
HEAD_PORT=6379
if [ "${HOSTNAME##*-}" -eq 0 ]; then
    ray start --head --port=${HEAD_PORT}
else
    ray start --address="${HEAD_ADDR}:${HEAD_PORT}" --block
fi

math=data/math_gt_2.parquet
aime24=data/aime24.parquet
aime25=data/aime25.parquet

train_files="['$math']"
test_files="['$aime24', '$aime25']"
BASE_MODEL=deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B

ENTROPY_COEFF=0.0
ROLLOUT_BATCH_SIZE=256
PPO_MINI_BATCH=256
MAX_PROMPT_LENGTH=2048
RES_LENGTH=32768
GROUP_SIZE=14
N_VAL_SAMPLES=16

TRAIN_TEMPERATURE=1.0

TP=1
SP=1
MAX_TOKEN_LEN=$((2*(RES_LENGTH + MAX_PROMPT_LENGTH) / SP))

if [ "${HOSTNAME##*-}" -eq 0 ]; then
    python3 -m verl.trainer.main_ppo \
        algorithm.adv_estimator=grpo \
        data.train_files="$train_files" \
        data.val_files="$test_files" \
        data.train_batch_size=$ROLLOUT_BATCH_SIZE \
        data.max_prompt_length=$MAX_PROMPT_LENGTH \
        data.max_response_length=$RES_LENGTH \
        data.filter_overlong_prompts=True \
        actor_rollout_ref.model.path=$BASE_MODEL \
        actor_rollout_ref.model.use_remove_padding=True \
        actor_rollout_ref.model.enable_gradient_checkpointing=True \
        actor_rollout_ref.actor.use_dynamic_bsz=True \
        actor_rollout_ref.actor.optim.lr=1e-6 \
        actor_rollout_ref.actor.entropy_coeff=$ENTROPY_COEFF \
        actor_rollout_ref.actor.ppo_mini_batch_size=$PPO_MINI_BATCH \
        actor_rollout_ref.actor.ppo_max_token_len_per_gpu=$MAX_TOKEN_LEN \
        actor_rollout_ref.actor.ulysses_sequence_parallel_size=$SP \
        actor_rollout_ref.rollout.name=vllm \
        actor_rollout_ref.rollout.tensor_model_parallel_size=$TP \
        actor_rollout_ref.rollout.temperature=$TRAIN_TEMPERATURE \
        actor_rollout_ref.rollout.n=$GROUP_SIZE \
        actor_rollout_ref.rollout.val_kwargs.n=$N_VAL_SAMPLES \
        actor_rollout_ref.rollout.gpu_memory_utilization=0.8 \
        trainer.n_gpus_per_node=8 \
        trainer.nnodes=4 \
        trainer.logger=['console','wandb'] \
        trainer.save_freq=20
fi
