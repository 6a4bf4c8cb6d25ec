"""What reads like a shortage of memory and is none: named with its reason, never an OOM, and never in the way of one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from collected import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from pace import within
from wordings import Wording, check, figures, only, reading

from diagnose import rule_files
from diagnose.parse.messages import lookalike
from diagnose.phrases import Lang
from diagnose.pipeline import explain

CARD = "triton_shared"
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of "
    "which 1.00 GiB is free."
)
CUBLAS = "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"
ASSERT = (
    "../aten/src/ATen/native/cuda/Indexing.cu:1290: indexSelectLargeIndex: block: [4,0,0], thread: [64,0,0] Assertion "
    "`srcIndex < srcSelectDimSize` failed."
)


def alike(name: str, text: str, reason: str, family: str = "other", **more: object) -> Wording:
    return Wording(name, text, family, "lookalike", reason, **more)  # type: ignore[arg-type]


WORDINGS = [
    alike(
        "triton shared memory",
        "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 147456, Hardware limit: 101376. "
        "Reducing block sizes "
        "or `num_stages` may help.",
        "on_chip",
        CARD,
    ),
    alike(
        "older triton",
        "triton.compiler.errors.OutOfResources: out of resource: shared memory, Required: 1, Hardware limit: 1.",
        "on_chip",
        CARD,
    ),
    alike(
        "tensor memory",
        "triton.runtime.errors.OutOfResources: out of resource: tensor memory, Required: 1024, Hardware limit: 512.",
        "on_chip",
        CARD,
    ),
    alike(
        "inductor",
        "torch._inductor.exc.InductorError: OutOfMemoryError: out of resource: shared memory, Required: 2, Hardware limit: 1.",
        "on_chip",
        CARD,
    ),
    alike(
        "a choice of autotune",
        "E0911 select_algorithm.py:2112] [0/0] Exception out of resource: shared memory, Required: 2, Hardware limit: 1. "
        "for benchmark choice x",
        "on_chip",
        CARD,
        fatal=False,
    ),
    alike(
        "registers",
        "triton.runtime.errors.OutOfResources: out of resource: registers, Required: 2, Hardware limit: 1.",
        "launch_resources",
        CARD,
    ),
    alike("ptxas", "ptxas error   : Entry function 'matmul' uses too much shared data (0x1a000 bytes, 0x18c00 max)", "on_chip", CARD),
    alike("no handle arrives", "RuntimeError: received 0 items of ancdata", "open_files"),
    alike(
        "no handle to open with",
        "RuntimeError: unable to open shared memory object </torch_5566_0> in read-write mode: Too many open files (24)",
        "open_files",
    ),
    alike("launch", "RuntimeError: CUDA error: too many resources requested for launch", "launch_resources"),
    alike(
        "vmem",
        "XlaRuntimeError: RESOURCE_EXHAUSTED: Ran out of memory in memory space vmem. Used {requested:letter} of {capacity:letter} vmem.",
        "on_chip",
    ),
    alike("illegal access", "torch.AcceleratorError: CUDA error: an illegal memory access was encountered", "illegal_access"),
    alike("illegal access in triton", "RuntimeError: Triton Error [CUDA]: an illegal memory access was encountered", "illegal_access"),
    alike("nccl after a fault", "n:1:2 [0] NCCL WARN Cuda failure 700 'an illegal memory access was encountered'", "illegal_access"),
    alike("hip fault", "Memory access fault by GPU node-1 (Agent handle: 0x55) on address 0x7f. Reason: Unknown.", "illegal_access"),
    alike(
        "device assert",
        "RuntimeError: CUDA error: device-side assert triggered\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.",
        "device_assert",
    ),
    alike("assertion", ASSERT, "device_assert"),
    alike("misaligned", "RuntimeError: CUDA error: misaligned address", "misaligned"),
    alike("quota", "OSError: [Errno 122] Disk quota exceeded: '/ckpt/step_100/model.safetensors'", "disk_full"),
    alike("disk", "OSError: [Errno 28] No space left on device", "disk_full"),
    alike(
        "grpc size",
        "grpc._channel._InactiveRpcError: <_InactiveRpcError of RPC that terminated with:\n\tstatus = StatusCode.RESOURCE_EXHAUSTED\n"
        '\tdetails = "Received message larger than max (5000000 vs. 4194304)"',
        "message_too_large",
    ),
    alike(
        "grpc quota",
        "google.api_core.exceptions.ResourceExhausted: 429 RESOURCE_EXHAUSTED: Quota exceeded for quota metric 'Reads'",
        "rate_limit",
    ),
    alike("grpc other", "rpc error: code = ResourceExhausted desc = RESOURCE_EXHAUSTED: no more leases", "service_limit"),
    alike(
        "hub", "requests.exceptions.HTTPError: 429 Client Error: Too Many Requests for url: https://example.org/api/models", "rate_limit"
    ),
    alike(
        "virtual addresses",
        "RuntimeError: [ExpandableSegmentVA] Failed to reserve 4096 (8.00 GiB) of virtual address space for an expandable CUDA segment "
        "on device 0",
        "address_space",
    ),
    alike(
        "virtual addresses in an OutOfMemoryError",
        "torch.OutOfMemoryError: [ExpandableSegmentVA] Failed to reserve 10995116277760 (10240.00 GiB) of virtual address "
        "space for an expandable "
        "CUDA segment on device 0 (out of memory). This process already holds 12 live expandable segment(s)",
        "address_space",
    ),
    alike(
        "segment",
        "[W905 00:28:47 CUDACachingAllocator.cpp:508] expandable_segments: memory mapping failed with OOM on device 0 while trying to map "
        "{requested:bytes} bytes (free: {free:bytes}, total: {capacity:bytes})\nstep 13 loss 1.24",
        "segment_retry",
        "torch_cuda",
        gpu=0,
        fatal=False,
    ),
]


@pytest.mark.parametrize("wording", WORDINGS, ids=lambda wording: wording.name)
@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_each_is_named_with_its_reason(wording: Wording, data: st.DataObject) -> None:
    """One event that is no memory failure and says why."""
    check(wording, data.draw(figures(wording)))


@for_each("wording", WORDINGS)
@for_each("first", [True, False])
def test_none_hides_a_true_failure(wording: Wording, first: bool) -> None:
    """Beside torch's own message the verdict is an OOM, whichever came first."""
    text = wording.printed(dict.fromkeys([name for name, _ in wording.slots], 1 << 20))
    event = only(reading(f"{text}\n{OOM}\n" if first else f"{OOM}\n{text}\n"))
    assert (event.family, event.status, str(event.requested)) == ("torch_cuda", "oom", "2.00 GiB")


@for_each(
    "fault", [ASSERT, "RuntimeError: CUDA error: device-side assert triggered", "CUDA error: an illegal memory access was encountered"]
)
@for_each("after", [CUBLAS, "RuntimeError: cuDNN error: CUDNN_STATUS_INTERNAL_ERROR", "NCCL WARN Cuda failure 'out of memory'"])
def test_what_a_library_says_after_a_fault_is_no_shortage(fault: str, after: str) -> None:
    """Once an assertion failed on the device, no handle can be made: ids out of range, not memory."""
    told = explain(f"{fault}\n{fault}\nTraceback (most recent call last):\n{after}\n")
    root, *echoes = told.events
    assert (told.verdict.status, root.reason in ("device_assert", "illegal_access")) == ("lookalike", True)
    assert [(echo.status, echo.consequence_of) for echo in echoes] == [("none", 0)]


def test_a_library_before_a_fault_is_a_shortage() -> None:
    """Only what comes after the fault follows from it."""
    assert [event.status for event in reading(f"{CUBLAS}\n").events] == ["oom"]
    assert reading(f"{CUBLAS}\n{ASSERT}\n").events[0].status == "oom"


def test_a_segment_that_was_refused_last_may_be_the_failure() -> None:
    """That the allocator tried again and went on can be said only where something stands behind it."""
    line = (
        "[W905 00:28:47 CUDACachingAllocator.cpp:508] expandable_segments: memory mapping failed with OOM on device 0 while trying to map "
    )
    event = reading(f"{line}20971520 bytes (free: 17235968, total: 25295323136).\n").events[0]
    assert (event.status, event.reason) == ("suspected", "pool_refused")


def test_every_reason_has_its_sentence() -> None:
    """Every reason that code or grammar gives can be said in both languages."""
    sentences = rule_files.table("phrases")["reason"]
    parse = Path(lookalike.__file__).parents[1]
    given = {reason for path in parse.rglob("*.py") for reason in re.findall(r'reason="(\w+)"', path.read_text(encoding="utf-8"))}
    given |= set(re.findall(r"^(\w+): ", (rule_files.home() / "grammars" / "lookalike.lark").read_text(encoding="utf-8"), re.MULTILINE)) - {
        "start"
    }
    given |= {"message_too_large", "rate_limit", "service_limit"}
    assert given - {"shared_memory", "triton_launch", "handled"} <= set(sentences)
    assert all(entry["en"] and entry["zh"] for entry in sentences.values())


@for_each("wording", WORDINGS)
@for_each("lang", ["en", "zh"])
def test_the_headline_says_why(wording: Wording, lang: Lang) -> None:
    """A person reads the reason, not only that it is none."""
    text = wording.printed(dict.fromkeys([name for name, _ in wording.slots], 1 << 20))
    headline = explain(text + "\n").verdict.headline.to(lang)
    assert rule_files.table("phrases")["reason"][wording.reason][lang].rstrip(".。") in headline


def test_a_full_shared_memory_is_none_of_them() -> None:
    """/dev/shm is memory of the host, whatever the words for a full disk."""
    line = "RuntimeError: unable to write to file </torch_4121_33_0>: No space left on device (28)"
    assert [(event.family, event.status) for event in reading(f"{line}\n").events] == [("dataloader_shm", "oom")]


def test_a_flood_of_assertions_is_read_in_bounded_time() -> None:
    """A kernel complains once per thread."""

    lines = "\n".join(ASSERT.replace("thread: [64", f"thread: [{number}") for number in range(20000))
    with within(5):
        assert only(reading(f"{lines}\nRuntimeError: CUDA error: device-side assert triggered\n")).reason == "device_assert"


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=300), st.sampled_from(WORDINGS), st.integers(0, 400))
def test_no_text_makes_the_reader_fail(text: str, wording: Wording, cut: int) -> None:
    """A cut message among any characters is read or left, never raises."""
    lookalike.read(wording.printed(dict.fromkeys([name for name, _ in wording.slots], 1 << 20))[:cut] + text)
