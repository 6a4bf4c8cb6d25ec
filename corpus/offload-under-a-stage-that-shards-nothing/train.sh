deepspeed --num_gpus 1 run_clm.py \
  --model_name_or_path meta-llama/Llama-3.2-3B \
  --dataset_name wikitext --dataset_config_name wikitext-103-raw-v1 --do_train \
  --block_size 1024 --per_device_train_batch_size 1 --gradient_accumulation_steps 8 \
  --gradient_checkpointing --optim adamw_torch --learning_rate 1e-5 --num_train_epochs 1 \
  --deepspeed ds.json --output_dir out
