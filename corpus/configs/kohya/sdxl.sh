accelerate launch --num_processes 2 --mixed_precision bf16 sdxl_train.py \
  --pretrained_model_name_or_path sd_xl_base_1.0.safetensors \
  --dataset_config data.toml --output_dir out \
  --train_batch_size 1 --gradient_checkpointing --full_bf16 \
  --optimizer_type AdaFactor --cache_latents --sdpa
