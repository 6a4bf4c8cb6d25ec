"""Which model and card the facts name, and what the catalogue knows of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TypeVar

from diagnose import catalogue, families
from diagnose.catalogue import Card, Model
from diagnose.facts import Fact, FactBook, Origin, Value, Witness
from diagnose.units import Size

#: Where the model that is trained may be named, best first; then the other roles' own.
TRAINED = ("model.path", "actor.model")
ROLES = {"critic.model": "critic.shape", "reward.model": "reward.shape", "teacher.model": "teacher.shape"}

#: How the names of published weights say that they are quantised already.
QUANTISED = (
    (re.compile(r"bnb[-_]4bit|4bit[-_]bnb|[-_]qnf4", re.IGNORECASE), "nf4"),
    (re.compile(r"(?:gptq|awq).{0,12}int8|[-_](?:bnb[-_])?8bit\b", re.IGNORECASE), "other"),
    (re.compile(r"[-_]gptq\b", re.IGNORECASE), "gptq"),
    (re.compile(r"[-_]awq\b", re.IGNORECASE), "awq"),
)

T = TypeVar("T")


def recognise(book: FactBook) -> list[Fact]:
    """What follows from the names in the book: dimensions of the models, attributes of the card. A name that the catalogue
    does not know adds nothing."""
    return [*_trained(book), *_quantised(book), *_roles(book), *_card(book)]


def _trained(book: FactBook) -> Iterator[Fact]:
    """The model trained: dimensions given or logged are kept, else the catalogue's."""
    shape, held = book.shape("model.shape"), book.fact("model.shape")
    if shape is not None and held is not None:
        witness = held.witness
    else:
        shape = next((known for name in TRAINED if (known := _named(book, name))), None)
        if shape is None:
            return
        witness = Witness("catalogue", text=shape.id)
        yield _fact("model.shape", shape, witness)
    yield _fact("model.id", shape.id, witness)
    yield _fact("model.family", shape.family, witness)
    yield _fact("model.kind", shape.kind, witness)
    yield _fact("model.total_params", shape.params, witness)
    yield _fact("model.vocab_size", shape.V, witness)
    yield _fact("model.layers", shape.L, witness)
    yield _fact("model.hidden_size", shape.h, witness)


def _quantised(book: FactBook) -> Iterator[Fact]:
    """The quantisation of weights that were published quantised, where nobody sets another."""
    path = next((known for name in TRAINED if (known := book.word(name))), "")
    word = next((word for pattern, word in QUANTISED if pattern.search(path)), None)
    if word is not None:
        yield _fact("model.quantization", word, Witness("catalogue", text=path))


def _roles(book: FactBook) -> Iterator[Fact]:
    for name, shape_name in ROLES.items():
        shape = _named(book, name)
        if shape is not None:
            yield _fact(shape_name, shape, Witness("catalogue", text=shape.id))


def _named(book: FactBook, name: str) -> Model | None:
    path = book.word(name)
    return catalogue.model(path) if path else None


def _card(book: FactBook) -> list[Fact]:
    """The card that is named, the printed capacity deciding between several of that name; else the one the capacity implies."""
    apple = families.of(book.word("log.family")).limit_only
    if apple:  # a limit is printed instead of a capacity, and no build of flash-attn runs there
        limit = book.fact("log.max_allowed")
        known = [Fact("hardware.capacity", limit.value, "log", limit.witness)] if limit is not None and limit.value else []
        return [*known, _fact("hardware.fa2", False, Witness("catalogue", text=apple))]
    raw, capacity = book.fact("hardware.gpu"), book.size("log.capacity")
    printed = book.fact("log.capacity")
    if printed is not None and capacity is not None:
        return [Fact("hardware.capacity", capacity, "log", printed.witness), *_which(raw, capacity, book.word("log.family"))]
    return _which(raw, None, None)


def _which(raw: Fact | None, capacity: Size | None, family: str | None) -> list[Fact]:
    named = catalogue.cards_named(raw.value) if raw is not None and isinstance(raw.value, str) else []
    if named and raw is not None:
        return _named_card(_narrowed(named, capacity), raw, capacity)
    if raw is None and capacity is not None:
        return _inferred_card([card for card in catalogue.cards_of_capacity(capacity) if _prints(card, family)], capacity)
    return []


def _prints(card: Card, family: str | None) -> bool:
    """Whether messages of this family come from such a card: a capacity that two makers share names neither's card."""
    return families.of(family).maker in (None, families.maker_of(card.arch))


def _narrowed(named: Sequence[Card], capacity: Size | None) -> Sequence[Card]:
    """Those of the cards that print this capacity; all of them where none does."""
    if capacity is None:
        return named
    keys = {card.key for card in catalogue.cards_of_capacity(capacity)}
    return [card for card in named if card.key in keys] or named


def _named_card(cards: Sequence[Card], raw: Fact, capacity: Size | None) -> list[Fact]:
    """Facts of a card that somebody named. Its key stands in for the name as printed, with the same witness."""
    witness = Witness("catalogue", text=" / ".join(card.key for card in cards))
    facts = _attributes(cards, "catalogue", witness)
    if len(cards) == 1:
        facts.append(Fact("hardware.gpu", cards[0].key, raw.origin, raw.witness, refines=True))
        if capacity is None and (listed := cards[0].capacities):
            low, high = min(size.low for size in listed), max(size.high for size in listed)
            facts.append(_fact("hardware.capacity", Size.between(low, high), witness))
    return facts


def _inferred_card(cards: Sequence[Card], capacity: Size) -> list[Fact]:
    """Facts that the printed capacity implies; of several cards only what they agree on."""
    if not cards:
        return []
    witness = Witness("derived", text=f"inferred from the printed capacity {capacity}: {' or '.join(card.key for card in cards)}")
    name = _agreed([card.key for card in cards])
    facts = [Fact("hardware.gpu", name, "derived", witness)] if name else []
    seen = [card for card in cards if card.verified] or cards  # a printed capacity counts for more than one from memory
    return [*facts, Fact("hardware.inferred", True, "derived", witness), *_attributes(seen, "derived", witness)]


def _attributes(cards: Sequence[Card], origin: Origin, witness: Witness) -> list[Fact]:
    values: dict[str, Value] = {
        "hardware.compute_capability": _agreed([card.capability for card in cards]),
        "hardware.bf16": _agreed([card.bf16 for card in cards]),
        "hardware.fa2": _agreed([card.fa2 for card in cards]),
    }
    return [Fact(name, value, origin, witness) for name, value in values.items() if value is not None]


def _agreed(values: Sequence[T]) -> T | None:
    """The value that all of them have; None where they differ."""
    return values[0] if all(value == values[0] for value in values) else None


def _fact(name: str, value: Value, witness: Witness) -> Fact:
    return Fact(name, value, "catalogue", witness)
