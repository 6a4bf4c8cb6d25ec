docker run --gpus all -p 8080:8080 -v /models:/models ghcr.io/ggml-org/llama.cpp:server-cuda -m /models/qwen3-14b-q4_k_m.gguf -c 16384 -ngl 99 --port 8080
