accelerate launch src/musubi_tuner/qwen_image_train.py --dit qwen_image_bf16.safetensors --vae vae.safetensors \
  --dataset_config images.toml --mixed_precision bf16 --full_bf16 --optimizer_type adafactor --flash_attn
