"""The cards of every host, as DeepSpeed's launcher hands them to its processes: JSON in base64 (deepspeed/launcher/runner.py)."""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode
from typing import TYPE_CHECKING

from diagnose.facts import Fact

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from diagnose.parse.text.lines import Page

_OPTION = b"--world_info="
_CODED = re.compile(rb"([A-Za-z0-9+/_-]{8,65536}={0,2})(?![A-Za-z0-9+/_=-])")


def facts(pages: Sequence[Page]) -> Iterator[Fact]:
    """How many processes and nodes the first readable option names; nothing where it is cut off or not of that form."""
    for page in pages:
        for at in page.excerpt.spots.places(_OPTION)[:4]:
            cards = _cards(page.excerpt.raw, at + len(_OPTION))
            if cards:
                place = page.witness(page.excerpt.offset + at)
                yield Fact("parallel.world", sum(cards), "log", place)
                yield Fact("parallel.nodes", len(cards), "log", place)
                return


def _cards(raw: bytes, at: int) -> list[int]:
    """The number of cards of every host."""
    coded = _CODED.match(raw, at)
    try:
        hosts = json.loads(urlsafe_b64decode(coded[1])) if coded else None
    except (ValueError, RecursionError):  # of base64, of UTF-8 and of JSON
        return []
    if not isinstance(hosts, dict) or not all(isinstance(slots, list) for slots in hosts.values()):
        return []
    return [len(slots) for slots in hosts.values()]
