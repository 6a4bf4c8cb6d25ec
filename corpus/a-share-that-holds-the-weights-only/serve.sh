trl vllm-serve --model Qwen/Qwen2.5-14B-Instruct --tensor-parallel-size 1 --gpu-memory-utilization 0.3
