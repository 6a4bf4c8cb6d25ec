docker run --gpus all -p 8000:8000 --ipc=host vllm/vllm-openai:v0.20.2 --model Qwen/Qwen3-30B-A3B --enable-lora --max-loras 8 \
  --max-lora-rank 64 --kv-cache-dtype auto --max-num-seqs 512 --enforce-eager
