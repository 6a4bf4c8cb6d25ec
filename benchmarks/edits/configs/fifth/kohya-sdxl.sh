accelerate launch --num_cpu_threads_per_process 1 sdxl_train.py --pretrained_model_name_or_path sdxl.safetensors \
  --train_data_dir data --output_dir out --resolution 1024,1024 --train_batch_size 4 --learning_rate 1e-5 --max_train_steps 5000 \
  --mixed_precision bf16 --optimizer_type AdamW --caption_extension .txt --save_every_n_epochs 1
