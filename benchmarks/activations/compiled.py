"""What torch.compile keeps of a decoder layer for backward: the tensors that its partitioner hands from the forward to the backward graph.

    /tmp/act/bin/python -W ignore benchmarks/activations/compiled.py [--model llama ...] [--list]

Layers of transformers with narrow widths, on the CPU, because the partition depends on no card; attention is torch's flash kernel there,
whose output is copied for o_proj: 2*q more than on a card, where it lies in token order. Runs in the environment of README.md.
"""

from __future__ import annotations

import argparse
from typing import Any

import torch  # type: ignore[import-not-found, unused-ignore]
import transformers  # type: ignore[import-not-found, unused-ignore]
from functorch.compile import make_boxed_func  # type: ignore[import-not-found, unused-ignore]
from torch._functorch.aot_autograd import aot_module  # type: ignore[import-not-found, unused-ignore]
from torch._functorch.partitioners import min_cut_rematerialization_partition  # type: ignore[import-not-found, unused-ignore]
from torch._inductor.decomposition import select_decomp_table  # type: ignore[import-not-found, unused-ignore]

TOKENS, HIDDEN, WIDTH, HEADS, HEAD = 496, 512, 1408, 8, 64


def layer(model_type: str) -> tuple[Any, tuple[Any, ...]]:
    """A decoder layer in 16 bits, as many key heads as query heads, and what its forward takes."""
    settings = transformers.AutoConfig.for_model(
        model_type,
        hidden_size=HIDDEN,
        intermediate_size=WIDTH,
        num_hidden_layers=1,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        head_dim=HEAD,
        vocab_size=1000,
        attn_implementation="sdpa",
    )
    model = transformers.AutoModelForCausalLM.from_config(settings, dtype=torch.bfloat16).model
    hidden = torch.randn(1, TOKENS, HIDDEN, dtype=torch.bfloat16, requires_grad=True)
    return model.layers[0], (hidden, model.rotary_emb(hidden, torch.arange(TOKENS)[None]))


def kept(model_type: str) -> list[tuple[str, tuple[int, ...], int]]:
    """Name, shape and bytes of every tensor of tokens that goes from the forward graph to the backward graph."""
    inner, (hidden, rotary) = layer(model_type)
    found: list[tuple[str, tuple[int, ...], int]] = []

    class Called(torch.nn.Module):  # type: ignore[misc, unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, given: Any, cos: Any, sin: Any) -> Any:
            made = self.inner(given, attention_mask=None, position_embeddings=(cos, sin))
            return made[0] if isinstance(made, tuple) else made

    def seen(graph: Any, _: Any) -> Any:
        outputs = next(node for node in graph.graph.nodes if node.op == "output").args[0]
        for node in outputs[1:]:
            tensor = getattr(node, "meta", {}).get("val")
            if isinstance(tensor, torch.Tensor) and TOKENS in tensor.shape and tensor.numel() >= TOKENS * HIDDEN:
                found.append((node.name, tuple(tensor.shape), tensor.numel() * tensor.element_size()))
        return make_boxed_func(graph.forward)

    compiled = aot_module(
        Called(),
        fw_compiler=seen,
        bw_compiler=lambda graph, _: make_boxed_func(graph.forward),
        partition_fn=min_cut_rematerialization_partition,
        decompositions=select_decomp_table(),
    )
    compiled(hidden, *rotary)
    return found


def main() -> None:
    ask = argparse.ArgumentParser(description="bytes per token that a compiled decoder layer keeps")
    ask.add_argument("--model", action="append", help="model types of transformers")
    ask.add_argument("--list", action="store_true")
    asked = ask.parse_args()
    for name in asked.model or ["llama", "qwen2", "mistral"]:
        every = kept(name)
        wide = sum(size for _, shape, size in every if shape[-1] == WIDTH) / TOKENS / WIDTH
        heads = [shape for _, shape, _ in every if len(shape) == 4]
        rest = sum(size for _, shape, size in every if shape[-1] == HIDDEN) / TOKENS / HIDDEN
        print(f"{name}: {wide:g}*f, {2 * len(heads)}*q by heads, {rest:g}*h in token order (2*q of it the copy for o_proj)")
        if asked.list:
            print("\n".join(f"  {name} {shape} {size / TOKENS:.0f}" for name, shape, size in every))


if __name__ == "__main__":
    main()
