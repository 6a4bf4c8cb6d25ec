#!/bin/bash
accelerate launch --num_cpu_threads_per_process 8 sd-scripts/sdxl_train_network.py \
  --pretrained_model_name_or_path="/models/sdxl.safetensors" \
  --train_data_dir="/data/img" --resolution="1024,1024" --output_dir="/out" --output_name="style" \
  --network_module=networks.lora --network_dim=64 --network_alpha=32 \
  --train_batch_size=6 --max_train_epochs=10 --learning_rate=1e-4 --unet_lr=1e-4 --text_encoder_lr=5e-5 \
  --optimizer_type="AdamW" --mixed_precision="bf16" --save_precision="bf16" --enable_bucket --xformers
