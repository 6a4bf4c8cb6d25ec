python text-generation-webui/server.py --model Qwen3-32B-Q4_K_M.gguf --gpu-layers 40 --ctx-size 16384
