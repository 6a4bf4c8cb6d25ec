"""`Size`: an amount of memory as an interval of bytes; `Version`: a comparable release number."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import total_ordering
from math import ceil, floor, inf, isfinite
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fractions import Fraction

SCALE = {"B": 1, "bytes": 1, "byte": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}

#: Decimal unit names that MPS and Ray print for powers of 1024; only the readers of their messages use it.
BINARY_ALIAS = {"KB": "KiB", "MB": "MiB", "GB": "GiB", "TB": "TiB"}

#: Bytes; a larger printed size is an unsigned underflow or stands for "not available".
IMPOSSIBLE = 2**50

#: Digits of as many MiB as nobody reads as a size: 10 GiB and more.
MANY_MIB = 5

#: Digits of the longest number that is read: Python converts no more than 4,300, and no count, size or number of a process has as many.
MOST_DIGITS = 40
_RUN = re.compile(r"\d+")  # as grammars count digits


def whole_number(text: str | bytes) -> int | None:
    """The number in a text that a stranger wrote, commas between its digits left out; None for what is no whole number."""
    digits = text.decode("ascii", "replace") if isinstance(text, bytes) else text
    if "," in digits:
        digits = digits.replace(",", "")
    return int(digits) if len(digits) <= MOST_DIGITS and digits.isascii() and digits.isdecimal() else None


def whole_numbers(text: str) -> list[int | None]:
    """Every run of digits in a text, None for one that is too long for any number."""
    return [whole_number(digits) for digits in _RUN.findall(text)]


def first_numbers(text: str, count: int) -> list[int | None]:
    """So many of `whole_numbers`, None where the text has fewer: what a message says of two may be cut off behind the first."""
    return [*whole_numbers(text)[:count], *[None] * count][:count]


def finite_number(text: str | bytes) -> float | None:
    """The number with or without a fraction in a text that a stranger wrote; None for what is none, for inf and for nan."""
    digits = text.decode("ascii", "replace") if isinstance(text, bytes) else text
    try:
        number = float(digits) if len(digits) <= MOST_DIGITS and digits.isascii() else inf
    except ValueError:
        return None
    return number if isfinite(number) else None


def _nearest(number: int, parts: int) -> int:
    """`number / parts` rounded as `round` does, halves to the even number; exact at any size."""
    nearest, remainder = divmod(number, parts)
    return nearest + (2 * remainder > parts or (2 * remainder == parts and nearest % 2))


@dataclass(slots=True, unsafe_hash=True)
class Size:
    """A number of bytes within `low..high`; `bytes`: the printed or derived value that sums are made of; `text`: as printed."""

    low: int
    high: int
    bytes: int
    text: str = ""

    @classmethod
    def exactly(cls, count: int) -> Size:
        return cls(count, count, count)

    @classmethod
    def between(cls, low: int, high: int, bytes: int | None = None) -> Size:
        """A size known only as a range; `bytes` defaults to its middle."""
        return cls(low, high, (low + high) // 2 if bytes is None else bytes)

    @classmethod
    def printed(cls, digits: str, unit: str, *, binary: bool = False) -> Size | None:
        """Parse a printed size, with its rounding as the interval; None for impossible sizes (negative or above 1 PiB) and for what is no
        number: a log may hold anything where a message has its figures.

        `binary`: accept KB, MB, GB as powers of 1024 (MPS, Ray). Raises ValueError for an unknown unit.
        """
        if unit not in SCALE and not (binary and unit in BINARY_ALIAS):
            raise ValueError(f"not a unit of memory: {unit}")
        scale = SCALE[BINARY_ALIAS[unit] if unit not in SCALE else unit]
        whole, _, fraction = digits.partition(".")
        if whole.isdecimal() and len(digits) < 24 and digits.isascii() and (fraction.isdecimal() or whole == digits):
            return cls._rounded(int(whole + fraction), 10 ** len(fraction), scale, f"{digits} {unit}")
        from decimal import Decimal, InvalidOperation  # few sizes are printed otherwise than with digits and a point
        from fractions import Fraction

        try:
            value = Decimal(digits)
        except InvalidOperation:
            return None
        exponent = value.as_tuple().exponent
        if not isinstance(exponent, int) or exponent < -MOST_DIGITS or value > IMPOSSIBLE or value < 0:
            return None
        rounding = Decimal(0) if scale == 1 else Decimal(5).scaleb(exponent - 1)
        nearest = round(Fraction(value) * scale)
        if nearest > IMPOSSIBLE:
            return None
        low, high = Fraction(value - rounding) * scale, Fraction(value + rounding) * scale
        return cls(max(0, ceil(low)), floor(high), nearest, f"{digits} {unit}")

    @classmethod
    def _rounded(cls, number: int, parts: int, scale: int, text: str) -> Size | None:
        """The size of `number / parts` units of `scale` bytes, rounded in its last digit unless the unit is bytes."""
        nearest = _nearest(number * scale, parts)
        if number > IMPOSSIBLE * parts or nearest > IMPOSSIBLE:
            return None
        rounding = 0 if scale == 1 else 5
        low, high = -((rounding - 10 * number) * scale // (10 * parts)), (10 * number + rounding) * scale // (10 * parts)
        return cls(max(0, low), high, nearest, text)

    def __contains__(self, exact: int) -> bool:
        return self.low <= exact <= self.high

    def __add__(self, other: Size) -> Size:
        return Size(self.low + other.low, self.high + other.high, self.bytes + other.bytes)

    def __sub__(self, other: Size) -> Size:
        return Size(self.low - other.high, self.high - other.low, self.bytes - other.bytes)

    def times(self, factor: float | Fraction) -> Size:
        """This size multiplied by a non-negative factor."""
        return self.scaled(*factor.as_integer_ratio())

    def scaled(self, times: int, parts: int) -> Size:
        """`times / parts` of this size."""
        return Size(self.low * times // parts, -(-self.high * times // parts), _nearest(self.bytes * times, parts))

    @property
    def exact(self) -> bool:
        return self.low == self.high

    def __str__(self) -> str:
        return self.text.replace(". ", " ") or show(self.bytes)  # NumPy prints a point behind a whole number


def size_text(size: Size) -> str:
    """Format a size for a sentence: as printed, but converted where the text has a decimal unit name for a binary unit, or many of a
    small one."""
    return show(size.bytes) if size.text.endswith((" KB", " MB", " GB", " TB")) or is_in_small_unit(size) else str(size)


def is_in_small_unit(size: Size) -> bool:
    """Whether it is printed as so many bytes, KiB or MiB that nobody sees how much it is: `184549376B`, `204800.00 MiB`."""
    printed = re.fullmatch(r"([\d,]+)(?:\.\d+)? ?(bytes|B|KiB|MiB)", size.text)
    if printed is None:
        return False
    return size.bytes >= SCALE["MiB"] and (printed[2] != "MiB" or len(printed[1]) >= MANY_MIB)


def show(count: int) -> str:
    """Format bytes for people: binary units, two decimals, with sign."""
    sign, count = ("-" if count < 0 else ""), abs(count)
    for unit in ("bytes", "KiB", "MiB"):
        if count < SCALE[unit] * 1024:
            return f"{sign}{count} bytes" if unit == "bytes" else f"{sign}{count / SCALE[unit]:.2f} {unit}"
    return f"{sign}{count / SCALE['GiB']:.2f} GiB"


def torch_prints(count: int) -> str:
    """Format bytes as torch's `format_size` does (c10/cuda/CUDACachingAllocator.cpp): `<=` at each step, no TiB."""
    for unit in ("bytes", "KiB", "MiB"):
        if count <= SCALE[unit] * 1024:
            return f"{count} bytes" if unit == "bytes" else f"{count / SCALE[unit]:.2f} {unit}"
    return f"{count / SCALE['GiB']:.2f} GiB"


def size_of(text: str) -> Size | None:
    """Parse a text such as "4.64 GiB" or "512 MiB"; None if it is no size."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*", text)
    if not match or match[2] not in SCALE:
        return None
    return Size.printed(match[1], match[2])


_STAGE = {"dev": -4, "a": -3, "alpha": -3, "b": -2, "beta": -2, "rc": -1, "": 0, "post": 1}


@total_ordering
class Version:
    """A release such as 2.5.1, 0.9.2.dev0 or 0.7.0.post1; a local part (+cu124) is dropped. Raises ValueError for other texts."""

    __slots__ = ("key", "text")

    def __init__(self, text: str) -> None:
        match = re.match(r"v?(\d+(?:\.\d+)*)[.-]?(dev|a|alpha|b|beta|rc|post)?\.?(\d*)", text.strip())
        if not match:
            raise ValueError(f"not a version: {text}")
        release = [int(part[:9]) for part in match[1].split(".")]
        while len(release) > 1 and release[-1] == 0:
            release.pop()
        self.key = (tuple(release), _STAGE[match[2] or ""], int(match[3][:9] or 0) if match[2] else 0)
        self.text = text.strip().removeprefix("v").partition("+")[0]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self.key == other.key

    def __lt__(self, other: Version) -> bool:
        return self.key < other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Version({self.text!r})"


def not_negative(size: Size) -> Size:
    """The size with all bounds raised to at least 0, without its printed text."""
    return Size(max(0, size.low), max(0, size.high), max(0, size.bytes))
