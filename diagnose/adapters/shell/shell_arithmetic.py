"""Arithmetic and patterns of the shell, as far as their parts are known: `$((A * B))`, `${X##*/}`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fnmatch import translate

_TOKEN = re.compile(r"\s*(?:(\d+)|\$?\{?([A-Za-z_]\w*)\}?|(\*\*|[-+*/%()]))")
_LARGEST = 2**63
_DEEPEST = 20


class _Unknown(Exception):
    """A part of the sum is unknown, or it is no sum."""


def total(text: str, value_of: Callable[[str], str | None]) -> int | None:
    """The sum; None where a part of it is unknown."""
    if len(text) > 300:
        return None
    try:
        parts = list(_parts(text, value_of))
        value, rest = _sum(parts, 0, 0)
        return value if rest == len(parts) else None
    except (_Unknown, ZeroDivisionError):
        return None


def _parts(text: str, value_of: Callable[[str], str | None]) -> Iterator[int | str]:
    at = 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _Unknown
        at = match.end()
        if match[1]:
            if len(match[1]) > 18:
                raise _Unknown
            yield int(match[1])
        elif match[2]:
            held = value_of(match[2])
            if held is None or not re.fullmatch(r"-?\d{1,18}", held.strip()):
                raise _Unknown
            yield int(held)
        else:
            yield match[3]


def _sum(parts: list[int | str], at: int, depth: int) -> tuple[int, int]:
    value, at = _product(parts, at, depth)
    while at < len(parts) and parts[at] in ("+", "-"):
        other, after = _product(parts, at + 1, depth)
        value = _bounded(value + other if parts[at] == "+" else value - other)
        at = after
    return value, at


def _product(parts: list[int | str], at: int, depth: int) -> tuple[int, int]:
    value, at = _single(parts, at, depth)
    while at < len(parts) and parts[at] in ("*", "/", "%"):
        other, after = _single(parts, at + 1, depth)
        sign = parts[at]
        quotient = abs(value) // abs(other) * (1 if (value < 0) == (other < 0) else -1) if sign != "*" else 0
        value = _bounded(value * other if sign == "*" else quotient if sign == "/" else value - quotient * other)
        at = after
    return value, at


def _single(parts: list[int | str], at: int, depth: int) -> tuple[int, int]:
    if at >= len(parts) or depth > _DEEPEST:
        raise _Unknown
    part = parts[at]
    if isinstance(part, int):
        if at + 1 < len(parts) and parts[at + 1] == "**":
            power, after = _single(parts, at + 2, depth + 1)
            if not 0 <= power < 64:
                raise _Unknown
            return _bounded(part**power), after
        return part, at + 1
    if part == "(":
        value, at = _sum(parts, at + 1, depth + 1)
        if parts[at : at + 1] != [")"]:
            raise _Unknown
        return value, at + 1
    if part == "-":
        value, at = _single(parts, at + 1, depth + 1)
        return -value, at
    raise _Unknown


def _bounded(value: int) -> int:
    if abs(value) >= _LARGEST:
        raise _Unknown
    return value


def cut(text: str, sign: str, pattern: str) -> str | None:
    """`${X#pattern}` and its kin: the text without a beginning or an end; None where that is too much to ask."""
    if len(text) > 2000 or len(pattern) > 60 or pattern.count("*") > 2 or "$" in pattern:
        return None
    matches = re.compile(translate(pattern)).match
    sizes = range(len(text) + 1)
    if sign[0] == "#":
        found = [size for size in sizes if matches(text[:size])]
        size = (max(found) if sign == "##" else min(found)) if found else 0
        return text[size:]
    found = [size for size in sizes if matches(text[len(text) - size :])]
    size = (max(found) if sign == "%%" else min(found)) if found else 0
    return text[: len(text) - size]
