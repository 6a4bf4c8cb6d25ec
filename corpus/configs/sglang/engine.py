import sglang as sgl
from sglang import Engine

llm = Engine(
    model_path="Qwen/Qwen2.5-7B-Instruct",
    tp_size=1,
    mem_fraction_static=0.7,
    max_total_tokens=65536,  # the cache
)
