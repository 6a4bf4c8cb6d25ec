accelerate launch --config_file ds.yaml examples/qwen_image/model_training/train.py --dataset_base_path data --max_pixels 1048576 --trainable_models dit \
  --model_id_with_origin_paths 'Qwen/Qwen-Image:transformer/*.safetensors' --fp8_models 'Qwen/Qwen-Image:text_encoder/*' --use_gradient_checkpointing_offload \
  --customized_optimizer bitsandbytes.optim.Adam8bit --dataset_num_workers 8
