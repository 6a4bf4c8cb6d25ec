"""Formulas as text: one string of letters gives the bytes, their range, and the same string in figures for the reader."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from math import ceil, floor
from typing import TypeAlias

from diagnose.budget.model.ledger import Term
from diagnose.phrases import phrase
from diagnose.records import NamedTuple
from diagnose.units import Size


class Span(NamedTuple):
    """A number, never negative, known only as a range; sums use `mid`."""

    low: float
    mid: float
    high: float


Number: TypeAlias = "int | float | Span"
Values: TypeAlias = "Mapping[str, Number]"
_Step: TypeAlias = "Callable[[Values], Number]"

_TOKEN = re.compile(r"(\d+(?:\.\d+)?(?:e\d+)?)|([A-Za-z_]\w*)|(//|[-+*/(),])|\S")
_KINDS = ("", "number", "name", "sign")


def _power_of_two(number: float) -> int:
    """The next power of two."""
    return 1 << max(0, ceil(number) - 1).bit_length()


_FUNCTIONS: dict[str, Callable[..., float]] = {"min": min, "max": max, "ceil": ceil, "pow2": _power_of_two}


def _span(number: Number) -> Span:
    return number if isinstance(number, Span) else Span(number, number, number)


def _apply_to_ranges(work: Callable[[float, float], float], left: Number, right: Number, falls: bool) -> Span:
    """Apply `work` to ranges; `falls`: the result decreases in `right`, so its bounds are swapped."""
    left_span, right_span = _span(left), _span(right)
    least, high = (right_span.high, right_span.low) if falls else (right_span.low, right_span.high)
    return Span(work(left_span.low, least), work(left_span.mid, right_span.mid), work(left_span.high, high))


def _divide(left: float, right: float) -> float:
    """Division that keeps whole results integers, so that byte counts stay exact at any size."""
    if isinstance(left, int) and isinstance(right, int) and left % right == 0:
        return left // right
    return left / right


_OPERATORS: dict[str, tuple[int, Callable[[float, float], float], bool]] = {
    "+": (1, operator.add, False),
    "-": (1, operator.sub, True),
    "*": (2, operator.mul, False),
    "/": (2, _divide, True),
    "//": (2, operator.floordiv, True),
}


class Formula(NamedTuple):
    """A parsed formula: `evaluate` computes it, `figures` shows it in figures."""

    symbols: str
    names: tuple[str, ...]
    evaluate: _Step

    def figures(self, values: Values) -> str:
        return _template(self.symbols).format_map({name: _format_number(values[name]) for name in self.names})


def _format_number(number: Number) -> str:
    middle = number.mid if isinstance(number, Span) else number
    return str(int(middle)) if middle == int(middle) else repr(middle)


@cache
def formula(symbols: str) -> Formula:
    """Parse a formula of numbers, names, + - * / // ( ) min max ceil pow2 (the next power of two). Raises ValueError for any other text."""
    tokens = [(_KINDS[match.lastindex or 0], match[0]) for match in _TOKEN.finditer(symbols)]
    if any(not kind for kind, _ in tokens):
        raise ValueError(f"not a formula: {symbols}")
    step = _Reader(tokens, symbols).whole()
    names = tuple(dict.fromkeys(text for kind, text in tokens if kind == "name" and text not in _FUNCTIONS))
    return Formula(symbols, names, step)


@cache
def _template(symbols: str) -> str:
    """A formula with its letters as placeholders; most formulas are computed without being shown."""
    return re.sub(r"(?<![\w.])[A-Za-z_]\w*", lambda name: name[0] if name[0] in _FUNCTIONS else "{" + name[0] + "}", symbols)


class _Reader:
    """Precedence climbing over the tokens of one formula. Methods raise ValueError where the text is none."""

    def __init__(self, tokens: list[tuple[str, str]], symbols: str) -> None:
        self.tokens, self.symbols, self.at = tokens, symbols, 0

    def whole(self) -> _Step:
        step = self.sum(1)
        if self.at != len(self.tokens):
            raise ValueError(f"not a formula: {self.symbols}")
        return step

    def peek(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    def take(self, expected: str = "") -> tuple[str, str]:
        if self.at >= len(self.tokens) or (expected and self.peek() != expected):
            raise ValueError(f"not a formula: {self.symbols}")
        self.at += 1
        return self.tokens[self.at - 1]

    def sum(self, least: int) -> _Step:
        left = self.atom()
        while self.peek() in _OPERATORS and _OPERATORS[self.peek()][0] >= least:
            binding, work, falls = _OPERATORS[self.take()[1]]
            left = _binary_step(work, left, self.sum(binding + 1), falls)
        return left

    def atom(self) -> _Step:
        kind, text = self.take()
        if kind == "number":
            number = float(text) if "." in text or "e" in text else int(text)
            return lambda _: number
        if text == "(":
            inside = self.sum(1)
            self.take(")")
            return inside
        if kind == "name" and text in _FUNCTIONS:
            return self.call(_FUNCTIONS[text])
        if kind == "name":
            return lambda values: values[text]
        raise ValueError(f"not a formula: {self.symbols}")

    def call(self, work: Callable[..., float]) -> _Step:
        self.take("(")
        parts = [self.sum(1)]
        while self.peek() == ",":
            self.take()
            parts.append(self.sum(1))
        self.take(")")
        return lambda values: _call_step(work, [part(values) for part in parts])


def _binary_step(work: Callable[[float, float], float], left: _Step, right: _Step, falls: bool) -> _Step:
    def step(values: Values) -> Number:
        left_value, right_value = left(values), right(values)
        return (
            _apply_to_ranges(work, left_value, right_value, falls)
            if isinstance(left_value, Span) or isinstance(right_value, Span)
            else work(left_value, right_value)
        )

    return step


def _call_step(work: Callable[..., float], parts: list[Number]) -> Number:
    if not any(isinstance(part, Span) for part in parts):
        return work(*parts)
    spans = [_span(part) for part in parts]
    return Span(work(*(s.low for s in spans)), work(*(s.mid for s in spans)), work(*(s.high for s in spans)))


def term(key: str, group: str, symbols: str, values: Values, *, source: str = "", low: str = "", high: str = "", **texts: object) -> Term:
    """The term `ledger.KEY` of a formula; `low` and `high` are formulas of its bounds where they differ from the figure. `texts` fill the
    placeholders of its name."""
    used = _letter_names(symbols, low, high)
    return _make_term(key, group, symbols, source, low, high, tuple(texts.items()), *map(values.__getitem__, used))


@cache
def _letter_names(*symbols: str) -> tuple[str, ...]:
    """The letters of several formulas, without repeats."""
    return tuple(dict.fromkeys(name for text in symbols if text for name in formula(text).names))


@lru_cache(maxsize=4096, typed=True)
def _make_term(
    key: str, group: str, symbols: str, source: str, low: str, high: str, texts: tuple[tuple[str, object], ...], *used: Number
) -> Term:
    """Cached: where one knob changes, most terms of a ledger stay as they are."""
    values = dict(zip(_letter_names(symbols, low, high), used, strict=True))
    parsed = formula(symbols)
    result = _span(parsed.evaluate(values))
    least = _span(formula(low).evaluate(values)).low if low else result.low
    upper = _span(formula(high).evaluate(values)).high if high else result.high
    middle = round(result.mid)
    size = Size(min(floor(least), middle), max(ceil(upper), middle), middle)
    return Term(key, phrase(f"ledger.{key}", **dict(texts)), group, size, symbols, parsed.figures(values), source)


def clear_cache() -> None:
    """Forget cached terms: for benchmarks."""
    _make_term.cache_clear()
