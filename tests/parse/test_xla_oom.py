"""JAX, XLA and TensorFlow: every body of RESOURCE_EXHAUSTED, the allocator's own log, and the warnings that are no failure."""

from __future__ import annotations

from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wordings import Wording, check, figures, only, reading

from diagnose.facts import Fact
from diagnose.parse.messages import xla_oom
from diagnose.parse.model.reading import Reading

OLD, NEW = "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: ", "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: "
JAX_BFC = "2026-02-03 08:11:40.201412: W external/xla/xla/tsl/framework/bfc_allocator.cc:501] "
TF_BFC = "2023-02-03 08:11:40.201412: W tensorflow/tsl/framework/bfc_allocator.cc:485] "
WORDINGS = [
    Wording("bytes", OLD + "Out of memory while trying to allocate {requested:bytes} bytes.", "jax"),
    Wording("glued", NEW + "Out of memory while trying to allocate {requested:glued}. [executable_name='jit_train_step']", "jax"),
    Wording("allocating", OLD + "Out of memory allocating {requested:bytes} bytes.", "jax"),
    Wording("older status, its size left out", "RuntimeError: Resource exhausted: Out of memory", "jax"),
    Wording(
        "tpu program",
        OLD + "XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used {requested:letter} of {capacity:letter} hbm. "
        "Exceeded hbm capacity by 2.94G.\n\nTotal hbm usage >= 18.92G:\n    reserved        530.00M\n    program          18.42G\n",
        "jax",
    ),
    Wording(
        "tpu buffer",
        OLD + "Error allocating device buffer: Attempting to allocate {requested:letter}. That was not possible. "
        "There are {free:letter} free.; (0x0x0_HBM0)",
        "jax",
    ),
    Wording(
        "tpu bottom",
        OLD + "Error loading program: Attempting to reserve {requested:letter} at the bottom of memory. That was not possible. "
        "There are {free:letter} free, 0B reserved, and 6.63G reservable.",
        "jax",
    ),
    Wording("driver", OLD + ": CUDA_ERROR_OUT_OF_MEMORY: out of memory", "cuda_driver"),
    Wording("without figures", OLD + "Failed to allocate a buffer in the pool", "jax"),
    Wording("tf operation", "ResourceExhaustedError: {{function_node x}} failed to allocate memory [Op:AddV2]", "tf"),
    Wording("tf node", "ResourceExhaustedError: Graph execution error:\n\nfailed to allocate memory\n\t [[{{node Adam/mul}}]]", "tf"),
    Wording("ordinal", OLD + "Failed to allocate request for 6.00GiB ({requested:bytes}B) on device ordinal 3", "jax", gpu=3),
    Wording("jax bfc", JAX_BFC + "Allocator (GPU_2_bfc) ran out of memory trying to allocate {requested:glued} ", "jax", gpu=2),
    Wording(
        "tf bfc",
        TF_BFC + "Allocator (GPU_0_bfc) ran out of memory trying to allocate {requested:glued}.  Current allocation summary follows.",
        "tf",
        gpu=0,
    ),
    Wording(
        "tf retry",
        TF_BFC + "Allocator (GPU_0_bfc) ran out of memory trying to allocate {requested:glued} with freed_by_count=0. The caller indicates "
        "that this is not a failure, but this may mean that there could be performance gains if more memory were available.",
        "tf",
        "lookalike",
        "allocator_retry",
        gpu=0,
        fatal=False,
    ),
    Wording(
        "old tf retry",
        "W tensorflow/core/common_runtime/bfc_allocator.cc:217] Ran out of memory trying to allocate {requested:glued}. The caller "
        "indicates that this is not a failure, but may mean that there could be performance gains if more memory is available.",
        "tf",
        "lookalike",
        "allocator_retry",
        fatal=False,
    ),
    Wording(
        "tf growth",
        "I tensorflow/stream_executor/cuda/cuda_driver.cc:763] failed to allocate 343.34M ({requested:bytes} bytes) from device: "
        "CUDA_ERROR_OUT_OF_MEMORY: out of memory",
        "tf",
        "suspected",
        "pool_refused",
    ),
    Wording(
        "tf growth of 2.16",
        "W external/local_xla/xla/stream_executor/cuda/cuda_driver.cc:901] failed to allocate 2.00GiB ({requested:bytes} "
        "bytes) from device: "
        "RESOURCE_EXHAUSTED: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
        "tf",
        "suspected",
        "pool_refused",
    ),
]


@pytest.mark.parametrize("wording", WORDINGS, ids=lambda wording: wording.name)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_what_is_printed_is_read_back(wording: Wording, data: st.DataObject) -> None:
    """One event of the right family; every printed figure inside its interval, nothing that was not printed."""
    check(wording, data.draw(figures(wording)))


WIDTHS = {"float": 4, "half": 2, "bfloat16": 2, "double": 8, "int64": 8, "bool": 1, "complex128": 16}


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 4096), min_size=1, max_size=4), st.sampled_from(sorted(WIDTHS)), st.integers(0, 7))
def test_shape_and_type_are_exact_bytes(shape: list[int], dtype: str, card: int) -> None:
    """TensorFlow prints no size, but all that makes one; one that no memory can have is unknown."""
    event = only(
        reading(
            "tensorflow.python.framework.errors_impl.ResourceExhaustedError: {{function_node __wrapped__MatMul}} OOM when "
            "allocating tensor "
            f"with shape[{','.join(map(str, shape))}] and type {dtype} on /job:localhost/replica:0/task:0/device:GPU:{card} by allocator "
            f"GPU_{card}_bfc [Op:MatMul]\n"
        )
    )
    count = prod(shape) * WIDTHS[dtype]
    assert (event.family, event.gpu) == ("tf", card)
    assert (event.requested.bytes if event.requested else None) == (count if count <= 2**50 else None)


def test_a_tensor_on_the_host_is_host_memory() -> None:
    """The same words with another device."""
    event = only(
        reading(
            "ResourceExhaustedError: OOM when allocating tensor with shape[8,8] and type float on /job:localhost/device:CPU:0 "
            "by allocator cpu\n"
        )
    )
    assert (event.family, event.gpu) == ("cpu_allocator", None)


DUMP = (
    "{bfc}Allocator (GPU_0_bfc) ran out of memory trying to allocate 4.50GiB (rounded to 4831838208){end}requested by op {op}\n"
    "If the cause is memory fragmentation maybe the environment variable 'TF_GPU_ALLOCATOR=cuda_malloc_async' will "
    "improve the situation. \n"
    "Current allocation summary follows.\n"
    "{info}BFCAllocator dump for GPU_0_bfc\n"
    "{info}Bin (256): \tTotal Chunks: 11, Chunks in use: 11. 2.8KiB allocated for chunks. 2.8KiB in use in bin. 88B "
    "client-requested in use in bin.\n"
    "{info}Stats: \n"
    "Limit:                     16106127360\nInUse:                     14495514624\nMaxInUse:                  14495514880\n"
    "NumAllocs:                       12345\nMaxAllocSize:               2147483648\nReserved:                            0\n\n"
    "{info}*****___****\n"
)


@pytest.mark.parametrize("end", ["", " from the lower end "])
def test_log_dump_and_exception_of_one_shortage_are_one_event(end: str) -> None:
    """The allocator's warning, its statistics and the exception: the pool's limit and use are the best figures of the whole log."""
    text = DUMP.format(bfc=JAX_BFC, info=JAX_BFC.replace(" W ", " I "), end=end, op="")
    event = only(reading(f"{text}{NEW}Out of memory while trying to allocate 4831838208 bytes.\n"))
    assert (event.family, event.exception) == ("jax", "jax.errors.JaxRuntimeError")
    assert event.requested is not None and 4831838208 in event.requested
    assert event.allowed is not None and event.allowed.bytes == 16106127360
    assert event.allocated is not None and event.allocated.bytes == 14495514624


def test_the_same_dump_of_tensorflow() -> None:
    """The path of the source tells whose allocator it is; the exception names the tensor."""
    text = DUMP.format(bfc=TF_BFC, info=TF_BFC.replace(" W ", " I "), end="", op="StatefulPartitionedCall")
    event = only(
        reading(
            f"{text}tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape[1024,1179648] "
            "and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc [Op:Mul]\n"
        )
    )
    assert (event.family, event.gpu, event.fatal) == ("tf", 0, True)
    assert event.allocated is not None and event.allocated.bytes == 14495514624


def test_retries_before_a_failure_are_not_the_failure() -> None:
    """Ten warnings that are none, then the exception."""
    warning = next(one for one in WORDINGS if one.name == "tf retry").printed({"requested": 3 << 30})
    event = only(
        reading(
            f"{warning}\n" * 10
            + f"{TF_BFC}ResourceExhaustedError: OOM when allocating tensor with shape[9] and type float on /job:x/device:GPU:0\n"
        )
    )
    assert (event.status, event.fatal, event.requested and event.requested.bytes) == ("oom", True, 36)


@pytest.mark.parametrize(("behind", "status"), [("", "suspected"), ("Epoch 1: loss 0.31\n", "lookalike"), ("\n\n", "suspected")])
def test_a_pool_that_is_refused_may_go_on_where_something_is_printed_behind_it(behind: str, status: str) -> None:
    growth = next(one for one in WORDINGS if one.name == "tf growth").printed({"requested": 360_022_016})
    assert only(reading(f"{growth}\n{behind}")).status == status


def test_a_tensor_without_a_type_has_about_the_size_of_float32() -> None:
    event = only(reading("ResourceExhaustedError (see above for traceback): OOM when allocating tensor with shape[2394,64,128,128]\n"))
    assert event.requested is not None
    assert (str(event.requested), event.requested.bytes) == ("9.35 GiB (float32)", 2394 * 64 * 128 * 128 * 4)
    assert 2394 * 64 * 128 * 128 * 2 in event.requested


def test_what_tensorflow_prints_of_a_card() -> None:
    old = reading(
        f"Total memory: 7.92GiB\nFree memory: 190.31MiB\n{TF_BFC}ResourceExhaustedError: OOM when allocating tensor with shape[9]\n"
    )
    new = reading(f"totalMemory: 10.92GiB freeMemory: 10.75GiB\n{TF_BFC}ResourceExhaustedError: OOM when allocating tensor with shape[9]\n")
    assert said(old, "log.capacity", "log.free_at_start") == ["7.92 GiB", "190.31 MiB"]
    assert said(new, "log.capacity", "log.free_at_start") == ["10.92 GiB", "10.75 GiB"]


def test_what_a_compiled_program_needs() -> None:
    """The block of buffer assignment is about the whole program, not about the one buffer that failed."""
    read = reading(
        f"{OLD}Out of memory allocating 4831838208 bytes.\nBufferAssignment OOM Debugging.\nBufferAssignment stats:\n"
        "             parameter allocation:    7.50GiB\n              constant allocation:         0B\n"
        "        maybe_live_out allocation:    1.50GiB\n     preallocated temp allocation:    4.50GiB\n"
        "                 total allocation:   13.50GiB\n              Peak buffers:\n\tBuffer 1:\n\t\tSize: 2.00GiB\n"
    )
    assert said(read, "log.program_parameters", "log.program_temporary", "log.program_total") == ["7.50GiB", "4.50GiB", "13.50GiB"]
    assert only(read).requested is not None and str(only(read).requested) == "4831838208 bytes"


def test_the_least_that_the_compiler_came_to() -> None:
    """Its warning has the peak of the program; the failure names one buffer."""
    read = reading(
        "W rematerialization.cc:3020] Can't reduce memory use below 9.75GiB (10468982784 bytes) by rematerialization; only "
        "reduced to 15.20GiB "
        f"(16320875725 bytes), down from 16.10GiB (17287243571 bytes) originally\n{OLD}Out of memory allocating 4831838208 bytes.\n"
    )
    assert said(read, "log.program_peak", "log.requested") == ["15.20 GiB", "4831838208 bytes"]


def said(read: Reading, *names: str) -> list[str]:
    facts: dict[str, Fact] = {}
    for fact in read.facts:
        facts.setdefault(fact.name, fact)
    return [str(facts[name].value) for name in names]


def test_a_status_cut_before_its_words_is_only_suspected() -> None:
    """XLA's class says whose status it is; what was exhausted stands behind the cut."""
    event = only(reading("jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: \n"))
    assert (event.family, event.status, event.reason) == ("jax", "suspected", "cut_off")


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=300), st.sampled_from(WORDINGS), st.integers(0, 400))
def test_no_text_makes_the_reader_fail(text: str, wording: Wording, cut: int) -> None:
    """A cut message among any characters is read or left, never raises."""
    xla_oom.read(wording.printed(dict.fromkeys([name for name, _ in wording.slots], 1 << 30))[:cut] + text)
