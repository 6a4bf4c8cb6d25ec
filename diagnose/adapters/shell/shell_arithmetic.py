"""Shell arithmetic `$((A * B))` and affix removal `${X##*/}`, as far as the operands are known."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fnmatch import translate

_TOKEN = re.compile(r"\s*(?:(\d+)|\$?\{?([A-Za-z_]\w*)\}?|(\*\*|[-+*/%()]))")
_LARGEST = 2**63
_MAX_DEPTH = 20


class _Unknown(Exception):
    """An operand is unknown, or the text is no arithmetic."""


def evaluate(text: str, value_of: Callable[[str], str | None]) -> int | None:
    """The value of an arithmetic expression; None where an operand is unknown or it does not parse."""
    if len(text) > 300:
        return None
    try:
        tokens = list(_tokens(text, value_of))
        value, end = _parse_sum(tokens, 0, 0)
        return value if end == len(tokens) else None
    except (_Unknown, ZeroDivisionError):
        return None


def _tokens(text: str, value_of: Callable[[str], str | None]) -> Iterator[int | str]:
    pos = 0
    text = text.rstrip()
    while pos < len(text):
        match = _TOKEN.match(text, pos)
        if match is None:
            raise _Unknown
        pos = match.end()
        if match[1]:
            if len(match[1]) > 18:
                raise _Unknown
            yield int(match[1])
        elif match[2]:
            value = value_of(match[2])
            if value is None or not re.fullmatch(r"-?\d{1,18}", value.strip()):
                raise _Unknown
            yield int(value)
        else:
            yield match[3]


def _parse_sum(tokens: list[int | str], pos: int, depth: int) -> tuple[int, int]:
    value, pos = _parse_product(tokens, pos, depth)
    while pos < len(tokens) and tokens[pos] in ("+", "-"):
        operand, end = _parse_product(tokens, pos + 1, depth)
        value = _checked(value + operand if tokens[pos] == "+" else value - operand)
        pos = end
    return value, pos


def _parse_product(tokens: list[int | str], pos: int, depth: int) -> tuple[int, int]:
    value, pos = _parse_factor(tokens, pos, depth)
    while pos < len(tokens) and tokens[pos] in ("*", "/", "%"):
        operand, end = _parse_factor(tokens, pos + 1, depth)
        operator = tokens[pos]
        quotient = abs(value) // abs(operand) * (1 if (value < 0) == (operand < 0) else -1) if operator != "*" else 0
        value = _checked(value * operand if operator == "*" else quotient if operator == "/" else value - quotient * operand)
        pos = end
    return value, pos


def _parse_factor(tokens: list[int | str], pos: int, depth: int) -> tuple[int, int]:
    if pos >= len(tokens) or depth > _MAX_DEPTH:
        raise _Unknown
    operand = tokens[pos]
    if isinstance(operand, int):
        if pos + 1 < len(tokens) and tokens[pos + 1] == "**":
            exponent, end = _parse_factor(tokens, pos + 2, depth + 1)
            if not 0 <= exponent < 64:
                raise _Unknown
            return _checked(operand**exponent), end
        return operand, pos + 1
    if operand == "(":
        value, pos = _parse_sum(tokens, pos + 1, depth + 1)
        if tokens[pos : pos + 1] != [")"]:
            raise _Unknown
        return value, pos + 1
    if operand == "-":
        value, pos = _parse_factor(tokens, pos + 1, depth + 1)
        return -value, pos
    raise _Unknown


def _checked(value: int) -> int:
    if abs(value) >= _LARGEST:
        raise _Unknown
    return value


def strip_affix(text: str, operator: str, pattern: str) -> str | None:
    """`${X#pattern}`, `##`, `%`, `%%`: the text without the matching prefix or suffix; None where the pattern is too costly or unknown."""
    if len(text) > 2000 or len(pattern) > 60 or pattern.count("*") > 2 or "$" in pattern:
        return None
    matches = re.compile(translate(pattern)).match
    if operator[0] == "#":
        lengths = [length for length in range(len(text) + 1) if matches(text[:length])]
        length = (max(lengths) if operator == "##" else min(lengths)) if lengths else 0
        return text[length:]
    lengths = [length for length in range(len(text) + 1) if matches(text[len(text) - length :])]
    length = (max(lengths) if operator == "%%" else min(lengths)) if lengths else 0
    return text[: len(text) - length]
