"""Dicts that look alike, recognised as a whole: a history repeats one shape millions of times, each with its own numbers.

A shape is what a pickler writes of a dict of numbers and of things that it wrote before: the same keys in the same order, between them
values of a few kinds. It is learned from a dict that was read opcode by opcode, and matched by a regular expression from then on.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from diagnose.record import record

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Takes in the raw values of one dict, and the list that it joins.
Intake: TypeAlias = Callable[[tuple[bytes, ...], Any], None]

_NUMBER = rb"K.|M..|J.{4}|\x8a(?:\x05.{5}|\x06.{6}|\x07.{7}|\x08.{8}|\x04.{4}|\x03.{3}|\x02..|\x01.)"
_VALUE = rb"(h.|%b|j.{4}|[N\x88\x89])" % _NUMBER
_PAIR = re.compile(rb"(h.|j.{4})(?:%b|(\x8c([\x00-\x40]))|(?=\x8c))" % _VALUE, re.DOTALL)
_HEAD = re.compile(rb"\}(\x94|q.|r.{4})?\(", re.DOTALL)
MOST = 32  # shapes that are tried
KEYS, TEXTS = 24, 4  # keys of one, and texts that are written anew in each


@record
class Shape:
    """`match` finds such a dict; `slots`: places of the memo that it takes, its own and then one for each of `texts`."""

    match: Callable[[bytes, int], re.Match[bytes] | None]
    intake: Intake
    slots: int
    texts: tuple[str, ...]


def learned(raw: bytes, count: int, intake: Intake) -> Shape | None:
    """The shape of a dict of `count` pairs whose bytes these are; None where it has other values than those that repeat."""
    head = _HEAD.match(raw)
    if head is None or count > KEYS:
        return None
    at, memoized = head.end(), head[1] == b"\x94"
    pattern = [rb"\}\x94\(" if memoized else rb"\}\(" if head[1] is None else rb"\}q.\(" if head[1][:1] == b"q" else rb"\}r.{4}\("]
    texts: list[str] = []
    for _ in range(count):
        pair = _PAIR.match(raw, at)
        if pair is None:
            return None
        pattern.append(re.escape(pair[1]))
        at = pair.end()
        if pair[3] is None:
            pattern.append(_VALUE)
            continue
        text = raw[at : at + pair[4][0]]
        at += len(text)
        if raw[at : at + 1] != b"\x94" or not memoized or len(texts) == TEXTS:
            return None
        at += 1
        texts.append(text.decode("utf-8", "surrogatepass"))
        pattern.append(b"(%b)\x94" % re.escape(pair[3] + text))
    if raw[at:] != b"u":
        return None
    whole = re.compile(b"".join([*pattern, b"u"]), re.DOTALL)
    return Shape(whole.match, intake, memoized + len(texts), tuple(texts))


def value(raw: bytes, memo: Mapping[int, Any]) -> Any:
    """The value that raw bytes of a shape stand for."""
    kind = raw[0]
    if kind == 0x4B:
        return raw[1]
    if kind == 0x68:
        return memo[raw[1]]
    if kind == 0x4D:
        return raw[1] | raw[2] << 8
    if kind == 0x8A:
        return int.from_bytes(raw[2:], "little", signed=True)
    if kind == 0x4A:
        return int.from_bytes(raw[1:], "little", signed=True)
    if kind == 0x6A:
        return memo[int.from_bytes(raw[1:], "little")]
    if kind == 0x8C:
        return str(raw[2:], "utf-8", "surrogatepass")
    return {0x4E: None, 0x88: True, 0x89: False}[kind]


class Memo(dict[int, Any]):
    """What may be referred to again. Texts that stand in every dict of a shape take four bytes each."""

    def __init__(self) -> None:
        super().__init__()
        self._slots: array[int] = array("I")
        self._which = bytearray()
        self._texts: list[str] = []

    def repeat(self, slot: int, numbers: tuple[int, ...]) -> None:
        """The places from this one on hold texts that were there before, of these numbers."""
        for number in numbers:
            self._slots.append(slot)
            self._which.append(number)
            slot += 1

    def numbers(self, texts: tuple[str, ...]) -> tuple[int, ...]:
        """The numbers that texts have here."""
        self._texts += [text for text in dict.fromkeys(texts) if text not in self._texts]
        return tuple(self._texts.index(text) for text in texts)

    def __missing__(self, slot: int) -> str:
        at = bisect_left(self._slots, slot)
        if at == len(self._slots) or self._slots[at] != slot:
            raise KeyError(slot)
        return self._texts[self._which[at]]
