docker run --gpus all -v ~/.cache/huggingface:/root/.cache/huggingface -p 8000:8000 --ipc=host \
  vllm/vllm-openai:v0.9.1 --model mistralai/Mistral-7B-v0.1 --gpu-memory-utilization 0.85 --enforce-eager --max-num-batched-tokens 4096
