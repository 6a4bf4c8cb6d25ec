"""Size: bytes known as well as they were printed; Version: a release number that compares."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import total_ordering
from math import ceil, floor

from diagnose.record import record

SCALE = {"B": 1, "bytes": 1, "byte": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}

#: What MPS and Ray print as KB, MB, GB is divided by 1024 as well; only their readers may use it.
BINARY_ALIAS = {"KB": "KiB", "MB": "MiB", "GB": "GiB", "TB": "TiB"}

#: A size above this is an unsigned underflow or "not available", never a number.
IMPOSSIBLE = 2**50


@record
class Size:
    """A byte count: `low <= truth <= high`, `bytes` the value printed or derived, `text` as printed."""

    low: int
    high: int
    bytes: int
    text: str = ""

    @classmethod
    def exactly(cls, count: int) -> Size:
        return cls(count, count, count)

    @classmethod
    def between(cls, low: int, high: int, bytes: int | None = None) -> Size:
        """A size known only as a range; `bytes` (default: the middle) is what sums are made of."""
        return cls(low, high, (low + high) // 2 if bytes is None else bytes)

    @classmethod
    def printed(cls, digits: str, unit: str, *, binary: bool = False) -> Size | None:
        """A printed size with its rounding; None for figures that no memory can have (above 1 PiB).

        `binary` reads KB, MB, GB as 1024-based (MPS, Ray); without it such a unit is an error.
        Raises ValueError for an unknown unit or a malformed number.
        """
        if unit not in SCALE and not (binary and unit in BINARY_ALIAS):
            raise ValueError(f"not a unit of memory: {unit}")
        scale = SCALE[BINARY_ALIAS[unit] if unit not in SCALE else unit]
        whole, _, part = digits.partition(".")
        if whole.isdecimal() and len(digits) < 24 and digits.isascii() and (part.isdecimal() or whole == digits):
            return cls._rounded(int(whole + part), 10 ** len(part), scale, f"{digits} {unit}")
        try:
            value = Decimal(digits)
        except InvalidOperation as error:
            raise ValueError(f"not a number: {digits}") from error
        exponent = value.as_tuple().exponent
        if not isinstance(exponent, int) or value > IMPOSSIBLE or value < 0:
            return None
        slop = Decimal(0) if scale == 1 else Decimal(5).scaleb(exponent - 1)
        nearest = round(Fraction(value) * scale)
        if nearest > IMPOSSIBLE:
            return None
        low, high = Fraction(value - slop) * scale, Fraction(value + slop) * scale
        return cls(max(0, ceil(low)), floor(high), nearest, f"{digits} {unit}")

    @classmethod
    def _rounded(cls, number: int, parts: int, scale: int, text: str) -> Size | None:
        """number / parts units of scale bytes, rounded in its last digit where it is no count of bytes."""
        nearest, rest = divmod(number * scale, parts)
        nearest += 2 * rest > parts or (2 * rest == parts and nearest % 2)
        if number > IMPOSSIBLE * parts or nearest > IMPOSSIBLE:
            return None
        slop = 0 if scale == 1 else 5
        low, high = -((slop - 10 * number) * scale // (10 * parts)), (10 * number + slop) * scale // (10 * parts)
        return cls(max(0, low), high, nearest, text)

    def __contains__(self, exact: int) -> bool:
        return self.low <= exact <= self.high

    def __add__(self, other: Size) -> Size:
        return Size(self.low + other.low, self.high + other.high, self.bytes + other.bytes)

    def __sub__(self, other: Size) -> Size:
        return Size(self.low - other.high, self.high - other.low, self.bytes - other.bytes)

    def times(self, factor: float | Fraction) -> Size:
        """This size scaled by a factor that is not negative."""
        exact = Fraction(factor)
        return Size(floor(self.low * exact), ceil(self.high * exact), round(self.bytes * exact))

    @property
    def exact(self) -> bool:
        return self.low == self.high

    def __str__(self) -> str:
        return self.text or show(self.bytes)


def told(size: Size) -> str:
    """A size in a sentence: as printed, but in binary units where a program prints those under decimal names, or many small ones."""
    odd = size.text.endswith((" KB", " MB", " GB", " TB")) or (size.text.endswith(" KiB") and size.bytes >= SCALE["MiB"])
    return show(size.bytes) if odd else str(size)


def show(count: int) -> str:
    """Bytes as people read them: binary units, two decimals, the sign kept."""
    sign, count = ("-" if count < 0 else ""), abs(count)
    for unit in ("bytes", "KiB", "MiB"):
        if count < SCALE[unit] * 1024:
            return f"{sign}{count} bytes" if unit == "bytes" else f"{sign}{count / SCALE[unit]:.2f} {unit}"
    return f"{sign}{count / SCALE['GiB']:.2f} GiB"


def torch_prints(count: int) -> str:
    """How torch's `format_size` prints a byte count (c10/cuda/CUDACachingAllocator.cpp): `<=` at each step, no TiB."""
    for unit in ("bytes", "KiB", "MiB"):
        if count <= SCALE[unit] * 1024:
            return f"{count} bytes" if unit == "bytes" else f"{count / SCALE[unit]:.2f} {unit}"
    return f"{count / SCALE['GiB']:.2f} GiB"


def size_of(text: str) -> Size | None:
    """The size that a text such as "4.64 GiB" or "512 MiB" names; None where it names none."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*", text)
    if not match or match[2] not in SCALE:
        return None
    return Size.printed(match[1], match[2])


_STAGE = {"dev": -4, "a": -3, "alpha": -3, "b": -2, "beta": -2, "rc": -1, "": 0, "post": 1}


@total_ordering
class Version:
    """A release such as 2.5.1, 0.9.2.dev0 or 0.7.0.post1; a local part (+cu124) is shown, not compared."""

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
    """The size with every bound at least 0, without the text that it was printed as."""
    return Size(max(0, size.low), max(0, size.high), max(0, size.bytes))
