docker run --gpus all --shm-size 1g -e MODEL_ID=meta-llama/Llama-2-7b-hf -e MAX_BATCH_TOTAL_TOKENS=24000 -e CUDA_MEMORY_FRACTION=0.9 ghcr.io/huggingface/text-generation-inference:0.9.3
