"""Memory snapshots as torch would write them, of made-up cards."""

from __future__ import annotations

from typing import Any, TypeAlias

MIB = 2**20

GIB = 2**30

SITE = "/opt/venv/lib/python3.11/site-packages"


#: Defines `peak`: the MiB that a process reached. (Its ru_maxrss begins with that of the process that started it.)
PEAK = "def peak(): return int(open('/proc/self/status').read().partition('VmHWM:')[2].split()[0]) >> 10\n"


def frames(*names: tuple[str, int, str]) -> list[dict[str, Any]]:
    return [{"filename": file, "line": line, "name": name} for file, line, name in names]


MINE = ("/home/alice/train.py", 33, "main")

WEIGHTS = frames((f"{SITE}/torch/nn/modules/module.py", 1160, "convert"), (f"{SITE}/torch/nn/modules/module.py", 900, "_apply"), MINE)

STATES = frames((f"{SITE}/torch/optim/adamw.py", 150, "_init_group"), (f"{SITE}/torch/optim/adamw.py", 220, "step"), MINE)

LOSS = frames(
    (f"{SITE}/torch/nn/functional.py", 3479, "cross_entropy"),
    (f"{SITE}/transformers/loss/loss_utils.py", 36, "fixed_cross_entropy"),
    MINE,
)

LAYER = frames(
    ("/build/aten/src/ATen/EmptyTensor.cpp", 0, "empty_cuda"),
    (f"{SITE}/torch/nn/modules/linear.py", 125, "forward"),
    (f"{SITE}/transformers/models/llama/modeling_llama.py", 163, "forward"),
    MINE,
)

#: log-softmax of 1 x 8,191 tokens over 128,256 entries in fp32.
LOGITS = 4 * 8191 * 128256

Block: TypeAlias = tuple[int, int, str, list[dict[str, Any]]]


def segment(blocks: list[Block], stream: int = 0, pool: tuple[int, int] = (0, 0), device: int = 0) -> dict[str, Any]:
    made: list[dict[str, Any]] = [
        {"size": size, "requested_size": asked, "state": state, "frames": at} for size, asked, state, at in blocks
    ]
    total = sum(block["size"] for block in made)
    return {
        "device": device,
        "address": 1 << 46,
        "total_size": total,
        "stream": stream,
        "segment_type": "large",
        "segment_pool_id": pool,
        "is_expandable": False,
        "frames": [],
        "blocks": made,
    }


def used(size: int, at: list[dict[str, Any]], waste: int = 0) -> Block:
    return size, size - waste, "active_allocated", at


def free(size: int) -> Block:
    return size, 0, "inactive", []


def oom(size: int, free: int = 3 * GIB) -> dict[str, Any]:
    return {"action": "oom", "device_free": free, "size": -(-size // 512) * 512, "stream": 0, "time_us": 99, "frames": LOSS}


def alloc(size: int, action: str = "alloc") -> dict[str, Any]:
    return {"action": action, "addr": 1, "size": size, "stream": 0, "time_us": 1, "frames": LAYER}


def made(size: int = LOGITS, *more: dict[str, Any], after: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    """One card: weights, states, six layers with a hole behind each, and a history that ends in a failed request of so many bytes."""
    segments = [
        segment([used(16 * GIB, WEIGHTS, waste=100)]),
        segment([used(32 * GIB, STATES)]),
        *(segment([used(GIB, LAYER), free(900 * MIB)]) for _ in range(6)),
        *more,
    ]
    history = [*(alloc(64 * MIB) for _ in range(50)), oom(size), *after]
    return {"segments": segments, "device_traces": [history, []], "allocator_settings": {"expandable_segments": False}}


MESSAGE = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.91 GiB."
    " GPU 0 has a total capacity of 79.15 GiB of which 3.00 GiB is free."
    " Including non-PyTorch memory, this process has 76.00 GiB memory in use."
    " Of the allocated memory 70.10 GiB is allocated by PyTorch, and 5.27 GiB is reserved by PyTorch but unallocated."
)
