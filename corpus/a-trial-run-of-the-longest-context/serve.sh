python -m vllm.entrypoints.openai.api_server --model Qwen/Qwen2-7B
