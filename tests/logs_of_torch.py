"""Texts of torch's failures, and what the parser makes of texts."""

from __future__ import annotations

from diagnose.parse import log_reader
from diagnose.parse.model.reading import Reading
from diagnose.scan import log_scan
from diagnose.scan.source import Source

SITE = "/opt/env/lib/python3.11/site-packages/"

LOG = (
    "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.64 GiB. GPU 3 has a total capacity of 31.74 GiB of which "
    "1.41 GiB is free. Including non-PyTorch memory, this process has 30.26 GiB memory in use. Of the allocated memory 23.51 GiB is "
    "allocated by PyTorch, and 5.51 GiB is reserved by PyTorch but unallocated.\n"
)


def read(*texts: str | bytes) -> Reading:
    return log_reader.read_logs([log_scan.scan(Source.text(text, f"{number}.log")) for number, text in enumerate(texts)])


def message(gpu: int = 0, requested: str = "4.64 GiB", free: str = "1.41 GiB", allocated: str = "23.51 GiB") -> str:
    return (
        f"CUDA out of memory. Tried to allocate {requested}. GPU {gpu} has a total capacity of 31.74 GiB of which {free} is free. "
        f"Including non-PyTorch memory, this process has 30.26 GiB memory in use. "
        f"Of the allocated memory {allocated} is allocated by PyTorch, "
        "and 5.51 GiB is reserved by PyTorch but unallocated."
    )


def traceback(*frames: tuple[str, str, str]) -> list[str]:
    lines = ["Traceback (most recent call last):"]
    for place, function, statement in frames:
        lines += [f'  File "{SITE}{place}", line 12, in {function}', f"    {statement}"]
    return lines


LOSS = traceback(
    ("transformers/trainer.py", "training_step", "loss = self.compute_loss(model, inputs)"),
    ("torch/nn/modules/module.py", "_call_impl", "return forward_call(*args, **kwargs)"),
    ("torch/nn/functional.py", "cross_entropy", "return torch._C._nn.cross_entropy_loss("),
)
