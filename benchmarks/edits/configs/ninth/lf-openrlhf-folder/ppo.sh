#!/bin/bash
export CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7
GLOBAL_WORKINGDIR="/srv/rm/OpenRLHF"
USE_MODEL="Qwen/Qwen2.5-14B-Instruct"
SAVE_PATH="/srv/ckpt/qwen14b"
DATASET_PATH="someone/sky_filtered"
ray job submit --address="http://127.0.0.1:8265" \
   --runtime-env-json "{\"working_dir\":\"$GLOBAL_WORKINGDIR\"}" \
   -- \
   python3 -m openrlhf.cli.train_ppo_ray \
   --ref_num_nodes 1 \
   --ref_num_gpus_per_node 2 \
   --actor_num_nodes 1 \
   --actor_num_gpus_per_node 4 \
   --vllm_num_engines 2 \
   --vllm_tensor_parallel_size 1 \
   --pretrain "$USE_MODEL" \
   --save_path "$SAVE_PATH" \
   --remote_rm_url reward.py \
   --micro_train_batch_size 2 \
   --train_batch_size 128 \
   --micro_rollout_batch_size 2 \
   --rollout_batch_size 1024 \
   --n_samples_per_prompt 7 \
   --max_epochs 1 \
   --prompt_max_len 10000 \
   --max_samples 100000 \
   --generate_max_len 2048 \
   --advantage_estimator group_norm \
   --zero_stage 3 \
   --bf16 \
   --actor_learning_rate 1e-6 \
   --prompt_data $DATASET_PATH \
   --input_key context_messages \
   --label_key winner \
   --apply_chat_template \
   --adam_offload \
   --gradient_checkpointing \
   --packing_samples \
   --save_steps 3
