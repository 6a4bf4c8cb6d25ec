from llama_cpp import Llama

llm = Llama(model_path="/models/llama-3.1-8b-q8_0.gguf", n_gpu_layers=-1, n_ctx=16384, n_ubatch=256, flash_attn=True)
print(llm("Q: Name the planets. A:", max_tokens=64))
