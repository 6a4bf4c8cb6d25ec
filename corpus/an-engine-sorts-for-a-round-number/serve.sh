vllm serve Qwen/Qwen3-8B --gpu-memory-utilization 0.95 --max-model-len 8192
