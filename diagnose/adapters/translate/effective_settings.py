"""What holds once every file is read: settings in vain, and quantities that follow from the rest (rules/effective.yaml)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from diagnose import catalogue, rule_files
from diagnose.adapters.schema import framework_tables
from diagnose.facts import Fact, FactBook, Notice, Witness, typed
from diagnose.phrases import Text
from diagnose.word_conditions import conditions, hold, word, word_of

if TYPE_CHECKING:
    from diagnose.adapters.translate.translation import Part

#: Sentences about settings without effect that one job gets.
MOST = 20


def derived(book: FactBook) -> Iterator[Fact]:
    """Quantities that follow from what is known, each with its arithmetic; those named first are there for those named later."""
    known = FactBook(book)
    for rule in rule_files.table("effective")["derived"]:
        if rule["name"] in known or not _meant(rule, known):
            continue
        made = _quotient(rule, known)
        if made is not None:
            value, text = made
            fact = Fact(rule["name"], value, "derived", Witness("derived", text=text))
            known.learn([fact])
            yield fact


def _meant(rule: Mapping[str, Any], known: FactBook) -> bool:
    """Is the rule for a job like this one?"""
    return all(known.value(name) is None for name in rule.get("unless", ())) and _holds(rule, known)


def _quotient(rule: Mapping[str, Any], known: FactBook) -> tuple[int, str] | None:
    """The value and how it comes about; None where a part is unknown or a rest remains."""
    above, below = ([_count(name, known) for name in rule.get(side, ())] for side in ("of", "over"))
    if any(not count for count in (*above, *below)):
        return None
    top, bottom = _product(above), _product(below)
    shown = [str(count) for count in below if count != 1]
    text = " * ".join(str(count) for count in above) + (
        f" / ({' * '.join(shown)})" if len(shown) > 1 else f" / {shown[0]}" if shown else ""
    )
    if not shown and len(above) == 1:
        text = rule["of"][0].rpartition("|")[2]
    return (top // bottom, text) if top % bottom == 0 else None


def _product(counts: Iterable[int | None]) -> int:
    whole = 1
    for count in counts:
        whole *= count or 0
    return whole


def _count(written: str, known: FactBook) -> int | None:
    names, _, presumed = written.partition("=")
    found = next((count for name in names.split("|") if (count := known.count(name))), None)
    return found if found is not None else int(presumed) if presumed else None


# -- settings without effect


def ineffective(facts: Sequence[Fact], book: FactBook, parts: Sequence[Part]) -> tuple[list[Fact], list[Notice]]:
    """The facts less the settings that do nothing here, with a fact and a sentence for each of these."""
    known = FactBook(book).learn(facts)
    kept = list(facts)
    more: list[Fact] = []
    notices: list[Notice] = []
    for rule in rule_files.table("effective")["ineffective"]:
        if not _holds(rule, known):
            continue
        for knob in rule["knob"]:
            fact = known.fact(knob)
            if fact is None or fact.origin not in ("config", "log") or not fact.witness.key or not _is(fact, rule):
                continue
            if not rule.get("keep"):
                kept = [other for other in kept if other.name != knob or other.origin not in ("config", "log", "default")]
            more += _told(rule, fact, known, parts)
            if len(notices) < MOST and not rule.get("quiet"):
                notices.append(Notice("warning", "config.ignored_key", _sentence(rule, fact, known), fact.witness))
    return kept + more, notices


def _told(rule: Mapping[str, Any], fact: Fact, known: FactBook, parts: Sequence[Part]) -> Iterator[Fact]:
    """The key that is in vain, what it was meant for, what decides instead, and what holds."""
    yield Fact("config.ignored_key", fact.witness.key, fact.origin, fact.witness)
    real = known.fact(rule["real"]) if "real" in rule else None
    if real is not None and real.value is not None and not rule.get("quiet"):
        key = real.witness.key or _spelt(real.name, parts)
        said = {"wanted_knob": fact.name, "wanted_key": key, "reader": _reader(fact, parts), "wanted_value": word(real.value)}
        yield from (Fact(f"config.{name}", text, fact.origin, fact.witness) for name, text in said.items())
        yield Fact("config.wanted_other", real.name != fact.name, fact.origin, fact.witness)
    if "leaves" in rule:
        value = rule["leaves"]
        text = f"{fact.witness.key} does nothing here" + (f": {real.name} = {word(real.value)}" if real is not None else "")
        yield Fact(fact.name, "none" if value == "none" else typed(fact.name, word_of(value)), "derived", Witness("derived", text=text))


def _spelt(knob: str, parts: Sequence[Part]) -> str:
    """How the job's own files would write a knob that none of them sets; the knob's name where they have no key for it."""
    return next((key.key for part in parts for key in part.table.of(knob) if key.key), knob)


def _reader(fact: Fact, parts: Sequence[Part]) -> str:
    """Who reads the file that the key stands in."""
    held = [part for part in parts if part.name == fact.witness.source and any(leaf.key == fact.witness.key for leaf in part.leaves)]
    return framework_tables.called(held[0].table.name).zh if held else "-"


def _sentence(rule: Mapping[str, Any], fact: Fact, known: FactBook) -> Text:
    values = {"{key}": fact.witness.key.replace("{", "(").replace("}", ")")}
    values |= {f"{{{name}}}": word(known.value(name)) or "-" for name in rule.get("if", {})}
    said = {"en": rule["en"], "zh": rule["zh"]}
    for lang in said:
        for placeholder, text in values.items():
            said[lang] = said[lang].replace(placeholder, text)
    return Text(said["en"], said["zh"])


def _is(fact: Fact, rule: Mapping[str, Any]) -> bool:
    """Has the setting the value that the rule is about? Without one, it is about any."""
    return fact.value is not None and ("is" not in rule or hold(conditions({fact.name: rule["is"]}), lambda _: fact.value) is True)


def _holds(rule: Mapping[str, Any], known: FactBook) -> bool:
    """Is the rule for a job like this one? What is unknown has none of its words."""
    excepted = rule.get("unless_framework")
    if excepted is not None and hold(conditions({"train.framework": excepted}), known.value):
        return False
    return hold(conditions(rule.get("if")), lambda name: _of_card(name, known) if name.startswith("card.") else known.value(name)) is True


def _of_card(name: str, known: FactBook) -> bool | None:
    """What every card that the given or printed name may mean can do."""
    gpu = known.word("hardware.gpu")
    cards = catalogue.cards_named(gpu) if gpu else []
    able = {bool(getattr(card, name.partition(".")[2], None)) for card in cards}
    return able.pop() if len(able) == 1 else None
