"""Which card a printed name or a printed capacity means."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

from diagnose import rule_files
from diagnose.record import record
from diagnose.units import Size, Version

#: Words of a device name that do not tell cards apart: makers, lines, sockets, editions.
_NOISE = r"(?:nvidia|tesla|geforce|rtx|amd|instinct|radeon|gpu|sxm\d?|pcie|hbm\de?|dgxs|fhhl|server|workstation|edition|generation|active)"
_MEMORY = r"(\d+)\s*g(?:i?b)?\b"

#: How far a printed capacity may lie from a listed one, and below nvidia-smi's total where none is listed, GiB.
NEAR, FAR = 0.02, 1.2


@record
class Card:
    """A GPU. `capacities` are the totals torch prints for it, in bytes with their rounding; `capability` is None where the
    maker has no such number; `verified`: the capacities were seen in logs, not recalled."""

    key: str
    names: tuple[str, ...]
    capacities: tuple[Size, ...]
    capability: Version | None
    arch: str
    bf16: bool
    fa2: bool
    fa3: bool = False
    fp8: bool = False
    verified: bool = False


def card(name: str) -> Card | None:
    """The one card that a device name as printed (nvidia-smi, torch) or a catalogue key names."""
    named = cards_named(name)
    return named[0] if len(named) == 1 else None


def cards_named(name: str) -> list[Card]:
    """Every card that a name may mean: "V100" is two of them, "V100 32GB" one, a name we do not know none."""
    asked = _words(name)
    if not asked:
        return []
    known = [(entry, [_words(text) for text in (entry["key"], *entry["names"])]) for entry in _entries()]
    for fits in (
        lambda words, memory: asked in (words, words | memory),
        lambda words, memory: asked == words - memory,
        lambda words, memory: asked <= words | memory,
    ):
        found = [entry for entry, names in known if any(fits(words, {f"{entry['marketing_gb']}gb"}) for words in names)]
        if found:
            return [_card(entry) for entry in found]
    return []


def card_names() -> list[str]:
    """The key of every card, for advice."""
    return sorted(entry["key"] for entry in _entries())


def cards_of_capacity(capacity: Size) -> list[Card]:
    """The cards whose printed capacity this is; several where they share it."""
    return [*_printing(capacity.bytes)]


@lru_cache(maxsize=256)
def _printing(total: int) -> tuple[Card, ...]:
    gib = total / 2**30
    entries = [entry for entry in _entries() if any(abs(gib - float(text)) <= NEAR + 1e-9 for text in (*entry["seen"], *entry["recalled"]))]
    if not entries:
        entries = [entry for entry in _entries() if entry["smi_mib"] and -NEAR <= entry["smi_mib"] / 1024 - gib <= FAR]
    return tuple(_card(entry) for entry in entries)


@cache
def sizes_sold() -> list[tuple[int, Size]]:
    """The classes of cards, GB as sold, each with the least that a card of it prints as its total; the smallest total first
    (a card of two chips prints half of what it is sold with)."""
    found: dict[int, Size] = {}
    for entry in _entries():
        for size in _card(entry).capacities:
            held = found.get(entry["marketing_gb"])
            found[entry["marketing_gb"]] = size if held is None or size.bytes < held.bytes else held
    return sorted(found.items(), key=lambda sold: (sold[1].bytes, sold[0]))


def _words(name: str) -> frozenset[str]:
    """The words of a name that tell cards apart: {"a100", "80gb"}."""
    text = re.sub(r"(rtx|rx|ascend|\d{4})(?=910|\d{4}|ti\b|d\b|xtx?\b)", r"\1 ", re.sub(_MEMORY, r"\1gb ", name.lower()))
    return frozenset(word for word in re.findall(r"[a-z0-9]+", text) if not re.fullmatch(_NOISE, word))


@cache
def _entries() -> list[Mapping[str, Any]]:
    return [entry for file in rule_files.table("hardware").values() for entry in file.get("cards", ())]


def _card(entry: Mapping[str, Any]) -> Card:
    printed = (Size.printed(text, "GiB") for text in (*entry["seen"], *entry["recalled"]))
    number = entry["compute_capability"]
    return Card(
        key=entry["key"],
        names=tuple(entry["names"]),
        capacities=tuple(dict.fromkeys(size for size in printed if size)),
        capability=Version(number) if number[0].isdigit() else None,
        arch=entry["arch"],
        **{name: entry[name] for name in ("bf16", "fa2", "fa3", "fp8", "verified")},
    )
