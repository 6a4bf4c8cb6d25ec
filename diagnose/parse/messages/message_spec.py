"""What a statement of a figure-poor message means: a row of a table, and the sizes that stand in the statement."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from diagnose.parse.model.message import Message
from diagnose.parse.text.lazy_re import later
from diagnose.record import NamedTuple
from diagnose.units import Size

if TYPE_CHECKING:
    from diagnose.parse.text.grammar_statements import Statement

_AMOUNT = later(r"(\d[\d,]*(?:\.\d+)?)\s*([KMGTP]?)(?:i?B|bytes?)?", re.IGNORECASE)


class Saying(NamedTuple):
    """Family, status, and the names of the statement's figures in the order they stand (`gpu` is the index of a card,
    an empty name a word that is no figure).

    `reason` is a key of rules/phrases/reason.yaml: why this is no failure of memory, or no proof of one. `fatal`: whether
    who printed it gave up. `weight`: of several prints of one failure the heaviest names it.
    """

    family: str
    status: str = "oom"
    figures: tuple[str, ...] = ()
    reason: str = ""
    phase: str = ""
    fatal: bool = True
    weight: int = 0

    def message(self, said: Statement) -> Message:
        message = Message(self.family, self.status, reason=self.reason, phase=self.phase, fatal=self.fatal, weight=self.weight)
        for name, word in zip(self.figures, said.words, strict=False):
            if name == "gpu":
                message.gpu = int(word)
            elif name:
                message.figures[name] = amount(word)
        return message


def amount(text: str) -> Size | None:
    """A size with its unit as a word, a letter or none (bytes), glued or not; all are binary. None for what no memory can have."""
    text = text.strip(" []")
    match = _AMOUNT.fullmatch(text)
    if match is None or match[2] in ("p", "P"):
        return None
    size = Size.printed(match[1].replace(",", ""), f"{match[2].upper()}iB" if match[2] else "bytes")
    return size and Size(size.low, size.high, size.bytes, text if text != match[1] else f"{text} bytes")
