accelerate launch examples/wanvideo/model_training/train.py --dataset_base_path data --height 480 --width 832 --num_frames 49 \
  --model_id_with_origin_paths 'Wan-AI/Wan2.1-T2V-1.3B:diffusion_pytorch_model*.safetensors' --lora_base_model dit --lora_rank 16 \
  --use_gradient_checkpointing --gradient_accumulation_steps 4
