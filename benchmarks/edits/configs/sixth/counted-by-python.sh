accelerate launch --num_processes "$(python -c 'import torch; print(torch.cuda.device_count())')" --main_process_port $(shuf -i 20000-30000 -n 1) \
  trl/scripts/dpo.py --model_name_or_path Qwen/Qwen2.5-7B-Instruct --dataset_name trl-lib/ultrafeedback_binarized --output_dir dpo \
  --per_device_train_batch_size 8 --gradient_accumulation_steps 2 --max_length 2048 --learning_rate 5e-7
