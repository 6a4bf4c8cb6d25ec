"""GPUs of rules/hardware, found by printed name or by printed capacity."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

from diagnose import rule_files
from diagnose.records import NamedTuple
from diagnose.units import Size, Version

#: Words of a device name that do not identify a card: makers, product lines, sockets, editions.
_NOISE = r"(?:nvidia|tesla|geforce|rtx|amd|instinct|radeon|gpu|sxm\d?|pcie|hbm\de?|dgxs|fhhl|server|workstation|edition|generation|active)"
_MEMORY = r"(\d+)\s*g(?:i?b)?\b"

#: GiB by which a printed capacity may differ from a listed one, or lie below nvidia-smi's total where none is listed.
NEAR, FAR = 0.02, 1.2


class Card(NamedTuple):
    """A GPU. `capacities`: the totals that torch prints for it, in bytes with their rounding; `capability`: None for makers without such
    a number; `verified`: the capacities were seen in logs."""

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
    """The card with this name (as nvidia-smi or torch print it) or key; None if there are none or several."""
    named = cards_named(name)
    return named[0] if len(named) == 1 else None


def cards_named(name: str) -> list[Card]:
    """All cards that a name may mean: two for "V100", one for "V100 32GB", none for an unknown name."""
    query = _name_words(name)
    if not query:
        return []
    named_entries = [(entry, [_name_words(text) for text in (entry["key"], *entry["names"])]) for entry in _entries()]
    for matches in (
        lambda words, memory: query in (words, words | memory),
        lambda words, memory: query == words - memory,
        lambda words, memory: query <= words | memory,
    ):
        entries = [entry for entry, names in named_entries if any(matches(words, {f"{entry['marketing_gb']}gb"}) for words in names)]
        if entries:
            return [_card_of_entry(entry) for entry in entries]
    return []


def cards_holding(size: Size) -> list[str]:
    """The keys of all cards that have at least so much memory."""
    cards = map(_card_of_entry, _entries())
    return sorted(card.key for card in cards if any(capacity.high >= size.low for capacity in card.capacities))


def card_names() -> list[str]:
    """The keys of all cards, sorted."""
    return sorted(entry["key"] for entry in _entries())


def cards_of_capacity(capacity: Size) -> list[Card]:
    """The cards that print this capacity."""
    return [*_cards_printing(capacity.bytes)]


@lru_cache(maxsize=256)
def _cards_printing(total_bytes: int) -> tuple[Card, ...]:
    gib = total_bytes / 2**30
    entries = [entry for entry in _entries() if any(abs(gib - float(text)) <= NEAR + 1e-9 for text in (*entry["seen"], *entry["recalled"]))]
    if not entries:
        entries = [entry for entry in _entries() if entry["smi_mib"] and -NEAR <= entry["smi_mib"] / 1024 - gib <= FAR]
    return tuple(_card_of_entry(entry) for entry in entries)


def cards_of_class(cards: Sequence[Card]) -> list[Card]:
    """All cards that are sold with as much memory as one of these."""
    keys = {card.key for card in cards}
    sold = {entry["marketing_gb"] for entry in _entries() if entry["key"] in keys}
    return [_card_of_entry(entry) for entry in _entries() if entry["marketing_gb"] in sold]


@cache
def sizes_sold() -> list[tuple[int, Size]]:
    """Marketed sizes in GB, each with the smallest total that a card of this size prints, sorted by that total (a card with two chips
    prints half of its marketed size)."""
    smallest: dict[int, Size] = {}
    for entry in _entries():
        for size in _card_of_entry(entry).capacities:
            known = smallest.get(entry["marketing_gb"])
            smallest[entry["marketing_gb"]] = size if known is None or size.bytes < known.bytes else known
    return sorted(smallest.items(), key=lambda item: (item[1].bytes, item[0]))


def capacity_stated(name: str) -> Size | None:
    """The totals that cards print which are sold with the memory that this name states; None where it states none, or none is sold so. For
    cards that are not listed ("RTX 3070 8GB")."""
    match = re.search(_MEMORY, name.lower())
    entries = [entry for entry in _entries() if match and entry["marketing_gb"] == int(match[1])]
    sizes = [size for entry in entries for size in _card_of_entry(entry).capacities]
    return Size.between(min(size.low for size in sizes), max(size.high for size in sizes)) if sizes else None


@lru_cache(maxsize=1024)
def _name_words(name: str) -> frozenset[str]:
    """The words of a name that identify the card: {"a100", "80gb"}. Cached: every look-up compares the names of all cards."""
    name = re.sub(r"gtx ?(?=[2-5]0\d0)", "rtx ", name.lower())  # people go on writing GTX before the numbers of RTX cards
    text = re.sub(r"(rtx|rx|ascend|\d{4})(?=910|\d{4}|ti\b|d\b|xtx?\b)", r"\1 ", re.sub(_MEMORY, r"\1gb ", name))
    return frozenset(word for word in re.findall(r"[a-z0-9]+", text) if not re.fullmatch(_NOISE, word))


@cache
def _entries() -> list[Mapping[str, Any]]:
    return [entry for file in rule_files.table("hardware").values() for entry in file.get("cards", ())]


def _card_of_entry(entry: Mapping[str, Any]) -> Card:
    capacities = (Size.printed(text, "GiB") for text in (*entry["seen"], *entry["recalled"]))
    capability = entry["compute_capability"]
    return Card(
        key=entry["key"],
        names=tuple(entry["names"]),
        capacities=tuple(dict.fromkeys(size for size in capacities if size)),
        capability=Version(capability) if capability[0].isdigit() else None,
        arch=entry["arch"],
        **{name: entry[name] for name in ("bf16", "fa2", "fa3", "fp8", "verified")},
    )
