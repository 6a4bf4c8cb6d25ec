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
    return [one for file in files[:_MOST] if file.name.endswith(_ENDINGS) and (one := _config(source, text, file, place)) is not None]


def _config(source: ConfigSource, text: str, file: WrittenFile, place: Places) -> Opened | None:
    chars = file.chars
    before = place(file.start)[0] - 1
    found = opened(ConfigSource(source.name, ("\n" * before + chars.text).encode("utf-8", "replace"), called=file.name))
    found.outer, found.shift = text, file.start
    if found.form not in ("yaml", "json", "toml") or len(found.text) != before + len(chars.text):
        return found if found.form is None and chars.sure else None
    inner = Places(found.text)
    outside = any(not file.start <= at <= file.end for at in (*chars.starts[:1], *chars.ends[-1:])) or not _ordered(chars.starts)

    def moved(leaf: Leaf) -> Leaf:
        at = inner.offset(leaf.line, leaf.column) - before
        line, column = place(chars.starts[min(at, len(chars.starts) - 1)])
        first, last = leaf.start - before, leaf.end - before
        start = chars.starts[first] if first < len(chars.starts) else file.end
        end = chars.ends[last - 1] if last > first else start
        return replace(leaf, start=start - file.start, end=end - file.start, line=line, column=column, written=text[start:end])

    leaves = () if not chars.starts else tuple(map(moved, found.leaves))
    found.leaves = leaves
    found.found_by = None
    found.text = text[file.start : file.end]
    if outside:
        found.form = "dump"  # to be read and not edited: parts of it are written elsewhere
    found.notices = tuple(notice for notice in found.notices if notice.code != "config.unknown_kind")
    return found


def _ordered(places: Sequence[int]) -> bool:
    return all(a <= b for a, b in pairwise(places))
