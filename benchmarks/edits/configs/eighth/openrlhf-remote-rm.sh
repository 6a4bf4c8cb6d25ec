DATASET=/data/level5.jsonl
ray start --head --temp-dir /data/ray
NAME="l2-0304"
PRETRAIN_MODEL="/data/models/aligned"
SAVE_PATH="/data/models/ckpts"
mkdir -p "${SAVE_PATH}/${NAME}/logs"

python -m openrlhf.models.remote_rm.math_verifier --dataset $DATASET --input_key prompt --prompt-template chatml > "remote_rm.log" 2>&1 &
childpid=$!
#   --colocate_actor_ref \

ray job submit --address="http://0.0.0.0:8265" \
   --runtime-env-json='{"working_dir": "/data/train", "env_vars": {"MASTER_ADDR": "10.0.0.2", "MASTER_PORT": "24999"}}' \
   -- python3 -m openrlhf.cli.train_ppo_ray \
   --ref_num_nodes 1 \
   --ref_num_gpus_per_node 8 \
   --actor_num_nodes 1 \
   --actor_num_gpus_per_node 8 \
   --vllm_num_engines 1 \
   --vllm_tensor_parallel_size 8 \
   --remote_rm_url http://localhost:5000/get_reward \
   --vllm_gpu_memory_utilization 0.7 \
   --advantage_estimator rloo \
   --pretrain $PRETRAIN_MODEL \
   --save_path $SAVE_PATH/$NAME \
   --ckpt_path $SAVE_PATH/$NAME/ckpt \
   --save_hf_ckpt \
   --micro_train_batch_size 1 \
   --train_batch_size 8 \
   --micro_rollout_batch_size 4 \
   --rollout_batch_size 32 \
   --n_samples_per_prompt 16 \
   --max_epochs 2 \
   --prompt_max_len 1024 \
   --max_samples 50000 \
   --generate_max_len 8192 \
   --zero_stage 3 \
   --bf16 \
   --actor_learning_rate 3e-7 \
   --critic_learning_rate 9e-6 \
   --init_kl_coef 0.02 \
   --prompt_data $DATASET \
   --input_key prompt \
   --apply_chat_template \
   --normalize_reward \
   --adam_offload \
   --gradient_checkpointing \
   --flash_attn \
   --packing_samples
kill $childpid
