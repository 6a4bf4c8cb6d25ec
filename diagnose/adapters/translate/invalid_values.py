"""Notices for values that a key does not accept, with their place and the accepted words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from diagnose.adapters.formats.config_value import Leaf, name_of
from diagnose.adapters.schema.table_types import Key, Table
from diagnose.adapters.schema.value_meaning import meaning
from diagnose.facts import Notice, Witness, declared
from diagnose.phrases import Text, phrase, same

if TYPE_CHECKING:
    from diagnose.adapters.translate.config_part import Part

#: Characters of a value, and of the line it stands in, that are shown.
VALUE, LINE = 80, 500


def is_understood(tab: Table, leaf: Leaf) -> bool:
    """Whether any entry of the key accepts this value: a key may turn several knobs, each with its own words."""
    return any(_accepts(key, leaf) for key in tab.named(name_of(leaf.key)))


def _accepts(key: Key, leaf: Leaf) -> bool:
    """Whether the entry accepts the value by name; the wildcard does not count."""
    named = {word: means for word, means in (key.values or {}).items() if word != "*"}
    try:
        meaning(key if key.values is None else key._replace(values=named), leaf)
    except ValueError:
        return False
    return True


#: The value of an option without the blank before the next one: `64--max-total-tokens 128`.
_GLUED = re.compile(r"([\w.]{1,40}?)(--[A-Za-z][\w-]{1,60})")


def invalid_value_notices(part: Part, leaves: Iterable[Leaf]) -> list[Notice]:
    """One warning per invalid value."""
    result = []
    for leaf in leaves:
        words = dict.fromkeys(word for key in part.table.named(name_of(leaf.key)) for word in _accepted_words(key))
        accepted = Text(", ".join(word.en for word in words), "、".join(word.zh for word in words))
        message = phrase("adapters.wrong_value", name=leaf.key, value=leaf.written[:VALUE], wanted=accepted)
        if glued := _GLUED.match(leaf.written):
            message = phrase("adapters.glued_option", name=leaf.key, value=glued[1], option=glued[2])
        result.append(Notice("warning", "config.wrong_value", message, _place(part, leaf)))
    return result


def _accepted_words(key: Key) -> Iterable[Text]:
    """The words that the entry accepts, else those of its knob, else the kind of value."""
    if key.values is not None:
        return (same(word) for word in key.values if word != "*")
    entry = declared(key.knob)
    return map(same, entry.words) if entry and entry.words else [phrase(f"adapters.kind_{entry.kind if entry else 'text'}")]


def _place(part: Part, leaf: Leaf) -> Witness:
    """The place with the text of its line, which the reader compares by eye."""
    place = part.witness_of(leaf)
    text = place.text
    if not text and place.line:
        text = "".join((part.outer or part.text).split("\n", place.line)[place.line - 1 : place.line])
    return Witness(place.source, place.line, place.column, text[:LINE])
