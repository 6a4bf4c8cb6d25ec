python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V3 --tp 8 --dp 8 --enable-dp-attention \
  --mem-fraction-static 0.92 --cuda-graph-max-bs 256 --chunked-prefill-size 16384 --trust-remote-code
