"""Parses numbers, times and sizes as schedulers and people write them. Unparsable values become None; nothing here raises."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TypeVar

Number = TypeVar("Number", int, float)

#: Larger numbers are milliseconds since 1970 and not seconds, or no time at all.
_MAX_SECONDS = 1e11
_UNKNOWN = frozenset({"", "unknown", "none", "n/a", "na", "null", "invalid", "unlimited", "partition_limit", "-"})
_DURATION = re.compile(r"(?:(\d{1,6})-)?(?:(\d{1,6}):)?(\d{1,6}):(\d{1,2}(?:\.\d{1,9})?)$")
_WITH_UNITS = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*(d|h|m|s|ms)", re.IGNORECASE)
_SIZE = re.compile(r"(\d{1,20}(?:\.\d{1,9})?)\s*([KMGTPE]?)(i?)B?([nc]?)$", re.IGNORECASE)
_POWERS = {letter: power for power, letter in enumerate(" KMGTPE")}
_UNIT_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def text(value: object, most: int = 1000) -> str:
    """A text of bounded length that a database accepts; empty for placeholders such as "N/A"."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return ""
    cleaned = str(value).replace("\0", "").strip()[:most].encode(errors="replace").decode()
    return "" if cleaned.lower() in _UNKNOWN else cleaned


def count(value: object) -> int | None:
    """A non-negative number."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return int(value) if 0 <= value < 1 << 53 and value == value else None
    match = re.fullmatch(r"(\d{1,15})(?:\.0+)?", str(value).strip())
    return int(match[1]) if match else None


def integer(value: object) -> int | None:
    """An integer, possibly negative: an exit code."""
    if isinstance(value, str) and value.strip().startswith("-"):
        magnitude = count(value.strip()[1:])
        return None if magnitude is None else -magnitude
    return int(value) if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 31 else count(value)


def timestamp(value: object) -> float | None:
    """Seconds since 1970 in UTC, from a number (also milliseconds) or ISO 8601; without a time zone local time, as sacct prints it."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str):
        cleaned = text(value)
        if not re.fullmatch(r"\d{9,13}(?:\.\d{1,9})?", cleaned):
            try:
                return datetime.fromisoformat(cleaned).timestamp() if len(cleaned) >= 10 else None
            except (ValueError, OverflowError, OSError):
                return None
        value = float(cleaned)
    if not isinstance(value, (int, float)) or not math.isfinite(value) or value <= 0:
        return None
    seconds = value / 1000 if value > _MAX_SECONDS else float(value)
    return seconds if seconds < _MAX_SECONDS else None


def duration(value: object) -> float | None:
    """Seconds, from a number or 1-02:03:04, 02:03:04, 03:04, 1d2h3m4s."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value) if 0 <= value < _MAX_SECONDS else None
    cleaned = text(value)
    match = _DURATION.match(cleaned)
    if match:
        days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
        return days * 86400 + hours * 3600 + minutes * 60 + seconds
    parts = _WITH_UNITS.findall(cleaned)
    if parts and not _WITH_UNITS.sub("", cleaned).strip():
        return sum(float(number) * _UNIT_SECONDS[unit.lower()] for number, unit in parts)
    return float(cleaned) if re.fullmatch(r"\d{1,11}(?:\.\d{1,9})?", cleaned) else None


def byte_size(value: object, unit: int = 1) -> int | None:
    """Bytes, from a number in units of `unit` bytes or with a suffix K, M, G, T, P in powers of 1024 (as Slurm counts), optionally with
    B or iB."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return int(value * unit) if 0 <= value * unit < 1 << 60 else None
    match = _SIZE.match(text(value))
    if match is None:
        return None
    letter = match[2].upper()
    total = float(match[1]) * (1024 ** _POWERS[letter] if letter else unit)
    return int(total) if total < 1 << 60 else None


def exit_code(value: object) -> tuple[int | None, int | None]:
    """Exit code and signal of `0:9`, 137 or "-9". Codes above 128 are not converted to signals: a shell may have returned them itself."""
    cleaned = text(value) if isinstance(value, str) else value
    if isinstance(cleaned, str) and ":" in cleaned:
        code, _, signal = cleaned.partition(":")
        signal_number = count(signal)
        return integer(code), signal_number or None
    number = integer(cleaned)
    if number is not None and number < 0:
        return None, -number
    return number, None


def tres(value: object) -> dict[str, str]:
    """Slurm's trackable resources by name: cpu=8,mem=64G,node=2,gres/gpu=16,gres/gpu:a100=16."""
    pairs = (part.partition("=") for part in text(value, 4000).split(","))
    return {name.strip(): amount.strip() for name, sign, amount in pairs if sign}


def first_value(row: Mapping[str, object], names: tuple[str, ...]) -> object:
    """The first value that is neither None nor empty among several keys with one meaning, in a row from `fold_keys`."""
    for name in names:
        value = row.get(name)
        if value is not None and value != "":
            return value
    return None


def fold_keys(row: Mapping[str, object]) -> dict[str, object]:
    """A row with its keys in lower case, without dashes, underscores and spaces."""
    return {str(name).lower().replace("_", "").replace("-", "").replace(" ", ""): value for name, value in row.items()}


def largest(values: Iterable[Number | None]) -> Number | None:
    """The largest known value; None if none is known."""
    return max((value for value in values if value is not None), default=None)


def smallest(values: Iterable[Number | None]) -> Number | None:
    """The smallest known value; None if none is known."""
    return min((value for value in values if value is not None), default=None)
