#!/bin/bash
deepspeed --num_gpus 8 --module openrlhf.cli.train_sft \
  --pretrain Qwen/Qwen2.5-3B \
  --dataset data/chat \
  --max_len 4096 \
  --micro_train_batch_size 1 \
  --train_batch_size 64 \
  --use_dynamic_batch \
  --train_max_tokens_per_gpu 32768 \
  --packing_samples \
  --zero_stage 3 \
  --param_dtype bf16 \
  --attn_implementation flash_attention_2 \
  --gradient_checkpointing
