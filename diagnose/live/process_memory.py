"""What the job's process knows of its memory, as the lines of a log. Only what is imported already is asked, and CUDA is never begun."""

from __future__ import annotations

import pickle
import re
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, TypeVar

Answer = TypeVar("Answer")

#: Counters of the allocator that say something of a failure; bytes, except the last two.
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

#: Libraries whose releases decide what applies.
LIBRARIES = ("transformers", "accelerate", "deepspeed", "peft", "trl", "vllm", "bitsandbytes")

_DEVICE = re.compile(r"\bGPU (\d{1,4})\b")


def asked(question: Callable[[], Answer]) -> Answer | None:
    """The answer; None where asking fails, for whatever reason: the job is in trouble already."""
    try:
        return question()
    except Exception:
        return None


def torch() -> ModuleType | None:
    """torch, where the job has imported it."""
    return sys.modules.get("torch")


def world() -> int | None:
    """How many processes train together; None where nothing says."""
    if torch() is None:
        return None
    group: Any = sys.modules.get("torch.distributed")
    count = asked(lambda: int(group.get_world_size()) if group.is_available() and group.is_initialized() else None)
    return count if count and count > 0 else None


def lines(message: str) -> Iterator[str]:
    """Releases, card, allocator: lines as tools print them. `message` names the card that failed."""
    for name in LIBRARIES:
        release = asked(lambda name=name: str(sys.modules[name].__version__))  # type: ignore[misc]
        if release:
            yield f"{name}=={release}"
    library: Any = torch()
    if library is None:
        return
    release = asked(lambda: str(library.__version__))
    if release:
        yield f"PyTorch version: {release}"
    if not asked(lambda: library.cuda.is_initialized()):
        return
    named = _DEVICE.search(message)
    device = int(named[1]) if named else asked(lambda: int(library.cuda.current_device()))
    if device is None:
        return
    card = asked(lambda: str(library.cuda.get_device_properties(device).name))
    if card:
        yield f"GPU {device}: {card}"
    stats = asked(lambda: dict(library.cuda.memory_stats(device)))
    if stats:
        yield "torch.cuda.memory_stats: " + ", ".join(f"'{key}': {int(stats[key])}" for key in STATS if key in stats)


def history() -> bytes | None:
    """What torch's allocator has recorded of this process, as it writes it to a file; None where nothing is recorded."""
    library: Any = torch()
    if library is None or not asked(lambda: library._C._cuda_isHistoryEnabled()):  # noqa: SLF001 - torch has no other name for it
        return None
    return asked(lambda: pickle.dumps(library.cuda.memory._snapshot(), protocol=4))  # noqa: SLF001 - the documented way


def capacity() -> int | None:
    """Bytes of the current card as the driver counts them; None where it cannot say."""
    library: Any = torch()
    if library is None or not asked(lambda: library.cuda.is_initialized()):
        return None
    return asked(lambda: int(library.cuda.mem_get_info()[1]))
