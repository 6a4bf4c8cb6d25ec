cp -r ./examples/scripts copied
ln -s ./OpenRLHF /openrlhf
cd /openrlhf/examples/scripts

export OUT=out
mkdir ${OUT}
export SAVE_PATH=${OUT}/gem
export PRETRAIN=Qwen/Qwen3-1.7B-Base/
export DATA_PATH=./dataset/letters.jsonl
export N_ROLLOUT=16
mkdir ${SAVE_PATH}

set -x
if [ "$RANK" -eq 0 ]; then
    ray start --head --port=6379  --include-dashboard=true --dashboard-host=0.0.0.0 --dashboard-port=8265 --num-gpus 8
    export MASTER_NODE=$(cat $OUT/node_ip.txt)
    ray job submit --address="http://${MASTER_NODE}:8265/" \
        --runtime-env-json='{"working_dir": "/openrlhf"}' \
        -- python3 -m openrlhf.cli.train_ppo_ray \
        --ref_num_nodes 1 \
        --ref_num_gpus_per_node 1 \
        --actor_num_nodes 1 \
        --actor_num_gpus_per_node 1 \
        --vllm_num_engines 1 \
        --vllm_tensor_parallel_size 1 \
        --colocate_all_models \
        --vllm_gpu_memory_utilization 0.45 \
        --gamma 1.0 \
        --l2 0.01 \
        --eps_clip_low_high 0.22 0.28 \
        --advantage_estimator reinforce \
        --pretrain ${PRETRAIN} \
        --agent_func_path /openrlhf/agent.py \
        --save_path ${SAVE_PATH} \
        --ckpt_path ${SAVE_PATH} \
        --save_hf_ckpt \
        --micro_train_batch_size 2 \
        --train_batch_size 128 \
        --micro_rollout_batch_size 2 \
        --rollout_batch_size 128 \
        --n_samples_per_prompt ${N_ROLLOUT} \
        --max_epochs 1 \
        --num_episodes 100000000 \
        --prompt_max_len 1024 \
        --max_samples 100000000 \
        --generate_max_len 10240 \
        --zero_stage 3 \
        --bf16 \
        --actor_learning_rate 1e-6 \
        --init_kl_coef 0.0 \
        --prompt_data ${DATA_PATH} \
        --input_key input \
        --label_key answer \
        --gradient_checkpointing \
        --packing_samples \
        --vllm_sync_backend nccl \
        --enforce_eager \
        --async_train
else
    ray start --address "${MASTER_NODE}:6379" --num-gpus 8 --block
fi
