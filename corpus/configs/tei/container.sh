docker run --gpus all -p 8080:80 -v data:/data ghcr.io/huggingface/text-embeddings-inference:1.8 \
  --model-id BAAI/bge-m3 --max-batch-tokens 32768 --max-client-batch-size 64
