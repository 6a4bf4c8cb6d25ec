"""The allocator's message of every torch release: what is printed is read back, and nothing more is claimed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diagnose import parse, scan
from diagnose.parse import device_oom
from diagnose.parse.event import Event
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
    return list(parse.read([scan.scan(scan.Source.text(text, "job.log"))]).events)


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
@settings(max_examples=15, deadline=None)
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


@pytest.mark.parametrize("index", range(32))
def test_the_raw_device_index_of_torch_2_3(index: int) -> None:
    """GPU 0 is a NUL, 10 a line end, 13 a carriage return, 27 the start of a colour."""
    head, tail = (
        b"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.11 GiB. GPU ",
        b" has a total capacity of 39.39 GiB of which",
    )
    event = only(b"step 1\n" + head + bytes([index]) + tail + b" 1.72 GiB is free.\nbye\n")
    assert (event.gpu, str(event.capacity), str(event.free)) == (index, "39.39 GiB", "1.72 GiB")
    assert event.evidence[0].line == 2


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


@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_a_message_that_a_terminal_wrapped(width: int) -> None:
    """rich breaks the sentence at blanks; the next log line is not swallowed."""
    import textwrap

    printed = {name: f"{i + 1}.25 GiB" for i, name in enumerate(NAMES)}
    wrapped = "\n".join(textwrap.wrap("OutOfMemoryError: " + torch_21(printed).partition(" If")[0], width))
    event = only(f"{wrapped}\nsaved 9.00 GiB to disk\n")
    for name in ("requested", "capacity", "free", "process_in_use", "allocated", "reserved_unallocated"):
        assert str(getattr(event, name)) == printed[name]


@pytest.mark.parametrize(
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
    reading = parse.read([scan.scan(scan.Source.text("torch.OutOfMemoryError: CUDA out of memory. Wanted 3.00 GiB, had 2.00 GiB left"))])
    assert (reading.events[0].exception, reading.events[0].requested) == ("torch.OutOfMemoryError", None)
    assert [(notice.code, notice.witness and notice.witness.line) for notice in reading.notices] == [("message_not_understood", 1)]


@pytest.mark.parametrize(
    ("text", "exception"),
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
