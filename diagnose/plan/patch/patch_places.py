"""Where keys stand in a document's text, and beside which of them a new one belongs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from diagnose.adapters.formats.config_value import Places
from diagnose.adapters.formats.settings import Document, Entry
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.translate.translation import name_of

_TRAIL = re.compile(r"[ \t]*(,)?[ \t]*(?:(?:#|//)[^\n]*?)?(?=\r?\n|\r?$)")


def last_name(key: str) -> str:
    """The part of a key that is written where it stands: options whole, paths by their last name."""
    return key if key.startswith("-") else key.rpartition(".")[2]


def key_start(document: Document, entry: Entry) -> int:
    """Where the key itself is written. A script's entry says where its value is bound: the key is the last such name before it."""
    if document.form == "python" or not entry.line:
        return max(0, document.text.rfind(last_name(entry.key), 0, entry.start))
    return Places(document.outer or document.text).offset(entry.line, entry.column) - document.shift


def newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def line_end(text: str, at: int, *, with_break: bool = False) -> int:
    stop = text.find("\n", at)
    if stop < 0:
        return len(text)
    return stop + 1 if with_break else stop - (text[stop - 1] == "\r")


def gap_before(document: Document, entry: Entry) -> str:
    """The blank that a value needs where there was none: `key:` and `--flag` hold nothing yet, `--key=` takes it at once."""
    return " " if entry.start == entry.end and document.text[entry.start - 1 : entry.start] not in (" ", "\t", "=", "") else ""


def after_item(text: str, end: int) -> tuple[int, bool, bool]:
    """For an item of a list of items parted by commas: where its line ends if nothing but a comma and a comment follows, else where
    the item ends; whether its comma is there; whether the place is the end of the line."""
    match = _TRAIL.match(text, end)
    return (match.end(), bool(match[1]), True) if match else (end, False, False)


def neighbour(document: Document, siblings: Sequence[Entry], key: str) -> Entry:
    """The sibling after which a key belongs: the last of its own family of knobs, else the last that turns any, else the last."""
    families = {entry.knob.partition(".")[0] for entry in framework_tables.table(document.framework).named(name_of(key))}
    kin = [entry for entry in siblings if families & {knob.partition(".")[0] for knob in entry.knobs}]
    turning = [entry for entry in siblings if entry.knobs]
    return (kin or turning or siblings)[-1]
