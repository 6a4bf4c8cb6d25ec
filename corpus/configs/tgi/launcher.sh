text-generation-launcher --model-id meta-llama/Llama-3.1-70B-Instruct --num-shard 4 --max-input-tokens 8192 --max-total-tokens 12288 \
  --max-batch-prefill-tokens 16384 --cuda-memory-fraction 0.9 --port 8080
