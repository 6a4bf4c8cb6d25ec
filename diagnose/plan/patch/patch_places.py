"""Positions in a document's text: where a key, its line and its separator stand, and after which sibling a new key goes."""

from __future__ import annotations

from collections.abc import Sequence

from diagnose.adapters.formats.config_value import LINE_BREAKS
from diagnose.adapters.formats.settings import Document, Entry
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.translate.translation import name_of
from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.records import NamedTuple


class Splice(NamedTuple):
    """`text[start:end]` becomes `new`."""

    start: int
    end: int
    new: str


#: What may follow an item of a comma-separated list on its line: a comma, a comment.
_TRAIL = lazy_compile(r"[ \t]*(,)?[ \t]*(?:(?:#|//)[^\n]*?)?(?=\r?\n|\r?$)")


def last_name(key: str) -> str:
    """The part of a key that is written at its own line: an option whole, a dotted path by its last name."""
    return key if key.startswith("-") else key.rpartition(".")[2]


def key_start(document: Document, entry: Entry) -> int:
    """Offset of the key itself."""
    if not entry.line:
        return max(0, document.text.rfind(last_name(entry.key), 0, entry.start))
    return document.places.offset(entry.line, entry.column) - document.shift


def newline(text: str) -> str:
    """The line break that the text uses."""
    return "\r\n" if "\r\n" in text else "\r" if "\r" in text and "\n" not in text else "\n"


def line_start(text: str, at: int, form: str = "") -> int:
    """Where the line of an offset begins, as the language of the text, its form, counts lines."""
    return max(text.rfind(sign, 0, at) for sign in f"\n{LINE_BREAKS.get(form, '')}") + 1


def line_end(text: str, at: int, form: str = "", *, with_break: bool = False) -> int:
    """Where the line of an offset ends, before or after its line break."""
    stops = (text.find(sign, at) for sign in f"\n{LINE_BREAKS.get(form, '')}")
    stop = min((stop for stop in stops if stop >= 0), default=len(text))
    if text[stop : stop + 1] == "\n" and stop > at and text[stop - 1] == "\r":
        stop -= 1
    return stop if not with_break or stop == len(text) else stop + 1 + text.startswith("\r\n", stop)


def gap_before(document: Document, entry: Entry) -> str:
    """A space if the value to be written needs one before it: after an empty `key:` or a bare `--flag`, not after `--key=`."""
    return " " if entry.start == entry.end and document.text[entry.start - 1 : entry.start] not in (" ", "\t", "=", "") else ""


def after_item(text: str, end: int) -> tuple[int, bool, bool]:
    """Where a new item may follow the item of a comma-separated list that ends at `end`.

    (offset, whether the item has its comma, whether the offset is the end of the line). The offset is the end of the line if only a
    comma and a comment follow the item, else the end of the item.
    """
    match = _TRAIL.match(text, end)
    return (match.end(), bool(match[1]), True) if match else (end, False, False)


def neighbour(document: Document, siblings: Sequence[Entry], key: str) -> Entry:
    """The sibling after which a new key goes: the last that sets a knob of the same group, else the last that sets any, else the last."""
    families = {entry.knob.partition(".")[0] for entry in framework_tables.table(document.framework).named(name_of(key))}
    relatives = [entry for entry in siblings if families & {knob.partition(".")[0] for knob in entry.knobs}]
    knob_setters = [entry for entry in siblings if entry.knobs]
    return (relatives or knob_setters or siblings)[-1]
