"""Identify the model and card that the facts name, and add the catalogue's facts about them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TypeVar

from diagnose import catalogue, families, rule_files
from diagnose.catalogue import Card, Model
from diagnose.facts import Fact, FactBook, Notice, Origin, Value, Witness
from diagnose.phrases import phrase, same
from diagnose.traits import traits_of
from diagnose.units import Size

#: Facts that may name the trained model, best first; and those that name models of other roles.
TRAINED = ("model.path", "actor.model")
ROLES = {"critic.model": "critic.shape", "reward.model": "reward.shape", "teacher.model": "teacher.shape"}

#: Patterns in names of published weights that are quantised already, and the quantisation.
QUANTISED = (
    (re.compile(r"bnb[-_]4bit|4bit[-_]bnb|[-_]qnf4", re.IGNORECASE), "nf4"),
    (re.compile(r"(?:gptq|awq).{0,12}int8|[-_](?:bnb[-_])?8bit(?![A-Za-z\d])", re.IGNORECASE), "other"),
    (re.compile(r"[-_]fp8(?![A-Za-z\d])|[-_.]w8a\d{1,2}(?![A-Za-z\d])", re.IGNORECASE), "fp8"),
    (re.compile(r"[-_](?:nv|mx)fp4(?![A-Za-z\d])", re.IGNORECASE), "fp4"),
    (re.compile(r"[-_](?:gptq|int4|4bit)(?![A-Za-z\d])|[-_.]w4a\d{1,2}(?![A-Za-z\d])", re.IGNORECASE), "gptq"),
    (re.compile(r"[-_]awq(?![A-Za-z\d])", re.IGNORECASE), "awq"),
)

T = TypeVar("T")


def recognise(book: FactBook, requested: Size | None = None) -> list[Fact]:
    """The catalogue's facts about the models and the card that the book names; unknown names add nothing. `requested`: what failed."""
    card = _card_facts(book)
    return [*_trained_model(book, requested), *_published_quantization(book), *_role_models(book), *card, *_most_of_card(book, card)]


def _trained_model(book: FactBook, requested: Size | None) -> Iterator[Fact]:
    """Facts about the trained model; dimensions from the caller or the log take precedence over the catalogue's."""
    shape, fact = book.shape("model.shape"), book.fact("model.shape")
    if shape is not None and fact is not None:
        witness = fact.witness
    else:
        shape = next((model for name in TRAINED for fact in book.all(name) if (model := catalogue.model(str(fact.value or "")))), None)
        if shape is None:
            yield from _denoiser(book, requested)
            yield from _size_by_name(book)
            yield from _family_of_code(book)
            return
        witness = Witness("catalogue", text=shape.id)
        yield _fact("model.shape", shape, witness)
    yield _fact("model.id", shape.id, witness)
    yield _fact("model.family", shape.family, witness)
    yield _fact("model.kind", shape.kind, witness)
    yield _fact("model.total_params", shape.params, witness)
    yield _fact("model.vocab_size", shape.V, witness)
    yield _fact("model.layers", shape.L, witness)
    if shape.experts:
        yield _fact("model.experts", shape.experts.count, witness)
    yield _fact("model.hidden_size", shape.h, witness)


def _denoiser(book: FactBook, requested: Size | None) -> Iterator[Fact]:
    """The parameters of the network that a trainer of images or video trains; where nothing names it, of the one whose whole weights are
    what was requested. Of a trainer that nobody knows that one has to be named in so many words. Where its layers are not known no run is
    said to fit; what its weights and states take alone may be too much."""
    path, framework = book.word("model.path"), book.word("train.framework")
    is_known = traits_of(framework).trains_denoisers
    if not is_known and framework is not None:
        return
    name, witness = catalogue.denoiser(path or "") if is_known else None, Witness("catalogue", text=path or "")
    known = catalogue.denoiser_of_size(requested) if requested is not None and not path else None
    if known is not None and (is_known or known[0] == book.word("drawing.network")):
        name, width = known
        params = catalogue.network(name).params
        witness = Witness("derived", text=f"{width} bytes * {params:,} parameters of {name} = {width * params:,} bytes, as requested")
    if name is None:
        return
    yield _fact("model.total_params", catalogue.network(name).params, witness)
    if name in rule_files.table("denoiser_layers"):
        yield _fact("model.denoiser", name, witness)


def _size_by_name(book: FactBook) -> Iterator[Fact]:
    """About how many parameters a model has that the catalogue does not know, if its name states its size."""
    fact = next((fact for name in TRAINED if (fact := book.fact(name)) is not None and isinstance(fact.value, str)), None)
    params = catalogue.params_of_name(str(fact.value)) if fact is not None else None
    if params is None or fact is None or book.count("model.total_params"):
        return
    for name, value in zip(("model.least_params", "model.likely_params", "model.most_params"), params, strict=True):
        yield Fact(name, value, "guessed", Witness("derived", text=f"the size in the name {fact.value}"))


def _family_of_code(book: FactBook) -> Iterator[Fact]:
    """The architecture whose code is in the traceback; of a model inside another one (a decoder behind a vision tower) the outer."""
    fact = book.fact("log.modeling")
    family = next((name for name in str(fact.value).split(",") if name in catalogue.families()), None) if fact is not None else None
    if fact is not None and family is not None:
        yield Fact("model.family", family, "derived", fact.witness)


def unlisted_model(book: FactBook) -> list[Notice]:
    """That the catalogue does not know the model which the job names, and what its name tells; or the family of its config.json, whose
    keys are all those of attention and an MLP."""
    name, shape = next((path for name in TRAINED if (path := book.word(name))), None), book.shape("model.shape")
    if shape is not None and not {shape.family, shape.family.removesuffix("_text")} & {"", "unknown", *rule_files.table("models")}:
        family = same(shape.family.replace("{", "(").replace("}", ")")[:100])
        return [Notice("warning", "model.family", phrase("recognition.unknown_family", family=family))]
    if name is None or shape is not None:
        return []
    shown = same(name.replace("{", "(").replace("}", ")")[:200])
    low, high = book.count("model.least_params"), book.count("model.most_params")
    if low is None or high is None:
        return [Notice("info", "model.unlisted", phrase("recognition.unlisted", name=shown))]
    sizes = {"low": f"{low / 1e9:.3g}", "high": f"{high / 1e9:.3g}"}
    return [Notice("info", "model.unlisted", phrase("recognition.unlisted_sized", name=shown, **sizes))]


def _published_quantization(book: FactBook) -> Iterator[Fact]:
    """The quantisation that the name of published weights tells; any setting takes precedence."""
    path = next((path for name in TRAINED if (path := book.word(name))), "")
    word = next((word for pattern, word in QUANTISED if pattern.search(path)), None)
    if word is not None:
        yield _fact("model.quantization", word, Witness("catalogue", text=path))
        yield _fact("model.stored_quantization", word, Witness("catalogue", text=path))
    shape = catalogue.model(path)
    if shape is not None and shape.published and not catalogue.UNPACKED.search(path) and not book.switch("report.unpacked"):
        yield _fact("rollout.quantization", shape.published, Witness("catalogue", text=path))


def _role_models(book: FactBook) -> Iterator[Fact]:
    for name, shape_name in ROLES.items():
        shape = _named_model(book, name)
        if shape is not None:
            yield _fact(shape_name, shape, Witness("catalogue", text=shape.id))


def _named_model(book: FactBook, name: str) -> Model | None:
    path = book.word(name)
    return catalogue.model(path) if path else None


def _card_facts(book: FactBook) -> list[Fact]:
    """Facts about the named card, chosen by the printed capacity if ambiguous; without a name, about the card that the capacity implies."""
    apple = families.of(book.word("log.family")).limit_only
    if apple:  # a limit is printed instead of a capacity, and no build of flash-attn runs there
        limit = book.fact("log.max_allowed")
        facts = [Fact("hardware.capacity", limit.value, "log", limit.witness)] if limit is not None and limit.value else []
        return [*facts, _fact("hardware.fa2", False, Witness("catalogue", text=apple))]
    name, capacity = book.fact("hardware.gpu"), book.size("log.capacity")
    printed = book.fact("log.capacity")
    if printed is not None and capacity is not None:
        return [Fact("hardware.capacity", capacity, "log", printed.witness), *_identify_card(name, capacity, book.word("log.family"))]
    return _identify_card(name, None, None)


def _most_of_card(book: FactBook, facts: Sequence[Fact]) -> Iterator[Fact]:
    """The most memory that the card may have: its capacity, or that of the largest card of its name."""
    known = next((fact for fact in (*facts, *book.all("hardware.capacity")) if fact.name == "hardware.capacity"), None)
    if known is not None:
        yield known._replace(name="hardware.at_most", origin="derived")
        return
    name = book.word("hardware.gpu")
    sizes = [size for card in catalogue.cards_named(name or "") for size in card.capacities]
    if name and sizes:
        yield _fact("hardware.at_most", max(sizes, key=lambda size: size.high), Witness("catalogue", text=name))


def _identify_card(name: Fact | None, capacity: Size | None, family: str | None) -> list[Fact]:
    cards = catalogue.cards_named(name.value) if name is not None and isinstance(name.value, str) else []
    if cards and name is not None:
        return _named_card(_narrow_by_capacity(cards, capacity), name, capacity)
    if name is not None and capacity is None and (stated := catalogue.capacity_stated(str(name.value))) is not None:
        return [_fact("hardware.capacity", stated, Witness("derived", text=f"the memory that its name states: {name.value}"))]
    if name is None and capacity is not None:
        return _inferred_card([card for card in catalogue.cards_of_capacity(capacity) if _may_print(card, family)], capacity)
    return []


def _may_print(card: Card, family: str | None) -> bool:
    """Whether a card's maker matches a family of messages: cards of several makers share capacities."""
    return families.of(family).maker in (None, families.maker_of(card.arch))


def _narrow_by_capacity(cards: Sequence[Card], capacity: Size | None) -> Sequence[Card]:
    """The cards that print this capacity, or all if none does."""
    if capacity is None:
        return cards
    keys = {card.key for card in catalogue.cards_of_capacity(capacity)}
    return [card for card in cards if card.key in keys] or cards


def _named_card(cards: Sequence[Card], name: Fact, capacity: Size | None) -> list[Fact]:
    """Facts about named cards. The catalogue's key replaces the printed name, keeping its witness."""
    witness = Witness("catalogue", text=" / ".join(card.key for card in cards))
    facts = _attributes(cards, "catalogue", witness)
    if len(cards) == 1:
        facts.append(Fact("hardware.gpu", cards[0].key, name.origin, name.witness, refines=True))
        if capacity is None and (capacities := cards[0].capacities):
            low, high = min(size.low for size in capacities), max(size.high for size in capacities)
            facts.append(_fact("hardware.capacity", Size.between(low, high), witness))
    return facts


def _inferred_card(cards: Sequence[Card], capacity: Size) -> list[Fact]:
    """Facts that the printed capacity implies; of several cards those that they share. Where no log ever showed one of them with this
    capacity, it may as well be a slice, a limit or a card that the catalogue lacks: then only what all cards of that class share."""
    if not cards:
        return []
    witness = Witness("derived", text=f"inferred from the printed capacity {capacity}: {' or '.join(card.key for card in cards)}")
    if not any(card.verified for card in cards):
        return _attributes(catalogue.cards_of_class(cards), "derived", witness)
    name = _common_value([card.key for card in cards])
    facts = [Fact("hardware.gpu", name, "derived", witness)] if name else []
    seen = [card for card in cards if card.verified]  # others are only thought to print it
    return [*facts, Fact("hardware.inferred", True, "derived", witness), *_attributes(seen, "derived", witness)]


def _attributes(cards: Sequence[Card], origin: Origin, witness: Witness) -> list[Fact]:
    values: dict[str, Value] = {
        "hardware.compute_capability": _common_value([card.capability for card in cards]),
        "hardware.bf16": _common_value([card.bf16 for card in cards]),
        "hardware.fa2": _common_value([card.fa2 for card in cards]),
    }
    return [Fact(name, value, origin, witness) for name, value in values.items() if value is not None]


def _common_value(values: Sequence[T]) -> T | None:
    """The common value; None if they differ."""
    return values[0] if all(value == values[0] for value in values) else None


def _fact(name: str, value: Value, witness: Witness) -> Fact:
    return Fact(name, value, "catalogue", witness)
