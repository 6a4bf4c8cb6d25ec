"""Derives quantities from the settings and removes settings without effect (rules/effective.yaml)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from diagnose import catalogue, rule_files
from diagnose.adapters.schema import framework_tables
from diagnose.facts import Fact, FactBook, Notice, Witness, typed
from diagnose.phrases import Text, same
from diagnose.word_conditions import conditions, hold, word, word_of

if TYPE_CHECKING:
    from diagnose.adapters.translate.config_part import Part

#: Limit of messages about settings without effect per job.
MAX_NOTICES = 20


def derive_quantities(book: FactBook) -> Iterator[Fact]:
    """Facts computed from others, in the order of the rules, each with its arithmetic as witness."""
    known = FactBook(book)
    for rule in rule_files.table("effective")["derived"]:
        if rule["name"] in known or not _applies(rule, known):
            continue
        quotient = _quotient(rule, known)
        if quotient is not None:
            value, text = quotient
            fact = Fact(rule["name"], value, "derived", Witness("derived", text=text))
            known.learn([fact])
            yield fact


def _applies(rule: Mapping[str, Any], book: FactBook) -> bool:
    """Whether the quantity is still unknown and the rule's conditions hold."""
    return all(book.value(name) is None for name in rule.get("unless", ())) and _holds(rule, book)


def _quotient(rule: Mapping[str, Any], book: FactBook) -> tuple[int, str] | None:
    """The quotient and its arithmetic as text; None if a factor is unknown or the division leaves a remainder."""
    factors, divisor_counts = ([_read_count(name, book) for name in rule.get(side, ())] for side in ("of", "over"))
    if any(not count for count in (*factors, *divisor_counts)):
        return None
    dividend, divisor = _product(factors), _product(divisor_counts)
    divisors = [str(count) for count in divisor_counts if count != 1]
    text = " * ".join(str(count) for count in factors) + (
        f" / ({' * '.join(divisors)})" if len(divisors) > 1 else f" / {divisors[0]}" if divisors else ""
    )
    if not divisors and len(factors) == 1:
        text = rule["of"][0].rpartition("|")[2]
    return (dividend // divisor, text) if dividend % divisor == 0 else None


def _product(counts: Iterable[int | None]) -> int:
    product = 1
    for count in counts:
        product *= count or 0
    return product


def _read_count(written: str, book: FactBook) -> int | None:
    names, _, presumed = written.partition("=")
    value = next((count for name in names.split("|") if (count := book.count(name))), None)
    return value if value is not None else int(presumed) if presumed else None


# -- settings without effect


def remove_ineffective(facts: Sequence[Fact], book: FactBook, parts: Sequence[Part]) -> tuple[list[Fact], list[Notice]]:
    """Remove settings without effect, with a fact and a notice for each."""
    known = FactBook(book).learn(facts)
    known.learn(list(derive_quantities(known)))
    effective = list(facts)
    added: list[Fact] = []
    notices: list[Notice] = []
    for rule in rule_files.table("effective")["ineffective"]:
        if not _holds(rule, known):
            continue
        for knob in rule["knob"]:
            fact = known.fact(knob)
            if fact is None or fact.origin not in ("config", "log") or not fact.witness.key or not _has_value(fact, rule):
                continue
            if not rule.get("keep"):
                effective = [
                    candidate for candidate in effective if candidate.name != knob or candidate.origin not in ("config", "log", "default")
                ]
            added += _ignored_key_facts(rule, fact, known, parts)
            if len(notices) < MAX_NOTICES and not rule.get("quiet"):
                notices.append(Notice("warning", "config.ignored_key", _sentence(rule, fact, known), fact.witness))
    return effective + added, notices


def _ignored_key_facts(rule: Mapping[str, Any], fact: Fact, book: FactBook, parts: Sequence[Part]) -> Iterator[Fact]:
    """Facts about an ineffective key: the knob it was meant for, the deciding key, and the value that holds."""
    yield Fact("config.ignored_key", fact.witness.key, fact.origin, fact.witness)
    real = book.fact(rule["real"]) if "real" in rule else None
    if real is not None and real.value is not None and not rule.get("quiet"):
        key = real.witness.key or _spelling(real.name, parts)
        values = {"wanted_knob": fact.name, "wanted_key": key, "reader": _reader(fact, parts), "wanted_value": word(real.value)}
        yield from (Fact(f"config.{name}", text, fact.origin, fact.witness) for name, text in values.items())
        yield Fact("config.wanted_other", real.name != fact.name, fact.origin, fact.witness)
    if "leaves" in rule:
        value = rule["leaves"]
        text = f"{fact.witness.key} does nothing here" + (f": {real.name} = {word(real.value)}" if real is not None else "")
        yield Fact(fact.name, "none" if value == "none" else typed(fact.name, word_of(value)), "derived", Witness("derived", text=text))


def _spelling(knob: str, parts: Sequence[Part]) -> str:
    """The key for this knob in the job's frameworks; the knob's own name if they have none."""
    return next((key.key for part in parts for key in part.table.of(knob) if key.key), knob)


def _reader(fact: Fact, parts: Sequence[Part]) -> Text:
    """Display name of the framework that reads the key's file; "-" if unknown."""
    readers = [part for part in parts if part.name == fact.witness.source and any(leaf.key == fact.witness.key for leaf in part.leaves)]
    return framework_tables.display_name(readers[0].table.name) if readers else same("-")


def _sentence(rule: Mapping[str, Any], fact: Fact, book: FactBook) -> Text:
    values = {"{key}": fact.witness.key.replace("{", "(").replace("}", ")")}
    values |= {f"{{{name}}}": word(book.value(name)) or "-" for name in rule.get("if", {})}
    sentences = {"en": rule["en"], "zh": rule["zh"]}
    for lang in sentences:
        for placeholder, text in values.items():
            sentences[lang] = sentences[lang].replace(placeholder, text)
    return Text(sentences["en"], sentences["zh"])


def _has_value(fact: Fact, rule: Mapping[str, object]) -> bool:
    """Whether the setting has the value that the rule names, if it names one."""
    return fact.value is not None and ("is" not in rule or hold(conditions({fact.name: rule["is"]}), lambda _: fact.value) is True)


def _holds(rule: Mapping[str, Any], book: FactBook) -> bool:
    """Whether the rule's conditions hold; an unknown fact fails them."""

    def lookup(name: str) -> object:
        if name.startswith("card."):
            return _card_ability(name, book)
        framework = book.word(name) if name == "train.framework" else None
        return framework_tables.lineage(framework) if framework else book.value(name)

    excepted = rule.get("unless_framework")
    if excepted is not None and hold(conditions({"train.framework": excepted}), lookup):
        return False
    return hold(conditions(rule.get("if")), lookup) is True


def _card_ability(name: str, book: FactBook) -> bool | None:
    """Whether the GPU has this ability; None if the name fits several models that differ."""
    gpu = book.word("hardware.gpu")
    cards = catalogue.cards_named(gpu) if gpu else []
    abilities = {bool(getattr(card, name.partition(".")[2], None)) for card in cards}
    return abilities.pop() if len(abilities) == 1 else None
