"""The allocator's message of every torch release: what is printed is read back, and nothing more is claimed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from collected import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from sweep import examples
from wordings import Wording, check, figures, reading

from diagnose.parse import log_reader
from diagnose.parse.messages import device_oom
from diagnose.parse.model.event import Event
from diagnose.pipeline import explain
from diagnose.scan import log_scan
from diagnose.scan.source import Source
from diagnose.units import Size, torch_prints

Figures = dict[str, str]
Release = Callable[[Figures], str]


class Asked(dict[str, str]):
    """Figures that remember which of them a release prints."""

    def __init__(self, figures: Figures) -> None:
        super().__init__(figures)
        self.asked: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.asked.add(name)
        return super().__getitem__(name)


def read(text: str | bytes) -> list[Event]:
    return list(log_reader.read_logs([log_scan.scan(Source.text(text, "job.log"))]).events)


def only(text: str | bytes) -> Event:
    events = read(text)
    assert len(events) == 1, events
    return events[0]


def torch_10(f: Figures) -> str:
    return (
        f"CUDA out of memory. Tried to allocate {f['requested']} (GPU 3; {f['capacity']} total capacity; "
        f"{f['allocated']} already allocated; "
        f"{f['free']} free; {f['reserved_unallocated']} cached)"
    )


def torch_14(f: Figures) -> str:
    return (
        f"CUDA out of memory. Tried to allocate {f['requested']} (GPU 3; {f['capacity']} total capacity; "
        f"{f['allocated']} already allocated; "
        f"{f['free']} free; {f['reserved_total']} reserved in total by PyTorch)"
    )


def torch_20(f: Figures) -> str:
    return torch_14(f).replace(" free;", f" free; {f['allowed']} allowed;") + (
        " If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.  See documentation"
    )


def torch_21(f: Figures) -> str:
    return (
        f"CUDA out of memory. Tried to allocate {f['requested']}. GPU 3 has a total capacty of {f['capacity']} of which "
        f"{f['free']} is free. "
        f"Process 18211 has {f['other']} memory in use. "
        f"Including non-PyTorch memory, this process has {f['process_in_use']} memory in use. "
        f"Of the allocated memory {f['allocated']} is allocated by PyTorch, "
        f"and {f['reserved_unallocated']} is reserved by PyTorch but unallocated. "
        "If reserved but unallocated memory is large try setting max_split_size_mb to avoid fragmentation."
    )


def torch_26(f: Figures) -> str:
    text = torch_21(f).replace("capacty", "capacity")
    text = text.replace("Of the allocated", f"{f['allowed']} allowed; Of the allocated")
    return text.replace("by PyTorch, and", f"by PyTorch, with {f['private_pools']} allocated in private pools (e.g., CUDA Graphs), and", 1)


def torch_212(f: Figures) -> str:
    return (
        "CUDA out of memory. Allocation was preemptively rejected because it would exceed per_process_memory_fraction limit. "
        f"Requested size: {f['requested']}"
    )


def async_allocator(f: Figures) -> str:
    return (
        "Allocation on device 3 would exceed allowed memory. (out of memory)\n"
        f"Currently allocated     : {f['allocated']}\nRequested               : {f['requested']}\n"
        f"Device limit            : {f['capacity']}\n"
        f"Free (according to CUDA): {f['free']}\n"
        f"PyTorch limit (set by user-supplied memory fraction)\n                        : {f['allowed']}"
    )


def npu(f: Figures) -> str:
    return (
        f"NPU out of memory. Tried to allocate {f['requested']} (NPU 3; {f['capacity']} total capacity; "
        f"{f['allocated']} already allocated; "
        f"{f['current_active']} current active; {f['free']} free; "
        f"{f['reserved_total']} reserved in total by PyTorch).If reserved memory is >> "
    )


def mlu(f: Figures) -> str:
    return torch_26(f).replace("CUDA out", "MLU out").replace("GPU 3", "MLU 3").replace(" is free", "is free")


def mps(f: Figures) -> str:
    return (
        f"MPS backend out of memory (MPS allocated: {f['mps_allocated']}, "
        f"other allocations: {f['other_allocations']}, max allowed: {f['max_allowed']})."
        f" Tried to allocate {f['requested']} on private pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable"
    )


RELEASES = [torch_10, torch_14, torch_20, torch_21, torch_26, torch_212, async_allocator, npu, mlu, mps]
NAMES = [
    *("requested", "capacity", "free", "allowed", "process_in_use", "allocated", "reserved_unallocated", "reserved_total"),
    *("private_pools", "current_active", "mps_allocated", "other_allocations", "max_allowed", "other"),
]


@pytest.mark.parametrize("release", RELEASES)
@settings(max_examples=examples(15), deadline=None)
@given(data=st.data())
def test_what_a_release_prints_is_read_back(release: Release, data: st.DataObject) -> None:
    """Every figure comes back as printed, its true value inside the interval; what a release does not print stays unknown."""
    exact = {name: data.draw(st.integers(0, 190 << 30), name) for name in NAMES}
    printed = Asked({name: torch_prints(count) for name, count in exact.items()})
    text = release(printed)
    event = only("[rank3]: torch.OutOfMemoryError: " + text.replace("\n", "\n[rank3]: ") + "\n")
    for name in set(NAMES) - {"other"}:
        size = getattr(event, name)
        assert (size.text if size else None) == (dict.get(printed, name) if name in printed.asked else None), name
        assert size is None or exact[name] in size
    assert event.rank == 3
    assert event.gpu == (None if release in (mps, torch_212) else 3)
    assert [other.in_use for other in event.other_processes] == (
        [Size.printed(*printed["other"].split())] if release in (torch_21, torch_26, mlu) else []
    )


@pytest.mark.parametrize("release", RELEASES)
@settings(max_examples=10, deadline=None)
@given(cut=st.integers(0, 400))
def test_a_message_cut_anywhere_keeps_what_stands_before_the_cut(release: Release, cut: int) -> None:
    """Chat windows and issue titles cut messages; a figure is read whole or not at all."""
    printed = {name: f"{i + 1}.25 GiB" for i, name in enumerate(NAMES)}
    text: str = release(printed)[:cut]
    message = device_oom.read(text)
    for name, size in (message.figures if message else {}).items():
        assert size is not None
        assert size.text == printed[name], text


@for_each("index", range(32))
def test_the_raw_device_index_of_torch_2_3(index: int) -> None:
    """GPU 0 is a NUL, 10 a line end, 13 a carriage return, 27 the start of a colour."""
    head, tail = (
        b"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.11 GiB. GPU ",
        b" has a total capacity of 39.39 GiB of which",
    )
    event = only(b"step 1\n" + head + bytes([index]) + tail + b" 1.72 GiB is free.\nbye\n")
    assert (event.gpu, str(event.capacity), str(event.free)) == (index, "39.39 GiB", "1.72 GiB")
    assert event.evidence[0].line == 2


def test_a_message_typed_again_by_hand() -> None:
    event = only(
        "cuda out of memory, tried to allocate 50MiB(GPU 0; 1.96GiB totalcapacity;1.33GiB already allocated; 43.5MiB free;1.36 GiB "
        "reserved in total by Pytorch)"
    )
    assert [str(size) for size in (event.requested, event.capacity, event.allocated, event.free, event.reserved_total)] == [
        *("50 MiB", "1.96 GiB", "1.33 GiB", "43.5 MiB", "1.36 GiB")
    ]


def test_the_body_of_a_message_is_enough() -> None:
    """People quote it without its first words; a request alone is none, for anybody may write that."""
    body = "Tried to allocate 33.95 GiB (GPU 0; 11.78 GiB total capacity; 17.50 MiB already allocated; 10.62 GiB free; 24.00 MiB cached)"
    [event] = read(f"With my card the error is `{body}`\n")
    assert (event.family, event.requested, event.free) == ("torch_cuda", Size.printed("33.95", "GiB"), Size.printed("10.62", "GiB"))
    [event] = read(body.replace("(GPU 0;", "(NPU 0;") + "\n")
    assert event.family == "torch_npu"
    [event] = read("torch.cuda.OutOfMemoryError: Tried to allocate 33.95 GiB\n")  # the class stands for the head
    assert event.requested == Size.printed("33.95", "GiB")
    assert read("It says that it tried to do so: Tried to allocate 33.95 GiB, and so on.\n") == []


def test_a_lost_device_index_is_unknown() -> None:
    """After a paste the byte is gone: the device is unknown, not zero."""
    assert (
        only("CUDA out of memory. Tried to allocate 1.43 GiB. GPU  has a total capacity of 79.10 GiB of which 38.81 MiB is free.").gpu
        is None
    )


def test_figures_that_no_memory_can_have_are_unknown() -> None:
    """2^64-1 bytes is how Windows says "not available"."""
    text = "CUDA out of memory. Tried to allocate 2.00 MiB. GPU 0 has a total capacity of 8.00 GiB of which 0 bytes is free. "
    event = only(
        text + "Including non-PyTorch memory, this process has 17179869184.00 GiB memory in use. Of the allocated memory 9.62 GiB is"
    )
    assert event.process_in_use is None
    assert event.free == Size.printed("0", "bytes")


def test_in_a_container_the_own_process_is_found_by_its_figure() -> None:
    """All processes are printed by their number on the host: the own one holds what torch holds, and the least above that."""
    text = (
        "CUDA out of memory. Tried to allocate 2.14 GiB. GPU 0 has a total capacity of 79.25 GiB of which 1.24 GiB is free. "
        "Process 1402133 has 52.43 GiB memory in use. Process 1403377 has 4.27 GiB memory in use. "
        "Process 1404550 has 21.29 GiB memory in use. "
        "Of the allocated memory 19.31 GiB is allocated by PyTorch, and 611.52 MiB is reserved by PyTorch but unallocated."
    )
    event = only(text)
    assert str(event.process_in_use) == "21.29 GiB"
    assert [(other.pid, other.own) for other in event.other_processes] == [(1402133, False), (1403377, False), (1404550, True)]


@for_each("width", [40, 60, 80, 100])
def test_a_message_that_a_terminal_wrapped(width: int) -> None:
    """rich breaks the sentence at blanks; the next log line is not swallowed."""
    import textwrap

    printed = {name: f"{i + 1}.25 GiB" for i, name in enumerate(NAMES)}
    wrapped = "\n".join(textwrap.wrap("OutOfMemoryError: " + torch_21(printed).partition(" If")[0], width))
    event = only(f"{wrapped}\nsaved 9.00 GiB to disk\n")
    for name in ("requested", "capacity", "free", "process_in_use", "allocated", "reserved_unallocated"):
        assert str(getattr(event, name)) == printed[name]


@for_each(
    "text",
    [
        "To avoid CUDA out of memory errors set a smaller batch of 2 GiB.",
        "If you run into CUDA out of memory, lower it",
        '    raise RuntimeError("CUDA out of memory. Please reduce max_num_seqs")',
        "Any idea why CUDA out of memory happens?",
    ],
)
def test_talk_about_memory_is_no_failure(text: str) -> None:
    """Help texts, source lines and the user's own words are not messages."""
    assert read(text) == []


def test_a_message_that_is_not_understood_is_kept_and_said() -> None:
    """An unknown wording is an event with a notice, never dropped and never half invented."""
    reading = log_reader.read_logs(
        [log_scan.scan(Source.text("torch.OutOfMemoryError: CUDA out of memory. Wanted 3.00 GiB, had 2.00 GiB left"))]
    )
    assert (reading.events[0].exception, reading.events[0].requested) == ("torch.OutOfMemoryError", None)
    assert [(notice.code, notice.witness and notice.witness.line) for notice in reading.notices] == [("message_not_understood", 1)]


@for_each(
    "text, exception",
    [
        ("torch.cuda.OutOfMemoryError: ", "torch.cuda.OutOfMemoryError"),
        ("torch._inductor.exc.InductorError: OutOfMemoryError: ", "OutOfMemoryError"),
        ("ray.exceptions.RayTaskError(OutOfMemoryError): ", "ray.exceptions.RayTaskError(OutOfMemoryError)"),
        ("2025-03-14 11:07:52,318 - ERROR - __main__ - RuntimeError: ", "RuntimeError"),
    ],
)
def test_the_exception_class_however_wrapped(text: str, exception: str) -> None:
    """The class may be missing, qualified or inside another one."""
    event = only(text + torch_14(dict.fromkeys(NAMES, "1.25 GiB")))
    assert event.exception == exception
    assert event.evidence[0].column == text.index(exception) + 1


NEW = "torch.OutOfMemoryError: "
GPU = "GPU 2 has a total capacity of {capacity:size} of which {free:size} is free. "
TORCH = (
    "Of the allocated memory {allocated:size} is allocated by PyTorch, and {reserved_unallocated:size} is reserved by "
    "PyTorch but unallocated. "
)
HINT = "If reserved but unallocated memory is large try setting PYTORCH_HIP_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
PARENTHESIS = (
    "(GPU 2; {capacity:size} total capacity; {allocated:size} already allocated; {free:size} free; "
    "{reserved_total:size} reserved in total by PyTorch)"
)
NPU = "(NPU 2; {capacity:size} total capacity; {allocated:size} already allocated; {current_active:size} current active; {free:size} free; "
WORDINGS = [
    Wording("hip", f"{NEW}HIP out of memory. Tried to allocate {{requested:size}}. {GPU}{TORCH}{HINT}", "torch_hip", gpu=2),
    Wording(
        "old hip",
        f"RuntimeError: HIP out of memory. Tried to allocate {{requested:size}} {PARENTHESIS} If reserved memory is >> ",
        "torch_hip",
        gpu=2,
    ),
    Wording("xpu of 2.4", f"{NEW}XPU out of memory, please use `empty_cache` to release all unoccupied cached memory.", "torch_xpu"),
    Wording(
        "xpu of 2.5",
        f"{NEW}XPU out of memory. Tried to allocate {{requested:size}}. GPU 2 has a total capacity of {{capacity:size}}. {TORCH}"
        "Please use `empty_cache` to release all unoccupied cached memory.",
        "torch_xpu",
        gpu=2,
    ),
    Wording(
        "newer xpu",
        f"{NEW}XPU out of memory. Tried to allocate {{requested:size}}. {GPU}{{allowed:size}} allowed; {TORCH}",
        "torch_xpu",
        gpu=2,
    ),
    Wording(
        "mps",
        "RuntimeError: MPS backend out of memory (MPS allocated: {mps_allocated:mps}, other allocations: "
        "{other_allocations:mps}, max allowed: "
        "{max_allowed:mps}). Tried to allocate {requested:mps} on private pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to "
        "disable upper limit",
        "torch_mps",
    ),
    Wording(
        "newer mps without a limit",
        "RuntimeError: MPS backend out of memory (MPS allocated: {mps_allocated:size}, other allocations: {other_allocations:size}). "
        "Tried to allocate {requested:size} on shared pool.",
        "torch_mps",
    ),
    Wording(
        "npu",
        f"RuntimeError: NPU out of memory. Tried to allocate {{requested:size}} {NPU}{{reserved_total:size}} reserved in "
        f"total by PyTorch).If reserved "
        "memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.",
        "torch_npu",
        gpu=2,
    ),
    Wording(
        "npu with a limit",
        f"RuntimeError: NPU out of memory. Tried to allocate {{requested:size}} {NPU}{{allowed:size}} allowed; "
        f"{{reserved_total:size}} reserved in total "
        "by PyTorch) If reserved memory is >> allocated memory",
        "torch_npu",
        gpu=2,
    ),
    Wording(
        "npu of 2022",
        f"RuntimeError: NPU out of memory. Tried to allocate {{requested:size}} {PARENTHESIS.replace('GPU', 'NPU')}",
        "torch_npu",
        gpu=2,
    ),
    Wording(
        "npu workspace",
        "[E107 02:38:42.269390205 compiler_depend.ts:444] NPU out of memory. NPUWorkspaceAllocator tried to allocate "
        "{requested:size}(NPU 2; "
        "{capacity:size} total capacity; {free:size} free). If you want to reduce memory usage, take a try to set the environment variable "
        "TASK_QUEUE_ENABLE=1.\n\n[ERROR] 2026-01-07-02:38:42 (PID:1692557, Device:2, RankID:-1) ERR00006 PTA memory error",
        "torch_npu",
        gpu=2,
    ),
    Wording("npu without figures", "RuntimeError: NPU out of memory. device id: 2", "torch_npu", gpu=2),
    Wording(
        "npu rejected",
        f"{NEW}NPU out of memory. Allocation was preemptively rejected because it would exceed per_process_memory_fraction "
        f"limit. Requested size: "
        "{requested:size}",
        "torch_npu",
    ),
    Wording(
        "musa",
        f"{NEW}MUSA out of memory. Tried to allocate {{requested:size}}. {GPU}{{allowed:size}} allowed; Of the allocated "
        f"memory {{allocated:size}} is "
        "allocated by PyTorch, with {private_pools:size} allocated in private pools (e.g., MUSA Graphs), and "
        "{reserved_unallocated:size} is reserved by "
        "PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_MUSA_ALLOC_CONF=expandable_segments:True",
        "torch_musa",
        gpu=2,
    ),
    Wording(
        "mlu",
        "RuntimeError: MLU out of memory. Tried to allocate {requested:size}. MLU 2 has a total capacity of {capacity:size} of which "
        f"{{free:size}}is free. Including non-PyTorch memory, this process has {{process_in_use:size}} memory in use. {TORCH}",
        "torch_mlu",
        gpu=2,
    ),
    Wording(
        "gcu",
        f"RuntimeError: GCU out of memory. Tried to allocate {{requested:size}}. {GPU.replace('GPU', 'GCU')}{TORCH}",
        "torch_gcu",
        gpu=2,
    ),
    Wording(
        "a fork without a name", f"RuntimeError: Out of memory. Tried to allocate {{requested:size}}. {GPU}{TORCH}", "torch_cuda", gpu=2
    ),
    Wording(
        "another accelerator",
        f"RuntimeError: PPU out of memory. Tried to allocate {{requested:size}}. {GPU.replace('GPU', 'Device')}{TORCH}",
        "other",
        gpu=2,
    ),
    Wording(
        "warned and rejected in 2.12",
        "[W205 11:00:01.0 CUDACachingAllocator.cpp:2] Preemptively rejecting allocation: requested {requested:size}, but "
        "total_allocated_memory "
        "({allocated:size}) + requested size would exceed memory limit ({allowed:size} = 90.00% of {capacity:size}). Set "
        "throw_on_cudamalloc_oom:false to disable.\n"
        f"{NEW}CUDA out of memory. Allocation was preemptively rejected because it would exceed per_process_memory_fraction "
        f"limit. Requested size: "
        "{requested:size}",
        "torch_cuda",
    ),
    Wording(
        "custom pool in 2.15",
        f"{NEW}CUDA out of memory. Tried to allocate {{requested:size}}. {GPU}{TORCH}The custom allocator behind this "
        f"MemPool returned null.",
        "torch_cuda",
        gpu=2,
    ),
    Wording(
        "wrapped by DataParallel",
        f"{NEW}Caught OutOfMemoryError in replica 2 on device 2.\nOriginal Traceback (most recent call last):\n  File "
        f'"/x/train.py", line 3, in forward\n    return x\n{NEW}CUDA out of memory. Tried to allocate {{requested:size}}. {GPU}{TORCH}\n\n',
        "torch_cuda",
        gpu=2,
    ),
    Wording(
        "wrapped by inductor",
        f"torch._inductor.exc.InductorError: OutOfMemoryError: CUDA out of memory. Tried to allocate {{requested:size}}. {GPU}{TORCH}",
        "torch_cuda",
        gpu=2,
    ),
    Wording(
        "wrapped by dynamo",
        f"torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:\nOutOfMemoryError: CUDA out of memory. Tried "
        f"to allocate {{requested:size}}. {GPU}{TORCH}",
        "torch_cuda",
        gpu=2,
    ),
    Wording(
        "repeated without figures",
        f"{NEW}CUDA out of memory. Tried to allocate {{requested:size}}. {GPU}{TORCH}\nERROR: CUDA out of memory.\n",
        "torch_cuda",
        gpu=2,
    ),
]


@pytest.mark.parametrize("wording", WORDINGS, ids=lambda wording: wording.name)
@settings(max_examples=examples(12), deadline=None)
@given(data=st.data())
def test_what_other_devices_and_wrappers_print_is_read_back(wording: Wording, data: st.DataObject) -> None:
    """One event of the right family; every printed figure inside its interval, nothing that was not printed."""
    check(wording, data.draw(figures(wording)))


@for_each("index", range(32))
def test_the_raw_device_index_of_the_asynchronous_allocator(index: int) -> None:
    """torch 2.3 to 2.6 stream it as one byte here as well."""
    printed = dict.fromkeys(NAMES, "1.25 GiB")
    event = only(b"RuntimeError: " + async_allocator(printed).encode().replace(b"device 3", b"device %c" % index) + b"\n")
    assert (event.gpu, str(event.requested), str(event.allowed)) == (index, "1.25 GiB", "1.25 GiB")


def told(text: str) -> dict[str, object]:
    """Facts of a message, and its notices under `notices`."""
    read = reading(text + "\n")
    return {**{fact.name: fact.value for fact in reversed(read.facts)}, "notices": [notice.code for notice in read.notices]}


FULL = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {0}. GPU 0 has a total capacity of {1} of which 1.00 GiB is free. {2}"


@for_each(
    "text, overflows",
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate more than 1EB memory.", True),
        (FULL.format("17179869184.00 GiB", "79.15 GiB", ""), True),
        (FULL.format("1048576.00 GiB", "94.99 GiB", ""), True),
        (FULL.format("10240.00 GiB", "79.15 GiB", ""), True),
        (FULL.format("10000.00 GiB", "79.15 GiB", ""), False),
        (FULL.format("80.00 GiB", "79.15 GiB", ""), False),
    ],
)
def test_a_request_far_above_any_card_is_an_overflow(text: str, overflows: bool) -> None:
    """A wrong shape asks for a million GiB: said as such, since no remedy of memory helps."""
    says = told(text)
    assert says.get("log.request_overflow", False) is overflows
    assert ("request_overflow" in says["notices"]) is overflows  # type: ignore[operator]


def test_what_the_driver_of_windows_gives_away() -> None:
    """It tells no figure of a process, and lends memory of the host: more is allocated than the card has."""
    says = told(
        FULL.format("20.00 MiB", "8.00 GiB", "Including non-PyTorch memory, this process has 17179869184.00 GiB memory in use. ")
        + "Of the allocated memory 9.62 GiB is allocated by PyTorch, and 211.37 MiB is reserved by PyTorch but unallocated."
    )
    assert (says["log.windows_driver"], says["log.sysmem_fallback"], "log.process_in_use" in says) == (True, True, False)
    whole = told(FULL.format("20.00 MiB", "8.00 GiB", "Of the allocated memory 7.62 GiB is allocated by PyTorch"))
    assert (whole["log.windows_driver"], "log.sysmem_fallback" in whole) == (True, False)  # it alone tells all of a card
    plain = told(FULL.format("20.00 MiB", "7.79 GiB", "Of the allocated memory 7.62 GiB is allocated by PyTorch"))
    assert plain.keys() & {"log.windows_driver", "log.sysmem_fallback"} == set()


def test_what_an_engine_gave_back_is_still_counted() -> None:
    """vLLM's allocator unmaps what sleeps and torch goes on counting it: a driver that tells what processes have lends nothing."""
    says = told(
        "CUDA out of memory. Tried to allocate 6.69 GiB. GPU 0 has a total capacity of 44.75 GiB of which 6.92 GiB is free."
        " Process 623822 has 38.62 GiB memory in use. Of the allocated memory 50.46 GiB is allocated by PyTorch,"
        " and 8.90 GiB is reserved by PyTorch but unallocated."
    )
    assert (str(says["log.asleep"]), says["rollout.sleep"], "log.sysmem_fallback" in says) == ("21.53 GiB", True, False)


@pytest.mark.parametrize(
    ("tail", "on"),
    [
        (
            "If reserved but unallocated memory is large try setting PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation.",
            None,
        ),
        ("expandable_segments is already enabled; virtual address space may be over-reserved. See expandable_segments_reserve.", True),
        ("The custom allocator behind this MemPool returned null.", None),
    ],
)
def test_the_hint_of_2_15_tells_whether_expandable_segments_are_on(tail: str, on: bool | None) -> None:
    """Up to 2.14 one hint is printed whatever the setting; from then on there are three."""
    assert told(FULL.format("2.00 GiB", "79.15 GiB", tail)).get("alloc.expandable_segments") is on


def test_the_reserve_of_a_segment_is_a_figure_of_its_own() -> None:
    """One request cannot span two segments: it may fail on a card that is half empty."""
    says = told(
        FULL.format(
            "6.00 GiB", "79.15 GiB", "The allocation exceeds the expandable-segment reserve of 4.00 GiB for stream reserve class 'tiny'; "
        )
        + "a single allocation cannot span segments, raise expandable_segments_reserve_by_class to at least 6.00 GiB."
    )
    assert (str(says["log.segment_reserve"]), says["alloc.expandable_segments"], says["notices"]) == (
        "4.00 GiB",
        True,
        ["segment_reserve"],
    )


WARNED = [
    "/x/fsdp/_state_dict_utils.py:312: UserWarning: Failed to clone() tensor with name model.norm on rank 3. Error: {0}",
    "| WARNING: ran out of memory with exception: {0};",
    "E0911 10:00:00.1 1 select_algorithm.py:2112] Runtime error during autotuning: {0} Ignoring this choice.",
    "WARNING:root:retrying after {0}",
]


@for_each("text", WARNED)
def test_a_failure_that_its_own_line_says_is_survived(text: str) -> None:
    """A warning while saving, a batch that is left out, a kernel that is not chosen: events, but not the death."""
    event = only(text.format(FULL.format("2.00 GiB", "79.15 GiB", "").partition(": ")[2]) + "\n")
    assert (event.status, event.fatal, str(event.requested)) == ("oom", False, "2.00 GiB")


def test_an_overflow_is_in_the_headline() -> None:
    """What a person should do about it is to look at the code, not at the batch."""
    assert (
        "a wrong index or shape"
        in explain("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate more than 1EB memory.\n").verdict.headline.en
    )


@pytest.mark.parametrize(
    ("others", "count"),
    [
        (((4712, "20.31"), (4713, "19.22"), (4714, "19.22")), 3),  # ranks of one launcher
        (((4712, "1.20"),), None),  # a context
        (((9120, "20.31"),), None),  # somebody else's, as large by chance
    ],
)
def test_ranks_on_one_card_follow_one_another_and_hold_as_much(others: tuple[tuple[int, str], ...], count: int | None) -> None:
    """The failed process is among those that the message names: the one that holds what torch holds."""
    listed = "".join(f" Process {pid} has {held} GiB memory in use." for pid, held in ((4711, "20.31"), *others))
    message = device_oom.read(
        "CUDA out of memory. Tried to allocate 30.00 MiB. GPU 0 has a total capacity of 79.10 GiB of which 15.19 MiB is free."
        f"{listed} Of the allocated memory 19.60 GiB is allocated by PyTorch, and 225.59 MiB is reserved by PyTorch but unallocated."
    )
    assert message is not None and message.facts.get("log.siblings") == count
