vllm serve openai/gpt-oss-120b --max-num-seqs 1024 --gpu-memory-utilization 0.95
