docker run --runtime nvidia --gpus all \
    -v ~/.cache/huggingface:/root/.cache/huggingface \
    --env "HUGGING_FACE_HUB_TOKEN=$HF_TOKEN" \
    -p 8000:8000 --ipc=host \
    vllm/vllm-openai:v0.14.1 \
    --model Qwen/Qwen2.5-32B-Instruct --max-model-len 32768 --gpu-memory-utilization 0.9
