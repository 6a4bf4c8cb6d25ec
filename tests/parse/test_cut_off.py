"""Logs that end within a number: the digits that are there are no figure."""

from __future__ import annotations

import re

from collected import for_each
from wordings import FIGURES

from diagnose.parse import log_reader
from diagnose.scan import log_scan
from diagnose.scan.source import Source

MESSAGES = [
    "node7:41233:41877 [5] include/alloc.h:214 NCCL WARN Failed to CUDA calloc async 4194304 bytes",
    "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 12.50GiB. [executable_name='jit_train_step']",
    "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 13421772800 bytes.",
    "RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 18.42G of 15.48G hbm. Exceeded hbm capacity by 2.94G.",
    (
        "W external/xla/xla/tsl/framework/bfc_allocator.cc:501] Allocator (GPU_0_bfc) ran out of memory trying to allocate 4.50GiB "
        "(rounded to 4831838208)requested by op "
    ),
    (
        "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 8,589,934,592 bytes (allocated so far: 16,106,127,360 bytes, "
        "limit set to: 17,179,869,184 bytes)."
    ),
    "AssertionError: Error in memory profiling. Initial free memory 41.37 GiB, current free memory 58.90 GiB. This happens when",
    "ValueError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes. pre_model_load_memory=23.125, local=78.5",
    "Last State: Terminated\nReason: OOMKilled\nExit Code: 137\nLimits:\n  memory: 64Gi\n",
    "ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate buffer of size 9663676416\n",
    (
        "RuntimeError: [enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate "
        "2491416576 bytes. Error code 12 (Cannot allocate memory)"
    ),
    "slurmstepd: error: StepId=441.0 exceeded memory limit (68719480832 > 68719476736), being killed",
    (
        "CUDA out of memory. Tried to allocate 392.00 MiB (GPU 0; 10.92 GiB total capacity; 9.71 GiB already allocated; 203.44 MiB free; "
        "10.02 GiB reserved in total by PyTorch)"
    ),
]


def printed(text: str) -> set[tuple[str, int]]:
    """Every figure of every event, by name and value."""
    events = log_reader.read_logs([log_scan.scan(Source.text(text, "job.log"))]).events
    return {(name, size.bytes) for event in events for name in FIGURES if (size := getattr(event, name)) is not None}


@for_each("message", MESSAGES)
def test_no_figure_of_a_number_that_was_cut(message: str) -> None:
    """A disk that filled up, a paste of the first 2000 characters: 134217 of 13421772800 bytes is no request."""
    whole = printed(message)
    assert whole
    for digit in re.finditer(r"\d(?=[\d.,])", message):
        assert printed(message[: digit.end()]) <= whole, message[: digit.end()]


@for_each("message", MESSAGES)
def test_what_ends_a_line_is_whole(message: str) -> None:
    """A number at the end of a line that has an end was printed in full."""
    assert printed(message.rstrip("\n") + "\n") == printed(message + "\nbye\n")
