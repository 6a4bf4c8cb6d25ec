#!/bin/bash
MAX_PIXELS=802816 NPROC_PER_NODE=4 swift sft \
  --model_type qwen2-vl-7b-instruct \
  --model_id_or_path Qwen/Qwen2-VL-7B-Instruct \
  --sft_type lora \
  --deepspeed default-zero2 \
  --dataset clips.json
