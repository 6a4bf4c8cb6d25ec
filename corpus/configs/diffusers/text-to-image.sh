accelerate launch train_text_to_image.py \
  --pretrained_model_name_or_path stable-diffusion-v1-5/stable-diffusion-v1-5 \
  --dataset_name birds --resolution 768 --center_crop \
  --train_batch_size 1 --gradient_checkpointing --use_8bit_adam \
  --enable_xformers_memory_efficient_attention --mixed_precision fp16
