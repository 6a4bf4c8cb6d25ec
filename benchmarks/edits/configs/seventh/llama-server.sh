./build/bin/llama-server -m models/qwen2.5-32b-q4_k_m.gguf -ngl 99 -c 32768 --parallel 4 -ub 2048 --host 0.0.0.0
