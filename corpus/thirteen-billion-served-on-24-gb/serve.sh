vllm serve meta-llama/Llama-2-13b-hf
