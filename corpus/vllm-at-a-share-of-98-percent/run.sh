vllm serve mistralai/Mistral-Large-Instruct-2407 --tensor-parallel-size 4 --max-model-len 100000 --gpu-memory-utilization 0.98 --enable-chunked-prefill=False
