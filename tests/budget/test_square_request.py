"""A request to the byte that is a square names its tensor; sizes that mean nothing do not."""

from __future__ import annotations

import random

import pytest

from diagnose import explain
from diagnose.budget.attribution.square_request import square_tensor
from diagnose.parse.model.event import Event
from diagnose.units import Size

HOST = "RuntimeError: [enforce fail at alloc_cpu.cpp:75] . DefaultCPUAllocator: can't allocate memory: you tried to allocate {} bytes."
METAL = "RuntimeError: [metal::malloc] Attempting to allocate {} bytes which is greater than the maximum allowed buffer size of 9 bytes."


@pytest.mark.parametrize(
    ("log", "size", "numbers"),
    [
        (HOST, 4 * 51_473**2, "4*51473*51473"),
        (HOST, 4 * 12 * 9_011**2, "4*12*9011*9011"),
        (METAL, 2 * 32 * 13_007**2, "4*16*13007*13007"),  # 16 heads in 32 bits and 32 in 16 are one figure
    ],
)
def test_a_square_names_itself(log: str, size: int, numbers: str) -> None:
    assert [made.numbers for made in explain(log.format(size)).attributions][:1] == [numbers]


@pytest.mark.parametrize("size", [4 * 1280 * 1920 * 9, 2**30, 4 * 4096**2, 4 * 51_473**2 + 4, 4 * 12 * 9_011 * 9_012])
def test_other_products_are_no_squares(size: int) -> None:
    assert square_tensor(Event(family="cpu_allocator", requested=Size.exactly(size)), 0) is None


def test_sizes_that_mean_nothing_are_none() -> None:
    draw = random.Random(1)
    sizes = [4 * draw.randrange(5 * 2**20, 20 * 2**30) for _ in range(10_000)]
    assert sum(square_tensor(Event(family="cpu_allocator", requested=Size.exactly(size)), 0) is not None for size in sizes) <= 10
