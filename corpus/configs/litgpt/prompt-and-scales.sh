#!/bin/bash
litgpt finetune_adapter_v2 checkpoints/meta-llama/Llama-2-7b-hf \
  --precision bf16-true --train.micro_batch_size 1 --train.max_seq_length 1304 --devices 1
