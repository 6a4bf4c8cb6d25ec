"""Regular expressions for dicts that a pickle repeats: a history holds millions of dicts with the same keys and other numbers.

A shape is the byte pattern of a pickled dict whose keys and values are numbers or memo references: constant keys in a fixed order, and
a number of a few forms after each. It is learned from one dict that was decoded opcode by opcode; the next are matched as a whole.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Consumes the undecoded values of one dict; the second argument is the list that holds the dict.
RawConsumer: TypeAlias = Callable[[tuple[bytes, ...], Any], None]

_NUMBER = rb"K.|M..|J.{4}|\x8a(?:\x05.{5}|\x06.{6}|\x07.{7}|\x08.{8}|\x04.{4}|\x03.{3}|\x02..|\x01.)"
_VALUE = rb"(h.|%b|j.{4}|[N\x88\x89])" % _NUMBER
_PAIR = re.compile(rb"(h.|j.{4})(?:%b|(\x8c([\x00-\x40]))|(?=\x8c))" % _VALUE, re.DOTALL)
_HEAD = re.compile(rb"\}(\x94|q.|r.{4})?\(", re.DOTALL)
SHAPES = 32  # shapes tried at each dict
KEYS, TEXTS = 24, 4  # keys of a shape, and texts that it spells out in each dict


@dataclass(slots=True)
class Shape:
    """`match` matches one such dict; `slots`: the memo entries that it adds, its own and one for each of `texts`."""

    match: Callable[[bytes, int], re.Match[bytes] | None]
    consume: RawConsumer
    slots: int
    texts: tuple[str, ...]


def learn_shape(raw: bytes, count: int, consume: RawConsumer) -> Shape | None:
    """The shape of a dict of `count` pairs with these bytes; None if it holds values that shapes cannot express."""
    head = _HEAD.match(raw)
    if head is None or count > KEYS:
        return None
    position, is_memoized = head.end(), head[1] == b"\x94"
    pattern = [rb"\}\x94\(" if is_memoized else rb"\}\(" if head[1] is None else rb"\}q.\(" if head[1][:1] == b"q" else rb"\}r.{4}\("]
    texts: list[str] = []
    for _ in range(count):
        pair = _PAIR.match(raw, position)
        if pair is None:
            return None
        pattern.append(re.escape(pair[1]))
        position = pair.end()
        if pair[3] is None:
            pattern.append(_VALUE)
            continue
        text = raw[position : position + pair[4][0]]
        position += len(text)
        if raw[position : position + 1] != b"\x94" or not is_memoized or len(texts) == TEXTS:
            return None
        position += 1
        texts.append(text.decode("utf-8", "surrogatepass"))
        pattern.append(b"(%b)\x94" % re.escape(pair[3] + text))
    if raw[position:] != b"u":
        return None
    whole = re.compile(b"".join([*pattern, b"u"]), re.DOTALL)
    return Shape(whole.match, consume, is_memoized + len(texts), tuple(texts))


def decode_value(raw: bytes, memo: Mapping[int, Any]) -> Any:
    """The Python value of one pickled value, given as its opcode and bytes. KeyError for an opcode that no shape contains."""
    opcode = raw[0]
    if opcode == 0x4B:
        return raw[1]
    if opcode == 0x68:
        return memo[raw[1]]
    if opcode == 0x4D:
        return raw[1] | raw[2] << 8
    if opcode == 0x8A:
        return int.from_bytes(raw[2:], "little", signed=True)
    if opcode == 0x4A:
        return int.from_bytes(raw[1:], "little", signed=True)
    if opcode == 0x6A:
        return memo[int.from_bytes(raw[1:], "little")]
    if opcode == 0x8C:
        return str(raw[2:], "utf-8", "surrogatepass")
    return {0x4E: None, 0x88: True, 0x89: False}[opcode]


class Memo(dict[int, Any]):
    """The unpickler's memo. Texts repeated in every dict of a shape take five bytes each instead of an entry."""

    def __init__(self) -> None:
        super().__init__()
        self._slots: array[int] = array("I")
        self._text_numbers = bytearray()
        self._texts: list[str] = []

    def repeat(self, slot: int, text_numbers: tuple[int, ...]) -> None:
        """Let the memo entries from `slot` on refer to repeated texts by their numbers."""
        for number in text_numbers:
            self._slots.append(slot)
            self._text_numbers.append(number)
            slot += 1

    def repeated_bytes(self) -> int:
        """Memory of the references to repeated texts."""
        return 5 * len(self._slots)

    def text_numbers(self, texts: tuple[str, ...]) -> tuple[int, ...]:
        """The numbers of repeated texts, assigned on first use."""
        self._texts += [text for text in dict.fromkeys(texts) if text not in self._texts]
        return tuple(self._texts.index(text) for text in texts)

    def __missing__(self, slot: int) -> str:
        index = bisect_left(self._slots, slot)
        if index == len(self._slots) or self._slots[index] != slot:
            raise KeyError(slot)
        return self._texts[self._text_numbers[index]]
