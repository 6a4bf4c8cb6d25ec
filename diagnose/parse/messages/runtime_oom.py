"""Messages of runtimes, drivers and libraries on a device (grammars/runtime_oom.lark)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from diagnose.parse.messages.message_spec import Saying
from diagnose.parse.text import grammar_statements

if TYPE_CHECKING:
    from diagnose.parse.model.message import Message
    from diagnose.parse.text.grammar_statements import Statement

#: What each statement means.
_SAYS = {
    "driver": Saying("cuda_driver"),
    "pinned": Saying("pinned_host", figures=("requested",)),
    "hip": Saying("torch_hip"),
    "xpu": Saying("torch_xpu"),
    "ascend": Saying("torch_npu"),
    "ascend_request": Saying("torch_npu", figures=("requested",)),
    "metal": Saying("torch_mps"),
    "metal_buffer": Saying("torch_mps", figures=("requested",)),
    "mlx_buffer": Saying("torch_mps", figures=("requested",)),
    "mlx": Saying("torch_mps", figures=("requested",)),
    "preempted": Saying("torch_cuda", figures=("requested", "allocated", "allowed", "capacity"), fatal=False, weight=-1),
    "nvml": Saying("torch_cuda"),
    "engine": Saying("cudnn", "suspected", reason="no_engine"),
    "gave_up": Saying("other"),
    "nccl": Saying("nccl", weight=1),
    "nccl_request": Saying("nccl", figures=("requested",)),
    "cupy": Saying("cupy", figures=("requested", "allocated", "allowed")),
    "rmm": Saying("other"),
    "paddle": Saying("other", figures=("gpu", "requested", "allocated", "free")),
    "mindspore_free": Saying("other", figures=("free", "requested")),
    "mindspore": Saying("other", figures=("requested",)),
    "onnx": Saying("other", figures=("requested",)),
    "tensorrt": Saying("other", figures=("requested",)),
    "habana": Saying("other", figures=("requested",)),
}
PARTED_BYTES = True  # CuPy prints 8,589,934,592 bytes
#: Statuses of libraries, by the library that the status names first.
_LIBRARIES = {"CUBLAS": "cublas", "HIPBLAS": "cublas", "CUDNN": "cudnn", "CUSOLVER": "cusolver"}


def goes_on(text: str, line: str) -> bool:
    """Wrapped before its figures; TensorRT says on a second line how much it was."""
    if "Cuda Runtime (out of memory)" in text:
        return "Requested amount of GPU memory (" in line
    return (
        re.search(r"[:,(]\s*$|allocat(?:e|ing)$", text) is not None and re.match(r"\s*\(?\[?[\d,]+ ?(?:bytes|[KMGT]i?B)", line) is not None
    )


def read(text: str) -> Message | None:
    """The message in a line; None where none of its words is one. A statement with figures speaks before one without."""
    messages = [
        message
        for message in map(_message, grammar_statements.statements("runtime_oom", grammar_statements.collapsed(text)))
        if message is not None
    ]
    return next((message for message in messages if message.figures), messages[0] if messages else None)


def _message(said: Statement) -> Message | None:
    if said.kind in ("library", "library_maybe"):
        name = re.search(r"(CUBLAS|HIPBLAS|CUDNN|CUSOLVER)_", said.words[0])
        family = _LIBRARIES.get(name[1], "other") if name else "other"
        return (Saying(family) if said.kind == "library" else Saying(family, "suspected", reason="library_status")).message(said)
    row = _SAYS.get(said.kind)
    return row.message(said) if row is not None else None
