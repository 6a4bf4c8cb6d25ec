text-generation-launcher --model-id codellama/CodeLlama-70b-hf --max-batch-prefill-tokens 27000 --max-input-length 14000 --max-total-tokens 20000 --sharded true --num-shard 2
