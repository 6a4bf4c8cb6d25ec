"""Models that draw pictures or clips (rules/denoisers.yaml): found by the names that people and programs give them, and what they and
the parts of their pipelines have of parameters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from diagnose import rule_files
from diagnose.catalogue.models import model
from diagnose.records import NamedTuple
from diagnose.units import Size

#: What joins the parts of a name: `flux1-dev`, `FLUX.1 [dev]`, `Wan2_1-I2V-14B`; `~` in the table.
_JOINT = r"[-_. \[\]()/]{1,3}"

#: How many letters before a name may tell how it is quantised, in the same word; and the rest of its path with two words behind it.
_AROUND, _BEHIND = 40, re.compile(r"[\w.\-/\\\]]{0,120}(?:[ (]{1,2}[\w.\-]{1,24}){0,2}")

#: What stands between a name and the end of a question.
_ASKED = re.compile(r"[^\n.!。！]{0,60}[?？]")


#: Bits of a weight where nobody says otherwise.
USUAL_BITS = 16


class Tokens(NamedTuple):
    """What such a network, a transformer, makes of a picture or clip: the width of a token, pixels of its side and frames of it, tokens
    of the prompt among them, and what it draws where nobody says (frames, height, width)."""

    width: int
    cell: int
    frames: int
    text: int
    usual: tuple[int, int, int]

    def of(self, frames: int | None, pixels: int | None) -> int:
        """Tokens of a clip of so many frames of so many pixels."""
        count, height, width = self.usual
        area = pixels // self.cell**2 if pixels else (height // self.cell) * (width // self.cell)
        return ((frames or count) - 1) // self.frames * area + area


class Denoiser(NamedTuple):
    """A network that draws, by its key in the table: the name people know, parameters of one copy, how many copies take turns, and
    parameters of the text encoders (with their names, largest first) and of the VAE beside it, whether it makes clips, the heads of its
    first attention (0: unknown), how many rows guidance puts side by side, and its tokens where it is a transformer."""

    key: str
    called: str
    params: int
    copies: int
    encoders: tuple[tuple[str, int], ...]
    vae: int
    clips: bool
    heads: int = 0
    passes: int = 1
    tokens: Tokens | None = None

    @property
    def beside(self) -> int:
        return self.vae + sum(params for _, params in self.encoders)


class Mention(NamedTuple):
    """A network named in a text: where, in how many bits a weight if the name tells, and whether only its family is named."""

    key: str
    start: int
    bits: float | None
    of_family: bool = False


def is_network(key: str) -> bool:
    """Whether a key is one of the catalogue; a user may set any word."""
    return key in _table()["networks"]


@cache
def network(key: str) -> Denoiser:
    row, parts = _table()["networks"][key], _table()["parts"]
    encoders = [(parts[name]["called"], _params(parts[name])) for name in row["parts"] if "called" in parts[name]]
    vae = sum(_params(parts[name]) for name in row["parts"] if "called" not in parts[name])
    largest_first = tuple(sorted(encoders, key=lambda pair: -pair[1]))
    return Denoiser(
        key,
        row["called"],
        row["params"],
        row.get("copies", 1),
        largest_first,
        vae,
        row.get("clips", False),
        row.get("heads", 0),
        row.get("passes", 1),
        _tokens(row.get("tokens")),
    )


def _tokens(row: dict[str, Any] | None) -> Tokens | None:
    return Tokens(row["width"], row["cell"], row["frames"], row["text"], tuple(row["usual"])) if row else None


def denoiser(path: str) -> str | None:
    """The key of the network that a path of weights, or a name on the hub, ends in; None if unknown."""
    name = path.rstrip("/\\").replace("\\", "/").rpartition("/")[2]
    return next((mention.key for mention in mentions(name) if not mention.of_family), None)


def denoiser_of_size(size: Size) -> tuple[str, int] | None:
    """The only network whose weights, whole and in 32 or in 16 bits, have this size, and the bytes of each."""
    counts = {row["params"]: key for key, row in reversed(_table()["networks"].items())}
    found = [(key, width) for params, key in counts.items() for width in (4, 2) if size.low <= width * params <= size.high]
    return found[0] if len(found) == 1 else None


def mentions(text: str) -> Iterator[Mention]:
    """The networks that a text names, and families where it speaks of pictures or clips at all."""
    lowered = text.lower()
    seen: list[tuple[int, int]] = []
    for key, row in _table()["networks"].items():
        if any(word in lowered for word in row["has"]):
            for match in _name(row["says"]).finditer(lowered):
                if not any(start < match.end() and match.start() < end for start, end in seen):
                    seen.append(match.span())
                    yield Mention(key, match.start(), _bits_around(lowered, match))
    if re.search(spelled(_table()["signs"]), lowered) is None:
        return
    for row in _table()["families"]:
        for match in _name(row["says"]).finditer(lowered):
            if not any(start < match.end() and match.start() < end for start, end in seen):
                yield Mention(row["least"], match.start(), _bits_around(lowered, match), of_family=True)


def option_bits(text: str) -> float | None:
    """In how many bits the network lies by a setting or option that stands in a text."""
    lowered = text.lower()
    return next((row["bits"] for row in _table()["options"] if re.search(spelled(row["says"]), lowered) is not None), None)


def encoder_bits(text: str) -> float | None:
    """In how many bits a text says that the weights of the text encoders lie; None if it does not."""
    behind = re.compile(rf"(?<![a-z0-9])(?:{spelled(_table()['of_encoders'])})(?![a-z0-9])[\w.\- :=\"']{{0,24}}")
    return next((bits for match in behind.finditer(text.lower()) if (bits := bits_named(match[0])) is not None), None)


def bits_named(words: str) -> float | None:
    """In how many bits a weight lies, as words in lower case tell; None if they do not."""
    return next((row["bits"] for row in _table()["bits"] if _name(row["says"]).search(words) is not None), None)


def _bits_around(text: str, match: re.Match[str]) -> float | None:
    """What the word in which a network is named, and the two behind it, tell of its bits. A question does not say what ran."""
    if _ASKED.match(text, match.end()):
        return None
    before = re.search(r"[\w.\-]*$", text[max(0, match.start() - _AROUND) : match.start()])
    behind = _BEHIND.match(text, match.end())
    return bits_named(f"{before[0] if before else ''} {behind[0] if behind else ''}")


def _params(part: dict[str, Any]) -> int:
    """Parameters of a part: its own figure, or those of a language model that the catalogue has."""
    shape = model(part["model"]) if "model" in part else None
    return int(part["params"]) if shape is None else shape.params


@cache
def _name(says: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![a-z0-9])(?:{spelled(says)})(?![a-z0-9])")


def spelled(says: str) -> str:
    """A pattern of the table with what joins the parts of a name in place of `~`."""
    return re.sub("~(\\?)?", lambda match: f"(?:{_JOINT})?" if match[1] else _JOINT, says)


def _table() -> Any:
    return rule_files.table("denoisers")
