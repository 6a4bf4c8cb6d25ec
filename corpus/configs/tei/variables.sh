docker run --gpus all -e MODEL_ID=Qwen/Qwen3-Embedding-0.6B -e MAX_BATCH_TOKENS=4096 ghcr.io/huggingface/text-embeddings-inference:turing-1.8
