#!/bin/bash
export CUDA_VISIBLE_DEVICES=0,1
vllm serve /models/house-72b-chat -tp 2 \
  --dtype bfloat16 \
  --max-model-len 4096 \
  --gpu-memory-utilization 0.6 \
  --port 8000
