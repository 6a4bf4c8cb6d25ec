docker run --gpus all --shm-size 1g -p 8080:80 -v data:/data ghcr.io/huggingface/text-generation-inference:3.0.1 \
  --model-id Qwen/Qwen2.5-32B-Instruct --num-shard 2
