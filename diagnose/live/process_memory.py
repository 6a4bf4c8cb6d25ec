"""Memory state of the running process, as lines of a log. Uses only libraries that the job has imported, and never initializes CUDA."""

from __future__ import annotations

import pickle
import re
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, TypeVar

Result = TypeVar("Result")

#: Statistics of torch's allocator that bear on a failure; bytes, except the last two.
STATS = (
    "allocated_bytes.all.current",
    "allocated_bytes.all.peak",
    "requested_bytes.all.current",
    "reserved_bytes.all.current",
    "reserved_bytes.all.peak",
    "inactive_split_bytes.all.current",
    "num_alloc_retries",
    "num_ooms",
)

#: Libraries whose release matters to the rules.
LIBRARIES = ("transformers", "accelerate", "deepspeed", "peft", "trl", "vllm", "bitsandbytes")

_DEVICE = re.compile(r"\bGPU (\d{1,4})\b")


def try_call(call: Callable[[], Result]) -> Result | None:
    """The result of a call, or None if it raises anything: the job is failing already and must not fail twice."""
    try:
        return call()
    except Exception:
        return None


def imported_torch() -> ModuleType | None:
    """The torch module, if the job has imported it."""
    return sys.modules.get("torch")


def world_size() -> int | None:
    """The size of torch's default process group; None if there is none."""
    if imported_torch() is None:
        return None
    group: Any = sys.modules.get("torch.distributed")
    count = try_call(lambda: int(group.get_world_size()) if group.is_available() and group.is_initialized() else None)
    return count if count and count > 0 else None


def log_lines(message: str) -> Iterator[str]:
    """Releases, card and allocator statistics, formatted as tools print them. `message`: the exception's text, which may name the card."""
    for name in LIBRARIES:
        release = try_call(lambda name=name: str(sys.modules[name].__version__))  # type: ignore[misc]
        if release:
            yield f"{name}=={release}"
    library: Any = imported_torch()
    if library is None:
        return
    release = try_call(lambda: str(library.__version__))
    if release:
        yield f"PyTorch version: {release}"
    if not try_call(lambda: library.cuda.is_initialized()):
        return
    match = _DEVICE.search(message)
    device = int(match[1]) if match else try_call(lambda: int(library.cuda.current_device()))
    if device is None:
        return
    card = try_call(lambda: str(library.cuda.get_device_properties(device).name))
    if card:
        yield f"GPU {device}: {card}"
    stats = try_call(lambda: dict(library.cuda.memory_stats(device)))
    if stats:
        yield "torch.cuda.memory_stats: " + ", ".join(f"'{key}': {int(stats[key])}" for key in STATS if key in stats)


def recorded_history() -> bytes | None:
    """The memory snapshot of this process, pickled as torch does; None if torch records no history."""
    library: Any = imported_torch()
    if library is None or not try_call(lambda: library._C._cuda_isHistoryEnabled()):  # noqa: SLF001 - torch has no other name for it
        return None
    return try_call(lambda: pickle.dumps(library.cuda.memory._snapshot(), protocol=4))  # noqa: SLF001 - the documented way


def device_capacity() -> int | None:
    """Bytes of the current card by the driver's count; None if unknown."""
    library: Any = imported_torch()
    if library is None or not try_call(lambda: library.cuda.is_initialized()):
        return None
    return try_call(lambda: int(library.cuda.mem_get_info()[1]))
