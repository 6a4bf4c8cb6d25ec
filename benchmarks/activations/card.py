"""A CUDA card that is not there: fake tensors on it, and attention as it would be dispatched on it."""

# ruff: noqa: SLF001 - operators are reached by the names that torch gives them

from __future__ import annotations

import contextlib
import ctypes
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch  # type: ignore[import-not-found, unused-ignore]
import transformers  # type: ignore[import-not-found, unused-ignore]
from torch._subclasses.fake_tensor import FakeTensorMode  # type: ignore[import-not-found, unused-ignore]

HERE = Path(__file__).resolve().parent

#: The SDPA kernels that were called since this was last emptied.
KERNELS: set[str] = set()


def guard() -> None:
    """Load the empty CUDA device guard, compiled once."""
    root = Path(torch.__file__).parent
    library = Path(tempfile.mkdtemp()) / "guard.so"
    command = [
        "g++",
        "-shared",
        "-fPIC",
        "-std=c++20",
        str(HERE / "guard.cpp"),
        f"-I{root}/include",
        f"-L{root}/lib",
        "-lc10",
        "-o",
        str(library),
    ]
    subprocess.run(command, check=True)
    ctypes.CDLL(str(library))


def attention(query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False, **more: Any) -> Any:
    """torch's SDPA as it dispatches on an Ampere or later card: flash without a mask, for equal head widths up to 256 in 16
    bits; the memory-efficient kernel with a mask (in the query's precision) or unequal widths; else the math fallback.

    (On fake tensors torch's own choice is always the math fallback, which no card takes here.)
    """
    scale, grouped = more.get("scale"), bool(more.get("enable_gqa"))
    wide = max(query.shape[-1], value.shape[-1]) > 256
    half = query.dtype in (torch.bfloat16, torch.float16)
    if torch.is_autocast_enabled("cuda") or torch.is_autocast_enabled("cpu"):
        half = True
        query, key, value = (tensor.to(torch.bfloat16) for tensor in (query, key, value))
        attn_mask = attn_mask.to(torch.bfloat16) if attn_mask is not None and attn_mask.is_floating_point() else attn_mask
    if attn_mask is None and half and not wide and query.shape[-1] == key.shape[-1] == value.shape[-1]:
        KERNELS.add("flash")
        return torch.ops.aten._scaled_dot_product_flash_attention(query, key, value, dropout_p, is_causal, False, scale=scale)[0]
    if not grouped and query.shape[1] == key.shape[1]:
        KERNELS.add("efficient")
        if attn_mask is not None:
            mask = torch.zeros(attn_mask.shape, dtype=query.dtype, device=query.device) if attn_mask.dtype == torch.bool else attn_mask
            attn_mask = mask.expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])
        return torch.ops.aten._scaled_dot_product_efficient_attention(
            query, key, value, attn_mask, True, dropout_p, is_causal, scale=scale
        )[0]
    KERNELS.add("math")
    return REAL_ATTENTION(query, key, value, attn_mask=attn_mask, dropout_p=dropout_p, is_causal=is_causal, **more)


REAL_ATTENTION = torch.nn.functional.scaled_dot_product_attention


def packaged(module: Any, query: Any, key: Any, value: Any, attention_mask: Any, **more: Any) -> tuple[Any, None]:
    """What the flash-attn package keeps: it takes and gives (rows, tokens, heads, width), keys and values as they are."""
    KERNELS.add("flash_attention_2")
    by_token = (tensor.transpose(1, 2) for tensor in (query, key, value))
    found = torch.ops.aten._flash_attention_forward(
        *by_token, None, None, query.shape[2], key.shape[2], more.get("dropout", 0.0), True, False, scale=more.get("scaling")
    )
    return found[0], None


transformers.AttentionInterface.register("by_token", packaged)
transformers.AttentionMaskInterface.register("by_token", lambda *_, **__: None)


@contextlib.contextmanager
def fake(device: str = "cuda") -> Iterator[None]:
    """Inside, every tensor is a fake one, on a card that is not there unless said otherwise."""
    before, dispatch = torch.get_default_dtype(), torch.nn.functional.scaled_dot_product_attention
    torch.nn.functional.scaled_dot_product_attention = attention
    for name in ("normal_", "trunc_normal_"):  # there is nothing to draw, and the second reads what it drew
        setattr(transformers.initialization, name, lambda tensor, *_, **__: tensor)
    torch.cuda.amp.common.amp_definitely_not_available = lambda: False
    torch.cuda.is_bf16_supported = lambda *_, **__: True
    torch.cuda.get_device_capability = lambda *_, **__: (8, 0)
    # Whether one row holds several sequences is read from values that fake tensors do not have: it holds one.
    transformers.masking_utils.find_packed_sequence_indices = lambda position_ids: None
    try:
        with FakeTensorMode(allow_non_fake_inputs=True), torch.device(device):
            yield
    finally:
        torch.nn.functional.scaled_dot_product_attention = dispatch
        torch.set_default_dtype(before)
