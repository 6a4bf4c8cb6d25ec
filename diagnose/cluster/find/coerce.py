"""Numbers, times and sizes as schedulers and people write them. What is no such thing is None: nothing here raises."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

#: Seconds since 1970: later than this they are milliseconds, or no time at all.
_LATEST = 1e11
_UNKNOWN = frozenset({"", "unknown", "none", "n/a", "na", "null", "invalid", "unlimited", "partition_limit", "-"})
_DURATION = re.compile(r"(?:(\d{1,6})-)?(?:(\d{1,6}):)?(\d{1,6}):(\d{1,2}(?:\.\d{1,9})?)$")
_NAMED = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*(d|h|m|s|ms)", re.IGNORECASE)
_SIZE = re.compile(r"(\d{1,20}(?:\.\d{1,9})?)\s*([KMGTPE]?)(i?)B?([nc]?)$", re.IGNORECASE)
_EXPONENT = {letter: power for power, letter in enumerate(" KMGTPE")}
_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def text(value: object, most: int = 1000) -> str:
    """A word or sentence, without the characters that no database takes; empty where nothing is said."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return ""
    found = str(value).replace("\0", "").strip()[:most].encode(errors="replace").decode()
    return "" if found.lower() in _UNKNOWN else found


def count(value: object) -> int | None:
    """A number of things, none of them negative."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return int(value) if 0 <= value < 1 << 53 and value == value else None
    found = re.fullmatch(r"(\d{1,15})(?:\.0+)?", str(value).strip())
    return int(found[1]) if found else None


def whole(value: object) -> int | None:
    """A number that may be negative: an exit code."""
    if isinstance(value, str) and value.strip().startswith("-"):
        found = count(value.strip()[1:])
        return None if found is None else -found
    return int(value) if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 31 else count(value)


def moment(value: object) -> float | None:
    """A time as seconds since 1970 in UTC: a number (milliseconds too), or ISO 8601; without a zone this machine's, as sacct prints."""
    from datetime import datetime

    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str):
        said = text(value)
        if not re.fullmatch(r"\d{9,13}(?:\.\d{1,9})?", said):
            try:
                return datetime.fromisoformat(said).timestamp() if len(said) >= 10 else None
            except (ValueError, OverflowError, OSError):
                return None
        value = float(said)
    if not isinstance(value, (int, float)) or not math.isfinite(value) or value <= 0:
        return None
    seconds = value / 1000 if value > _LATEST else float(value)
    return seconds if seconds < _LATEST else None


def duration(value: object) -> float | None:
    """Seconds: a number, 1-02:03:04, 02:03:04, 03:04, or 1d2h3m4s."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value) if 0 <= value < _LATEST else None
    said = text(value)
    found = _DURATION.match(said)
    if found:
        days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
        return days * 86400 + hours * 3600 + minutes * 60 + seconds
    named = _NAMED.findall(said)
    if named and not _NAMED.sub("", said).strip():
        return sum(float(number) * _SECONDS[unit.lower()] for number, unit in named)
    return float(said) if re.fullmatch(r"\d{1,11}(?:\.\d{1,9})?", said) else None


def size(value: object, plain: int = 1) -> int | None:
    """Bytes: a number of `plain` bytes each, or with K, M, G, T, P in powers of 1024 (as Slurm counts), a B or iB behind it or not."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return int(value * plain) if 0 <= value * plain < 1 << 60 else None
    found = _SIZE.match(text(value))
    if found is None:
        return None
    letter = found[2].upper()
    total = float(found[1]) * (1024 ** _EXPONENT[letter] if letter else plain)
    return int(total) if total < 1 << 60 else None


def exit_code(value: object) -> tuple[int | None, int | None]:
    """The exit code and the signal of `0:9`, 137, "-9". A code above 128 is a shell's word for a signal, and stays a code."""
    said = text(value) if isinstance(value, str) else value
    if isinstance(said, str) and ":" in said:
        code, _, signal = said.partition(":")
        ended = count(signal)
        return whole(code), ended or None
    code_only = whole(said)
    if code_only is not None and code_only < 0:
        return None, -code_only
    return code_only, None


def tres(value: object) -> dict[str, str]:
    """Slurm's trackable resources, cpu=8,mem=64G,node=2,gres/gpu=16,gres/gpu:a100=16, by name."""
    pairs = (part.partition("=") for part in text(value, 4000).split(","))
    return {name.strip(): amount.strip() for name, sign, amount in pairs if sign}


def first(row: Mapping[str, Any], names: tuple[str, ...]) -> object:
    """The first of several names for one thing that says something, however it is capitalised; `-` and `_` do not count."""
    for name in names:
        found = row.get(name)
        if found is not None and found != "":
            return found
    return None


def folded(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row by its names in small letters, without dashes and underlines."""
    return {str(name).lower().replace("_", "").replace("-", "").replace(" ", ""): value for name, value in row.items()}
