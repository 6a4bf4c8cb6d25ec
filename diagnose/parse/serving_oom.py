"""What inference engines say when their memory does not reach (grammars/serving_oom.lark)."""

from __future__ import annotations

import re

from diagnose.parse import wording
from diagnose.parse.message import Message
from diagnose.units import Size

#: family, phase and check (the fact log.engine_check) of each statement. The checks want cures of opposite sign.
_SAYS = {
    "no_blocks": ("vllm_kv", "kv_cache", "cache_too_small"),
    "too_long_tokens": ("vllm_kv", "kv_cache", "cache_too_small"),
    "too_long": ("vllm_kv", "kv_cache", "cache_too_small"),
    "free_below": ("vllm_kv", "init", "card_not_free"),
    "sampler": ("vllm_kv", "init", "warm_up"),
    "profiling": ("vllm_kv", "init", "card_in_motion"),
    "sglang_pool": ("sglang_kv", "kv_cache", "cache_too_small"),
    "sglang_tokens": ("sglang_kv", "generation", "cache_too_small"),
}
_SERVED = re.compile(r"max seq len \((\d{1,9})\)")


def goes_on(text: str, line: str) -> bool:
    """Whether a wrapped check goes on in the next line."""
    return "Try" not in text and re.search(r"KV cache|GiB|gpu_memory_utilization|max seq len", line) is not None


def speaks(text: str) -> bool:
    """Whether words about device memory are an engine's own, said after torch's message."""
    return "out of memory occurred when warming up" in text


def read(text: str) -> Message | None:
    """The message in a line; None where none of its words is one."""
    said = next((said for said in wording.statements("serving_oom", wording.collapsed(text)) if said.kind in _SAYS), None)
    if said is None:
        return None
    family, phase, check = _SAYS[said.kind]
    message = Message(family, phase=phase, check=check)
    message.no_cache = said.kind in ("no_blocks", "sglang_pool")
    served = _SERVED.search(text)
    if served and check == "cache_too_small":
        message.served = int(served[1])
    numbers = re.findall(r"\d+(?:\.\d+)?", " ".join(said.words))
    if said.kind == "free_below":
        free, capacity, _, desired = numbers[-4:]
        message.figures = {
            "free": Size.printed(free, "GiB"),
            "capacity": Size.printed(capacity, "GiB"),
            "requested": Size.printed(desired, "GiB"),
        }
    if said.kind == "too_long":
        message.figures = {
            "requested": Size.printed(numbers[0], "GiB"),
            "free": Size.printed(numbers[1], "GiB") if len(numbers) > 1 else None,
        }
    return message
