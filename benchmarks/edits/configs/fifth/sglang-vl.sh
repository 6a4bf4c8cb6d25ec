python -m sglang.launch_server --model-path Qwen/Qwen2.5-VL-7B-Instruct --context-length 65536 --mem-fraction-static 0.9 \
  --max-running-requests 256 --host 0.0.0.0 --port 30000
