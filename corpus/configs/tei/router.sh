text-embeddings-router --model-id Alibaba-NLP/gte-large-en-v1.5 --dtype float32 --max-batch-requests 16 --auto-truncate --port 8080
