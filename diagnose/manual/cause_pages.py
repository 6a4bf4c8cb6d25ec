"""A cause rule as a part of a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from diagnose.decide.expression import parse_sum
from diagnose.manual.blocks import Block, Grid, Heading, Items, Paragraph, code, link, quoted
from diagnose.manual.rule_index import Entry, Seat, Shelf, page_of
from diagnose.manual.rule_wording import (
    conditions,
    explained,
    fact_is,
    fact_value,
    filled,
    known_as,
    listed,
    node_words,
    say,
    text_of,
    value_words,
)
from diagnose.phrases import Lang

#: In the order in which the table of examples shows them.
VERDICTS = ("fires", "likely", "quiet", "unknown")


def section(entry: Entry, shelf: Shelf, seat: Seat) -> list[Block]:
    """What the rule says, when, on what presumption, and its examples."""
    return [
        *_saying(entry, seat.lang),
        *_when(entry, seat.lang),
        *_rank(entry, shelf, seat),
        *_remedies(entry, seat),
        *_examples(entry, seat.lang),
    ]


def _saying(entry: Entry, lang: Lang) -> Iterator[Block]:
    raw = entry.raw
    if "background" in raw:
        yield Paragraph(text_of(raw["background"], lang))
    example = next((example for example in raw.get("examples", ()) if example.get("expect") == "fires"), None)
    if example is None:
        said = text_of(raw["evidence"], lang)
    else:
        said = filled(raw["evidence"], {**raw.get("given", {}), **example.get("with", {})}, lang)
    yield Heading(3, say("says", lang))
    yield Paragraph(say("sentence", lang, said=said))
    if "put_right" in raw:
        yield Paragraph(say("put_right", lang, said=text_of(raw["put_right"], lang)))


def _when(entry: Entry, lang: Lang) -> Iterator[Block]:
    raw = entry.raw
    yield Heading(3, say("when", lang))
    for part in ("all", "any", "none"):
        yield from conditions(raw["when"].get(part, ()), part, lang)
    if "presume" in raw:
        yield Heading(3, say("presumed", lang))
        aloud = say("aloud", lang, said=text_of(raw["assuming"], lang)) if "assuming" in raw else ""
        yield Paragraph(say("presuming", lang) + aloud)
        yield Items(tuple(explained(name, value_words(text, lang), lang) for name, text in raw["presume"].items()))


def _rank(entry: Entry, shelf: Shelf, seat: Seat) -> Iterator[Block]:
    """What decides its place among the causes."""
    raw, lang = entry.raw, seat.lang
    yield Heading(3, say("accounts_for", lang))
    if "accounts_for" in raw:
        yield Paragraph(say("as_written", lang, line=code(raw["accounts_for"]), words=node_words(parse_sum(raw["accounts_for"]), lang)))
    else:
        yield Paragraph(say("accounts_for_nothing", lang))
    if raw.get("yields_to"):
        yield Heading(3, say("yields_to", lang))
        yield Items(tuple(_stronger(name, shelf, seat) for name in raw["yields_to"]))


def _stronger(name: str, shelf: Shelf, seat: Seat) -> str:
    """A rule or a cause that sets this one aside, as a link."""
    if name in ("everything", "anything"):
        return say(name, seat.lang)
    rule = shelf.cause(name)
    if rule is not None:
        return link(quoted(rule.raw["title"][seat.lang]), seat.to(page_of("causes", rule.word), rule.id))
    called = known_as("manual", f"cause_{name}", name, seat.lang)
    return link(called, seat.to(page_of("causes", name))) if shelf.of("causes", name) else called


def _remedies(entry: Entry, seat: Seat) -> Iterator[Block]:
    lang = seat.lang
    links = [
        link(known_as("render", f"remedy_{word}", word, lang), seat.to(page_of("remedies", word))) for word in entry.raw.get("remedies", ())
    ]
    if links:
        yield Heading(3, say("remedies", lang))
        yield Paragraph(listed(links, lang))


def _examples(entry: Entry, lang: Lang) -> Iterator[Block]:
    raw = entry.raw
    examples = sorted((example for example in raw.get("examples", ()) if example.get("expect") in VERDICTS), key=_place)
    if not examples:
        return
    yield Heading(3, say("examples", lang))
    if raw.get("given"):
        yield Paragraph(say("shared", lang))
        yield Items(tuple(explained(name, fact_value(text, lang), lang) for name, text in raw["given"].items()))
    rows = []
    for example in examples:
        changed = _facts(example.get("with", {}), lang) or say("as_given", lang)
        # the names of examples are written in English only; what is changed says the same in any language
        told = (quoted(example.get("name", "")), changed) if lang == "en" else (changed,)
        rows.append((say(f"verdict_{example['expect']}", lang), *told))
    head = ("verdict", "example", "facts_changed") if lang == "en" else ("verdict", "facts_changed")
    yield Grid(tuple(say(word, lang) for word in head), tuple(rows))


def _place(example: Mapping[str, str]) -> int:
    return VERDICTS.index(example["expect"])


def _facts(facts: Mapping[str, str], lang: Lang) -> str:
    return ("；" if lang == "zh" else "; ").join(fact_is(name, text, lang) for name, text in facts.items())
