accelerate launch --num_cpu_threads_per_process 1 --mixed_precision bf16 src/musubi_tuner/wan_train_network.py \
  --task t2v-14B --dit models/wan2.1_t2v_14B_bf16.safetensors --dataset_config sets/clips.toml \
  --sdpa --mixed_precision bf16 --fp8_base --optimizer_type adamw8bit --learning_rate 2e-4 \
  --gradient_checkpointing --max_data_loader_n_workers 2 --network_module networks.lora_wan --network_dim 32 \
  --blocks_to_swap 16 --timestep_sampling shift --discrete_flow_shift 3.0 --max_train_epochs 16 --output_dir out
