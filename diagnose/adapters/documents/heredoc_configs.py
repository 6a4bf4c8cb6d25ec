"""Configs that a script writes before it uses them: the text of a here-document, each value with its place in the script."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from diagnose.adapters.documents.open_config import Opened, opened
from diagnose.adapters.formats.config_value import Leaf, Places
from diagnose.adapters.formats.settings import ConfigSource
from diagnose.adapters.shell.shell_text import WrittenFile
from diagnose.record import replace

_ENDINGS = (".json", ".yaml", ".yml", ".toml")
_MOST = 8


def configs(source: ConfigSource, text: str, files: Sequence[WrittenFile]) -> list[Opened]:
    """Those of the written files that are configs."""
    place = Places(text)
    return [
        document for file in files[:_MOST] if file.name.endswith(_ENDINGS) and (document := _config(source, text, file, place)) is not None
    ]


def _config(source: ConfigSource, text: str, file: WrittenFile, place: Places) -> Opened | None:
    chars = file.chars
    blank_lines = place(file.start)[0] - 1
    document = opened(ConfigSource(source.name, ("\n" * blank_lines + chars.text).encode("utf-8", "replace"), called=file.name))
    document.outer, document.shift = text, file.start
    if document.form not in ("yaml", "json", "toml") or len(document.text) != blank_lines + len(chars.text):
        return document if document.form is None and chars.sure else None
    inner_places = Places(document.text)
    scattered = any(not file.start <= at <= file.end for at in (*chars.starts[:1], *chars.ends[-1:])) or not _ordered(chars.starts)

    def moved(leaf: Leaf) -> Leaf:
        at = inner_places.offset(leaf.line, leaf.column) - blank_lines
        line, column = place(chars.starts[min(at, len(chars.starts) - 1)])
        first, last = leaf.start - blank_lines, leaf.end - blank_lines
        start = chars.starts[first] if first < len(chars.starts) else file.end
        end = chars.ends[last - 1] if last > first else start
        return replace(leaf, start=start - file.start, end=end - file.start, line=line, column=column, written=text[start:end])

    leaves = () if not chars.starts else tuple(map(moved, document.leaves))
    document.leaves = leaves
    document.found_by = None
    document.text = text[file.start : file.end]
    if scattered:
        document.form = "dump"  # to be read and not edited: parts of it are written elsewhere
    document.notices = tuple(notice for notice in document.notices if notice.code != "config.unknown_kind")
    return document


def _ordered(places: Sequence[int]) -> bool:
    return all(a <= b for a, b in pairwise(places))
