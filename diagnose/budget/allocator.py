"""From the bytes of a tensor to the figure that the allocator prints for them."""

from __future__ import annotations

from diagnose.units import Size, torch_prints

MIB = 2**20

#: What Ascend's copy of the allocator puts in front of every tensor, in bytes.
NPU_HEADER = 32

#: Requests of these sizes stand for every small tensor: they name nothing.
NAMELESS = (2 * MIB, 20 * MIB)

#: Steps of the allocator within which a figure that torch printed is met from either end of its rounding.
NEAR = 16


def block(tensor: int, family: str = "torch_cuda") -> int:
    """The block that the caching allocator asks for: 2 MiB, 20 MiB, or a multiple of 2 MiB
    (c10/cuda/CUDACachingAllocator.cpp). Ascend's copy adds 32 bytes first; MPS asks for what it needs."""
    if family == "torch_mps":
        return tensor
    if family == "torch_npu":
        tensor += NPU_HEADER
    tensor = -(-tensor // 512) * 512
    if tensor <= MIB:
        return 2 * MIB
    if tensor < 10 * MIB:
        return 20 * MIB
    return -(-tensor // (2 * MIB)) * 2 * MIB


def prints_as(tensor: int, requested: Size, family: str = "torch_cuda") -> bool:
    """Whether a tensor of so many bytes would have been printed as this request."""
    whole = block(tensor, family)
    if requested.text and family != "torch_mps":
        return torch_prints(whole) == requested.text
    return whole in requested


def nameless(requested: Size, family: str = "torch_cuda") -> bool:
    """Whether the request is one of the two figures that stand for any small tensor."""
    return family != "torch_mps" and any(requested.low <= size <= requested.high for size in NAMELESS)


def window(requested: Size, family: str = "torch_cuda") -> tuple[int, int]:
    """The smallest and largest tensor that would print as this request."""
    low, high = requested.low, requested.high
    if family == "torch_mps":
        return low, high
    step = 2 * MIB
    bottom, top = -(-low // step) * step, high // step * step
    first = next((size for size in range(bottom, min(high, bottom + NEAR * step) + 1, step) if _text(size, requested)), low)
    last = next((size for size in range(top, max(low, top - NEAR * step) - 1, -step) if _text(size, requested)), high)
    added = NPU_HEADER if family == "torch_npu" else 0
    return max(1, first - step + 1 - added), last - added


def _text(size: int, requested: Size) -> bool:
    return not requested.text or torch_prints(size) == requested.text
