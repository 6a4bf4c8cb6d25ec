#!/bin/bash
export WANDB_DISABLED=true
python finetune_lora.py \
  --model_name_or_path meta-llama/Llama-2-7b-hf \
  --use_peft True --lora_r 16 --lora_target_modules q_proj v_proj \
  --torch_dtype bfloat16 \
  --bf16 True \
  --per_device_train_batch_size 4 \
  --gradient_accumulation_steps 8 \
  --gradient_checkpointing True \
  --max_seq_length 2048 \
  --num_train_epochs 3 \
  --output_dir out
