deepspeed --include localhost:0,1,2,3 src/train_bash.py \
  --stage sft --do_train \
  --model_name_or_path baichuan-inc/Baichuan2-13B-Chat \
  --template baichuan2 --finetuning_type full \
  --cutoff_len 1024 --per_device_train_batch_size 1 --gradient_accumulation_steps 4 \
  --deepspeed ds_config.json --bf16 --output_dir out
