"""Allocator knobs live in an environment variable, whatever the framework: its name by device, its whole value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from diagnose.adapters.settings import Document
from diagnose.facts import FactBook, Value
from diagnose.plan.remedy import Edit
from diagnose.units import Size, Version

_OPTIONS = {
    "alloc.expandable_segments": "expandable_segments",
    "alloc.max_split_size": "max_split_size_mb",
    "alloc.gc_threshold": "garbage_collection_threshold",
}

#: torch_npu and the HIP build read names of their own; torch 2.10 renamed the general one and warns of the old.
_VARIABLE = {"torch_npu": "PYTORCH_NPU_ALLOC_CONF", "torch_hip": "PYTORCH_HIP_ALLOC_CONF"}
_RENAMED = Version("2.10")


def is_ours(knob: str) -> bool:
    """Whether the knob is set by the environment and not by a key."""
    return knob in _OPTIONS


def lines(changes: Mapping[str, Value], book: FactBook) -> tuple[str, ...]:
    """NAME=VALUE with every allocator option in effect: the variable is one value, so the others must be said again."""
    if not any(map(is_ours, changes)):
        return ()
    after = book.changed({name: value for name, value in changes.items() if is_ours(name)})
    options = [f"{option}:{written(value)}" for knob, option in _OPTIONS.items() if (value := after.value(knob)) not in (None, False)]
    return (f"{variable(book)}={','.join(options)}",)


def edits(changes: Mapping[str, Value], book: FactBook, documents: Sequence[Document]) -> tuple[Edit, ...]:
    """The variable where a given script sets it already; elsewhere it is for the reader to export."""
    made = [line.partition("=") for line in lines(changes, book)]
    return tuple(
        Edit(document.name, entry.key, entry.written, value)
        for name, _, value in made
        for document in documents
        for entry in document.entries
        if entry.key in (name, *_VARIABLE.values(), "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
    )


def variable(book: FactBook) -> str:
    """The environment variable that this build of torch reads."""
    torch = book.version("version.torch")
    general = "PYTORCH_ALLOC_CONF" if torch is not None and torch >= _RENAMED else "PYTORCH_CUDA_ALLOC_CONF"
    return _VARIABLE.get(book.word("log.family") or "", general)


def written(value: Value) -> str:
    return str(value.bytes // 2**20) if isinstance(value, Size) else str(value)
