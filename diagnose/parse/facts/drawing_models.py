"""Which model for pictures or clips a text names (rules/denoisers.yaml), what it says of its bits and of what leaves the card: the facts
`drawing.*` and `run.video`.

People name such a model in a path, a title, a setting or a sentence. Where a text names several, the one that takes least counts: what is
said to exceed a card then does so whichever of them ran. A text that names many lists what exists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from diagnose import catalogue, rule_files
from diagnose.catalogue import denoisers
from diagnose.facts import Fact, Witness

if TYPE_CHECKING:
    from diagnose.catalogue.denoisers import Mention
    from diagnose.facts import Origin, Value
    from diagnose.parse.text.lines import Page

#: How much of a text is looked at, at its start and at its end.
_LOOK = 16 << 10

#: More models than these are a list.
_MOST = 4


def facts(pages: Sequence[Page]) -> Iterator[Fact]:
    """What the first log or the page says of such a model."""
    if pages:
        page = pages[0]
        yield from _facts_of(page.excerpt.raw, "log", lambda at: page.witness(page.excerpt.offset + at))


def facts_of_file(data: bytes, name: str) -> Iterator[Fact]:
    """What a config or script says of such a model."""
    yield from _facts_of(data, "config", lambda _: Witness(name))


def _facts_of(raw: bytes, origin: Origin, witness_at: Any) -> Iterator[Fact]:
    parts = [raw] if len(raw) <= 2 * _LOOK else [raw[:_LOOK], raw[-_LOOK:]]
    text = b"\n".join(parts).decode("utf-8", "surrogateescape")  # every byte comes back, so that a place in the text is one in the bytes
    named = _least(list(denoisers.mentions(text)))
    if named is None:
        return
    witness = witness_at(min(len(text[: named.start].encode("utf-8", "surrogateescape")), len(parts[0])))
    told: dict[str, Value] = {
        "drawing.network": named.key,
        "drawing.bits": named.bits or denoisers.option_bits(text),
        "drawing.encoder_bits": denoisers.encoder_bits(text),
        "drawing.offload": _offload(text.lower()),
        "run.video": catalogue.network(named.key).clips or None,
    }
    yield from (Fact(name, value, origin, witness) for name, value in told.items() if value is not None)


def _least(mentions: list[Mention]) -> Mention | None:
    """Of the models named in full (else by their family) the one whose weights take least, with the bits that any mention tells."""
    full = [mention for mention in mentions if not mention.of_family] or mentions
    keys = dict.fromkeys(mention.key for mention in full)
    if not keys or len(keys) > _MOST:
        return None
    bits = {key: min((m.bits for m in full if m.key == key and m.bits), default=None) for key in keys}
    key = min(keys, key=lambda key: catalogue.network(key).params * (bits[key] or denoisers.USUAL_BITS))
    return next(mention for mention in full if mention.key == key)._replace(bits=bits[key])


def _offload(text: str) -> str | None:
    return next((word for word in ("most", "part") if _pattern(word).search(text)), None)


@cache
def _pattern(word: str) -> re.Pattern[str]:
    return re.compile(denoisers.spelled(rule_files.table("denoisers")["offload"][word]["says"]))
