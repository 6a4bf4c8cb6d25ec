#!/bin/bash
deepspeed --module openrlhf.cli.train_sft \
  --pretrain Qwen/Qwen2.5-3B \
  --dataset data/chat \
  --max_len 32768 \
  --micro_train_batch_size 1 \
  --train_batch_size 64 \
  --use_dynamic_batch \
  --train_max_tokens_per_gpu 8192 \
  --packing_samples \
  --zero_stage 3 \
  --param_dtype bf16 \
  --attn_implementation flash_attention_2 \
  --gradient_checkpointing
