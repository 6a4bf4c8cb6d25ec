"""Which models, pictures, counts of tokens and public graph a text speaks of, for a failed request of a job that says none: the facts
`report.mention`, `report.pixels`, `report.tokens`, `report.nodes`, `report.edges`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from diagnose.catalogue import mentions
from diagnose.facts import Fact, Witness

if TYPE_CHECKING:
    from diagnose.parse.text.lines import Page

#: The sides of a picture, both at once or by name; tokens of a sequence.
_PICTURE = re.compile(r"(?<![\d.x×*])(\d{3,4}) ?[x×*] ?(\d{3,4})(?![\d.x×*])")
_SIDE = re.compile(r"(?<![A-Za-z_])([HhWw])(?:eight|idth)?['\"]?(?: ?[:=] ?| )(\d{3,4})(?!\d)")
_TOKENS = re.compile(r"(?<![\d.,])(\d{1,3}(?:,\d{3}){1,2}|\d{4,7})(?: tokens?\b| ?个 ?tokens?)")
#: So many different ones are tried.
_MOST = 3

#: How much of a text is looked at, at its start and at its end.
_LOOK = 16 << 10


def facts(pages: Sequence[Page]) -> Iterator[Fact]:
    """The models that the first log or the page speaks of."""
    if pages:
        raw = pages[0].excerpt.raw
        parts = raw if len(raw) <= 2 * _LOOK else raw[:_LOOK] + b"\n" + raw[-_LOOK:]
        yield from _facts_of(parts, pages[0].witness(pages[0].excerpt.offset))


def facts_of_file(data: bytes, name: str) -> Iterator[Fact]:
    """Those that a config or script speaks of."""
    yield from _facts_of(data[: 2 * _LOOK], Witness(name))


def _facts_of(data: bytes, witness: Witness) -> Iterator[Fact]:
    text = data.decode("utf-8", "replace")
    for name in mentions.named(text):
        yield Fact("report.mention", name, "guessed", witness)
    if (graph := mentions.graph(text)) is not None:
        yield Fact("report.nodes", graph["nodes"], "guessed", witness)
        yield Fact("report.edges", graph["edges"], "guessed", witness)
    pixels = [int(match[1]) * int(match[2]) for match in _PICTURE.finditer(text)]
    sides = [{match[1].lower(): int(match[2]) for match in _SIDE.finditer(text)}]
    pixels += [side["h"] * side["w"] for side in sides if side.keys() >= {"h", "w"}]
    for count in list(dict.fromkeys(pixels))[:_MOST]:
        yield Fact("report.pixels", count, "guessed", witness)
    counts = dict.fromkeys(int(re.sub(r"\D", "", match[1])) for match in _TOKENS.finditer(text))
    for count in list(counts)[:_MOST]:
        yield Fact("report.tokens", count, "guessed", witness)
