"""Messages of the CUDA runtime, of libraries on it and of kernels (grammars/runtime_oom.lark)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from diagnose.parse import wording
from diagnose.parse.message import Message
from diagnose.units import Size

if TYPE_CHECKING:
    from diagnose.parse.wording import Statement

_LIBRARY = {"CUBLAS": "cublas", "HIPBLAS": "cublas", "CUDNN": "cudnn", "CUSOLVER": "cusolver"}


def goes_on(text: str, line: str) -> bool:
    """Wrapped before its figures: the resource that a kernel lacks."""
    return text.rstrip().endswith((",", "out of resource:")) and re.match(r"\s*(?:Required|Hardware|shared)", line) is not None


def read(text: str) -> Message | None:
    """The message in a line; None where none of its words is one."""
    messages = map(_message, wording.statements("runtime_oom", wording.collapsed(text)))
    return next((message for message in messages if message is not None), None)


def _message(said: Statement) -> Message | None:
    word = said.words[0] if said.words else ""
    match said.kind:
        case "driver":
            return Message("cuda_driver")
        case "hip":
            return Message("torch_hip")
        case "library":
            # NOT_INITIALIZED is usually the same shortage, but a failed assertion on the device prints it as well
            return Message(_LIBRARY.get(word.split("_")[0], "other"), "oom" if "ALLOC" in word else "suspected")
        case "nccl":
            return Message("nccl", weight=1)
        case "nccl_request":
            return Message("nccl", figures={"requested": Size.printed(word, "bytes")})
        case "on_chip":
            return Message("triton_shared", "lookalike", phase="compile")
        case "cupy":
            return Message("cupy", figures={"requested": Size.printed(word.replace(",", ""), "bytes")})
        case "jax":
            return Message("jax", figures={"requested": _jax_size(said.word("SIZE", "INT"))})
    return None


def _jax_size(text: str) -> Size | None:
    """XLA glues the unit to the number, and TPUs print it as one letter."""
    match = re.match(r"(\d+(?:\.\d+)?)\s*([KMGT]?)", text)
    return Size.printed(match[1], f"{match[2]}iB" if match[2] else "bytes") if match else None
