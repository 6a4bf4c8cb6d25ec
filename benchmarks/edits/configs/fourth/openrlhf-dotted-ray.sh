set -x
ray job submit --address="http://127.0.0.1:8265" \
   --runtime-env-json='{"working_dir": "/workspace"}' \
   -- python3 -m openrlhf.cli.train_ppo_ray \
   --ref_num_nodes 1 --ref_num_gpus_per_node 8 \
   --actor_num_nodes 1 --actor_num_gpus_per_node 8 \
   --vllm_num_engines 4 --vllm_tensor_parallel_size 2 --vllm_gpu_memory_utilization 0.6 \
   --colocate_all_models --advantage_estimator reinforce \
   --pretrain OpenRLHF/Llama-3-8b-sft-mixture --remote_rm_url /workspace/reward.py \
   --save_path ckpt --micro_train_batch_size 8 --train_batch_size 128 \
   --micro_rollout_batch_size 16 --rollout_batch_size 1024 --n_samples_per_prompt 1 \
   --max_epochs 1 --prompt_max_len 1024 --generate_max_len 4096 --zero_stage 3 --bf16 \
   --actor_learning_rate 5e-7 --init_kl_coef 1e-4 --prompt_data OpenRLHF/prompt-collection-v0.1 \
   --input_key context_messages --apply_chat_template --normalize_reward --vllm_sync_backend nccl --enforce_eager
