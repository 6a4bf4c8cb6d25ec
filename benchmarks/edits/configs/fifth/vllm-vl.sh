python -m vllm.entrypoints.openai.api_server --model Qwen/Qwen2.5-VL-32B-Instruct --tensor-parallel-size 2 \
  --limit-mm-per-prompt '{"image": 8, "video": 1}' --max-model-len 65536 --dtype bfloat16 --quantization fp8
