#!/bin/bash
# eight cards, one engine
export SGLANG_USE_MODELSCOPE=true
CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 python3 -m sglang.launch_server --model-path Qwen/Qwen3-32B --tp-size 8 \
  --mem-fraction-static 0.85 --chunked-prefill-size 4096 --max-running-requests 64 --context-length 32768 --disable-cuda-graph   # eager
