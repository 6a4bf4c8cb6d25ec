export VLLM_USE_V1=1
vllm serve meta-llama/Llama-3.1-70B-Instruct --tensor-parallel-size 4 --max-model-len 131072 --enable-prefix-caching \
  --max-num-batched-tokens 8192 --gpu-memory-utilization 0.92 --swap-space 8 --port 8000
