deepspeed --num_gpus 4 train.py --deepspeed ds.json --model_name_or_path meta-llama/Llama-3.1-8B --output_dir out \
  --per_device_train_batch_size 2 --gradient_accumulation_steps 4 --bf16 True --gradient_checkpointing True
