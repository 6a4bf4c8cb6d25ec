llama-cli -m model.gguf --n-gpu-layers 20 --ctx-size 4096 --flash-attn off -p "hello"
