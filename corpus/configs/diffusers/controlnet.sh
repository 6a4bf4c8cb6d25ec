accelerate launch --mixed_precision bf16 train_controlnet_sdxl.py \
  --pretrained_model_name_or_path stabilityai/stable-diffusion-xl-base-1.0 \
  --dataset_name edges --validation_prompt "a house" --resolution 1024 \
  --train_batch_size 4 --gradient_checkpointin --dataloader_num_workers 4
