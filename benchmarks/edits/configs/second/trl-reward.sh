accelerate launch --multi_gpu --num_processes 4 -m trl.scripts.reward --model_name_or_path Qwen/Qwen2-7B --dataset_name trl-lib/ultrafeedback_binarized \
  --output_dir rm --per_device_train_batch_size 8 --num_train_epochs 1 --max_length 4096 --learning_rate 1e-5
