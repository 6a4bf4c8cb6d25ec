#!/bin/bash
text-generation-launcher --model-id meta-llama/Llama-2-70b-chat-hf --num-shard 8 --max-input-length 3072 --max-total-tokens 4096 \
  --max-batch-prefill-tokens 4096 --max-batch-total-tokens 16000 --port 8080
