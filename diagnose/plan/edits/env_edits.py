"""Allocator knobs live in an environment variable, whatever the framework: its name by device and release, its whole value."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from diagnose.adapters.formats.settings import Document, Entry
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.schema.value_meaning import allocator_options
from diagnose.facts import FactBook, Value
from diagnose.plan.rules.remedy import Edit
from diagnose.units import Size, Version

_OPTIONS = {
    "alloc.expandable_segments": "expandable_segments",
    "alloc.max_split_size": "max_split_size_mb",
    "alloc.gc_threshold": "garbage_collection_threshold",
    "alloc.roundup": "roundup_power2_divisions",
}

#: The backend that ignores all of them: it goes when one is asked for.
_OTHER_BACKENDS = ("backend:cudaMallocAsync", "backend:hipMallocAsync")

#: torch_npu and the HIP build read names of their own; torch 2.10 renamed the general one and warns of the old.
_VARIABLE = {"torch_npu": "PYTORCH_NPU_ALLOC_CONF", "torch_hip": "PYTORCH_HIP_ALLOC_CONF"}
_RENAMED = Version("2.10")
_GENERAL, _CUDA = "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"


def is_ours(knob: str) -> bool:
    """Whether the knob is set by the environment and not by a key."""
    return knob in _OPTIONS


def lines(changes: Mapping[str, Value], book: FactBook, documents: Sequence[Document] = ()) -> tuple[str, ...]:
    """NAME=VALUE with every allocator option in effect: the variable is one value, so the others must be said again."""
    if not any(map(is_ours, changes)):
        return ()
    held = _held(book, documents)
    name = variable(book) if held is None or not _read(held[1].key, book) else held[1].key
    return (f"{name}={_merged(changes, book, held[1] if held else None)}",)


def edits(changes: Mapping[str, Value], book: FactBook, documents: Sequence[Document]) -> tuple[Edit, ...]:
    """The variable where a given file sets it already, merged into what stands there; else where a given script hands it on to what
    it starts, else a line of the script that exports it; where there is no script it is for the reader to export."""
    if not any(map(is_ours, changes)):
        return ()
    held = _held(book, documents)
    script = next((document for document in documents if document.form == "shell" and not document.outer), None)
    if script is not None and _is_shell(script) and (elsewhere := _carried(changes, book, script, held)):
        return elsewhere
    if held is not None:
        return tuple(
            edit for document, entry in (held, *_either(held, book, documents)) for edit in _merged_in(changes, book, document, entry)
        )
    if script is None or not (_is_shell(script) or _is_manifest(script, documents, variable(book))):
        return ()
    return (Edit(script.name, variable(book), None, _merged(changes, book, None)),)


def _merged_in(changes: Mapping[str, Value], book: FactBook, document: Document, entry: Entry) -> list[Edit]:
    text = _merged(changes, book, entry)
    if not _read(entry.key, book):  # another name takes its place
        return [Edit(document.name, entry.key, entry.written, None), Edit(document.name, variable(book), None, text)]
    to = quoted(text, entry, document)
    return [] if to == entry.written else [Edit(document.name, entry.key, entry.written, to)]


def _either(held: tuple[Document, Entry], book: FactBook, documents: Sequence[Document]) -> list[tuple[Document, Entry]]:
    """The other of the two names where both are set and the release is not known: before 2.10 the one counts, from then on the other."""
    if book.version("version.torch") is not None or held[1].key not in (_GENERAL, _CUDA):
        return []
    other = _GENERAL if held[1].key == _CUDA else _CUDA
    return _setting((other,), documents)[:1]


def _carried(changes: Mapping[str, Value], book: FactBook, script: Document, held: tuple[Document, Entry] | None) -> tuple[Edit, ...]:
    """The edits that tell what carries the variable to the training, where an export would not reach it."""
    from diagnose.plan.patch.env_carriers import carriers

    name, text = variable(book), _merged(changes, book, held[1] if held else None)
    made = []
    for one in carriers(script.text, name, text):
        if one.file:
            made.append(Edit(one.file, f"env_vars.{name}", None, text))
        elif not one.is_set:
            made.append(Edit(script.name, f"{one.option} env_vars.{name}" if one.option.startswith("--runtime") else name, None, text))
    return tuple(dict.fromkeys(made))


def _held(book: FactBook, documents: Sequence[Document]) -> tuple[Document, Entry] | None:
    """The entry whose string counts: the general name from torch 2.10 on, else CUDA's. One that a running shell fills in is left alone."""
    names = [_GENERAL, _CUDA] if _is_renamed(book) else [_CUDA, _GENERAL]
    names = [*filter(None, [_VARIABLE.get(book.word("log.family") or "")]), *names, "PYTORCH_HIP_ALLOC_CONF"]
    return next(iter(_setting(names, documents)), None)


def _setting(names: Sequence[str], documents: Sequence[Document]) -> list[tuple[Document, Entry]]:
    """Where the given files set these variables, those of the first name first."""
    found = [
        (document, entry)
        for document in documents
        for entry in document.entries
        if entry.key in names and document.form != "command" and "$" not in entry.written
    ]
    return sorted(found, key=lambda pair: names.index(pair[1].key))


def _merged(changes: Mapping[str, Value], book: FactBook, entry: Entry | None) -> str:
    """The options that stand there, or that the log shows, with those of the change in their place or after them."""
    wanted = {name: value for name, value in changes.items() if name in _OPTIONS}
    if entry is None:
        after = book.changed(wanted)
        shown = {option: after.value(knob) for knob, option in _OPTIONS.items()}
        return ",".join(f"{option}:{written(value)}" for option, value in shown.items() if value not in (None, False))
    options = [option for option in allocator_options(entry.written.strip("\"'")) if option not in _OTHER_BACKENDS]
    for name, value in wanted.items():
        options = _with(options, _OPTIONS[name], value)
    return ",".join(options)


def _with(options: Sequence[str], name: str, value: Value) -> list[str]:
    """The options with one in its place, or after the others; one that nobody wants goes."""
    new = [] if value is None else [f"{name}:{written(value)}"]
    there = [option.partition(":")[0] == name for option in options]
    if any(there):
        return [made for option, same in zip(options, there, strict=True) for made in (new if same else [option])]
    return [*options, *(new if value is not False else [])]


def quoted(value: str, entry: Entry, document: Document) -> str:
    """In the quotes that stand there; a string in a script always has some. Inside a word that is quoted as a whole it needs none."""
    if document.form == "shell" and document.text[entry.start - 1 : entry.start] in ("'", '"'):
        return value
    quote = entry.written[:1] if entry.written[:1] in ("'", '"') else '"' if document.form in ("python", "json", "toml") else ""
    return f"{quote}{value}{quote}" if quote else shlex.quote(value) if document.form == "shell" else value


def _is_shell(document: Document) -> bool:
    """A script that a shell runs, not a list of words that stands in a file of another kind."""
    return not document.text.lstrip().startswith(("[", "{", "import ", "from ", "apiVersion:", "- "))


def _is_manifest(script: Document, documents: Sequence[Document], name: str) -> bool:
    """A manifest whose container has variables, beside which another one can be written, or has none yet."""
    from diagnose.plan.patch.patch_variables import insert_in_manifest

    own = next((one for one in documents if one.name == script.name and name in framework_tables.table(one.framework).known), script)
    return insert_in_manifest(own, name, "") is not None


def _read(name: str, book: FactBook) -> bool:
    """Does this release read the variable? Before 2.10 the general name does nothing on CUDA."""
    torch = book.version("version.torch")
    return name != _GENERAL or torch is None or torch >= _RENAMED


def _is_renamed(book: FactBook) -> bool:
    torch = book.version("version.torch")
    return torch is not None and torch >= _RENAMED


def variable(book: FactBook) -> str:
    """The environment variable that this build of torch reads."""
    return _VARIABLE.get(book.word("log.family") or "", _GENERAL if _is_renamed(book) else _CUDA)


def written(value: Value) -> str:
    """A value as the allocator reads it."""
    return str(value.bytes // 2**20) if isinstance(value, Size) else f"{value:g}" if isinstance(value, float) else str(value)
