llama-server -m m.gguf -ngl 99 -c 4096
