"""Edits of the allocator's options, which all stand in one environment variable: its name by device and release, and its value."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from diagnose import families
from diagnose.adapters.formats.settings import Document, Entry
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.schema.value_meaning import allocator_options
from diagnose.facts import FactBook, Value
from diagnose.plan.patch.patch_variables import insert_in_manifest
from diagnose.plan.remedies.remedy import Edit
from diagnose.units import Size, Version

#: Knobs and their options.
_OPTIONS = {
    "alloc.expandable_segments": "expandable_segments",
    "alloc.max_split_size": "max_split_size_mb",
    "alloc.gc_threshold": "garbage_collection_threshold",
    "alloc.roundup": "roundup_power2_divisions",
}

#: Backends that ignore all of these options: removed when one is set.
_OTHER_BACKENDS = ("backend:cudaMallocAsync", "backend:hipMallocAsync")

#: torch 2.10 renamed the general variable and warns about the old name.
_RENAMED = Version("2.10")
_GENERAL, _CUDA = "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"


def is_allocator_knob(knob: str) -> bool:
    """Whether the knob is an option of the allocator's environment variable."""
    return knob in _OPTIONS


def export_lines(changes: Mapping[str, Value], book: FactBook, documents: Sequence[Document] = ()) -> tuple[str, ...]:
    """NAME=VALUE with every allocator option in effect: an export replaces the whole value, so it repeats the others."""
    if not any(map(is_allocator_knob, changes)):
        return ()
    current = _effective_entry(book, documents)
    name = variable_name(book) if current is None or not _is_read(current[1].key, book) else current[1].key
    return (f"{name}={_merged_options(changes, book, current[1] if current else None)}",)


def edits(changes: Mapping[str, Value], book: FactBook, documents: Sequence[Document]) -> tuple[Edit, ...]:
    """Edits that set the variable: in the options by which a script passes it on, else merged into the value that a file sets, else as
    an export of the script. None without a script: then the user has to export it."""
    if not any(map(is_allocator_knob, changes)):
        return ()
    current = _effective_entry(book, documents)
    script = next((document for document in documents if document.form == "shell" and not document.outer), None)
    if script is not None and _is_shell(script) and (carrier_edits := _carrier_edits(changes, book, script, current)):
        return carrier_edits
    if current is not None:
        return tuple(
            edit
            for document, entry in (current, *_other_name_entry(current, book, documents))
            for edit in _merged_edits(changes, book, document, entry)
        )
    if script is None or not (_is_shell(script) or _is_manifest(script, documents, variable_name(book))):
        return ()
    return (Edit(script.name, variable_name(book), None, _merged_options(changes, book, None)),)


def _merged_edits(changes: Mapping[str, Value], book: FactBook, document: Document, entry: Entry) -> list[Edit]:
    text = _merged_options(changes, book, entry)
    if not _is_read(entry.key, book):  # this release reads another name
        return [Edit(document.name, entry.key, entry.written, None), Edit(document.name, variable_name(book), None, text)]
    new = quote_value(text, entry, document)
    return [] if new == entry.written else [Edit(document.name, entry.key, entry.written, new)]


def _other_name_entry(current: tuple[Document, Entry], book: FactBook, documents: Sequence[Document]) -> list[tuple[Document, Entry]]:
    """The entry of the other name where both are set and the release, which decides between them, is unknown."""
    if book.version("version.torch") is not None or current[1].key not in (_GENERAL, _CUDA):
        return []
    other_name = _GENERAL if current[1].key == _CUDA else _CUDA
    return _entries_of((other_name,), documents)[:1]


def _carrier_edits(
    changes: Mapping[str, Value], book: FactBook, script: Document, current: tuple[Document, Entry] | None
) -> tuple[Edit, ...]:
    """Edits of the options that pass the variable to the training, where an export would not reach it."""
    from diagnose.plan.patch.env_carriers import carriers  # reads shell scripts: costs start-up time, and few jobs need it

    name, text = variable_name(book), _merged_options(changes, book, current[1] if current else None)
    result = []
    for carrier in carriers(script.text, name, text):
        if carrier.file:
            result.append(Edit(carrier.file, f"env_vars.{name}", None, text))
        elif not carrier.is_set:
            key = f"{carrier.option} env_vars.{name}" if carrier.option.startswith("--runtime") else name
            result.append(Edit(script.name, key, None, text))
    return tuple(dict.fromkeys(result))


def _effective_entry(book: FactBook, documents: Sequence[Document]) -> tuple[Document, Entry] | None:
    """The entry that takes effect: the general name from torch 2.10 on, else CUDA's. A value that a shell expands is left alone."""
    names = [_GENERAL, _CUDA] if _is_renamed(book) else [_CUDA, _GENERAL]
    names = [*filter(None, [families.of(book.word("log.family")).variable]), *names, "PYTORCH_HIP_ALLOC_CONF"]
    return next(iter(_entries_of(names, documents)), None)


def _entries_of(names: Sequence[str], documents: Sequence[Document]) -> list[tuple[Document, Entry]]:
    """The entries of the given files that set these variables, those of the first name first."""
    pairs = [
        (document, entry)
        for document in documents
        for entry in document.entries
        if entry.key in names and document.form != "command" and "$" not in entry.written
    ]
    return sorted(pairs, key=lambda pair: names.index(pair[1].key))


def _merged_options(changes: Mapping[str, Value], book: FactBook, entry: Entry | None) -> str:
    """The options in effect, from the entry or else from the facts, with the changed ones in their place or appended."""
    allocator_changes = {name: value for name, value in changes.items() if name in _OPTIONS}
    if entry is None:
        after = book.changed(allocator_changes)
        values = {option: after.value(knob) for knob, option in _OPTIONS.items()}
        return ",".join(f"{option}:{format_value(value)}" for option, value in values.items() if value not in (None, False))
    options = [option for option in allocator_options(entry.written.strip("\"'")) if option not in _OTHER_BACKENDS]
    for name, value in allocator_changes.items():
        options = _with_option(options, _OPTIONS[name], value)
    return ",".join(options)


def _with_option(options: Sequence[str], name: str, value: Value) -> list[str]:
    """The options with one replaced or appended; removed for the value None."""
    new = [] if value is None else [f"{name}:{format_value(value)}"]
    matches = [option.partition(":")[0] == name for option in options]
    if any(matches):
        return [item for option, is_match in zip(options, matches, strict=True) for item in (new if is_match else [option])]
    return [*options, *(new if value is not False else [])]


def quote_value(value: str, entry: Entry, document: Document) -> str:
    """The value in the quotes of the entry; in Python, JSON and TOML always quoted, inside a quoted shell word never."""
    if document.form == "shell" and document.text[entry.start - 1 : entry.start] in ("'", '"'):
        return value
    quote = entry.written[:1] if entry.written[:1] in ("'", '"') else '"' if document.form in ("python", "json", "toml") else ""
    return f"{quote}{value}{quote}" if quote else shlex.quote(value) if document.form == "shell" else value


def _is_shell(document: Document) -> bool:
    """Whether a shell runs the text; a shell document may also be a list of words in a file of another kind."""
    return not document.text.lstrip().startswith(("[", "{", "import ", "from ", "apiVersion:", "- "))


def _is_manifest(script: Document, documents: Sequence[Document], name: str) -> bool:
    """Whether the script is the command of a container in a manifest that can take the variable."""
    siblings = (document for document in documents if document.name == script.name)
    container = next((document for document in siblings if name in framework_tables.table(document.framework).known), script)
    return insert_in_manifest(container, name, "") is not None


def _is_read(name: str, book: FactBook) -> bool:
    """Whether this release reads the variable: before 2.10 the general name has no effect on CUDA."""
    torch = book.version("version.torch")
    return name != _GENERAL or torch is None or torch >= _RENAMED


def _is_renamed(book: FactBook) -> bool:
    torch = book.version("version.torch")
    return torch is not None and torch >= _RENAMED


def variable_name(book: FactBook) -> str:
    """The environment variable that this build of torch reads."""
    return families.of(book.word("log.family")).variable or (_GENERAL if _is_renamed(book) else _CUDA)


def format_value(value: Value) -> str:
    """A value as the allocator reads it; sizes in MiB."""
    return str(value.bytes // 2**20) if isinstance(value, Size) else f"{value:g}" if isinstance(value, float) else str(value)
