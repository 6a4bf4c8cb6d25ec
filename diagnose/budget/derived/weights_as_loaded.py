"""What the weights of an inference engine take of each card while they are loaded: parameters times bits over cards, as an interval."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from diagnose.budget.model.software_table import table
from diagnose.facts import Fact, FactBook, derived_fact
from diagnose.records import NamedTuple
from diagnose.release_spans import releases
from diagnose.units import Size

#: How the name of a file of GGUF or of a tag of Ollama tells the bits of its weights.
_GGUF = re.compile(r"(?:^|[-_.:/ ])(i?q[1-8]|mxfp4|b?f16|fp16)(?=[-_.]|$)")

#: Bits by which releases of the same quantisation differ, where the dimensions tell what stays in 16 bits.
_LOOSE = 0.6

#: Layers that a setting of llama.cpp means all of them by.
_ALL_LAYERS = 99


class Width(NamedTuple):
    """Bits of a weight at least and at most; whether embedding and head are apart from that, in 16 bits."""

    least: float
    most: float
    apart: bool = False


#: Of a card, up to which weights leave it to cache and passes.
_ROOM = 0.72


def loaded_weights(book: FactBook) -> list[Fact]:
    """The weights and their arithmetic; whether they leave room on the card for sure."""
    found, capacity = _reckoned(book), book.size("hardware.capacity")
    if not found or capacity is None or not isinstance(found[0].value, Size):
        return found
    return [*found, derived_fact("rollout.leaves_room", found[0].value.high <= _ROOM * capacity.low, "at most 72% of the card")]


def _reckoned(book: FactBook) -> list[Fact]:
    """`rollout.loaded_weights`, and its arithmetic; nothing where no engine serves, or size or bits of its model are not known. What the
    engine prints of it goes first."""
    if (printed := book.size("rollout.engine_weights")) is not None:
        return [derived_fact("rollout.loaded_weights", printed, "printed"), derived_fact("rollout.loaded_sum", "log", "printed")]
    width, params = _width(book), _params(book)
    if book.word("rollout.engine") is None or width is None or params is None:
        return []
    width = _of_all(book, width)
    fewest, most = _cards(book)
    low, high = (round(bits * count / 8) for bits, count in zip(width[:2], params, strict=True))
    kept = 0 if reads_files(book) and (book.count("rollout.card_layers") or 0) < _ALL_LAYERS else low // most
    shown = f"{_span(params[0] / 1e9, params[1] / 1e9)}B × {_span(*width[:2])} bit" + (f" / {most}" if most > 1 else "")
    return [
        derived_fact("rollout.loaded_weights", Size.between(kept, high // fewest), shown),
        derived_fact("rollout.loaded_sum", shown, shown),
    ]


def _span(low: float, high: float) -> str:
    first, last = f"{low:.3g}", f"{high:.3g}"
    return first if first == last else f"{first}–{last}"


def _params(book: FactBook) -> tuple[int, int] | None:
    """Parameters at least and at most: counted, else by the size in the name."""
    if known := book.count("model.total_params"):
        return known, known
    least, most = book.count("model.least_params"), book.count("model.most_params")
    return (least, most) if least and most else None


def _rule() -> Mapping[str, Any]:
    return table()["engines"]["loaded"]  # type: ignore[no-any-return]


def reads_files(book: FactBook) -> bool:
    """Whether the engine reads GGUF files, whose weights have few bits, layer by layer and as many as it is told on the card."""
    return book.word("rollout.engine") in _rule()["of_files"]


def _width(book: FactBook) -> Width | None:
    """By the name of the weights, by what is said of them, by the setting; 16 bits where nothing speaks of fewer, but for files of GGUF."""
    rule, said = _rule(), book.fact("rollout.quantization")
    names = ["model.stored_quantization", "model.quantization"]
    if said is not None and said.origin == "catalogue":  # so published, whatever is set
        names.append(said.name)
    setting = None if said is None or said.name in names else str(said.value)
    own = next((word for name in names if (word := book.word(name)) not in (None, "none")), None)
    named = _GGUF.search(f"{book.word('model.path') or ''} {setting or ''}".lower())
    if reads_files(book) or (named and own is None):
        word = named[1] if named else rule["usual"].get(book.word("run.program") or "", "")
        bits = rule["gguf"].get(word)
        return Width(bits[0], bits[1]) if bits else None
    stored = next((bits for part, bits in rule["stored"].items() if part in (own or setting or "").lower()), None)
    if own is None and (setting or "") in (converts := rule["converts"].get(book.word("rollout.engine") or "", {})):
        span = releases(converts[setting or ""])
        is_whole = not span.bounded or span.holds(book.version(f"version.{book.word('rollout.engine')}"))
        return Width(16 if is_whole else (stored or [16])[0], 16)
    if own is None and setting in (None, "none"):
        bits = 32 if book.word("rollout.dtype") == "fp32" else 16
        return Width(bits, bits)
    return Width(stored[0], stored[1], apart=True) if stored else None


def _of_all(book: FactBook, width: Width) -> Width:
    """The bits of all weights on average, where the dimensions tell how many are in embedding and head."""
    shape = book.shape("model.shape")
    if shape is None or not width.apart:
        return width
    kept = shape.V * shape.h * (1 if shape.tied else 2) / shape.params
    least, most = (16 * kept + bits * (1 - kept) for bits in (width.least, width.least + _LOOSE))
    return Width(least, most)


def _cards(book: FactBook) -> tuple[int, int]:
    """The fewest and the most cards that may share the weights: as set, else one to all that are known."""
    degree, stages = book.count("rollout.tensor_parallel"), book.count("rollout.pipeline") or 1
    if degree and not reads_files(book):
        return degree * stages, degree * stages
    said = book.count("parallel.tensor")
    return said or 1, max(said or 1, book.count("hardware.count") or 1, book.count("run.cuda_devices") or 1)
