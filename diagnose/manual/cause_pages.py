"""The section of a cause rule on its page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from diagnose.decide.expression import parse_sum
from diagnose.manual.blocks import Block, Grid, Heading, Items, Paragraph, code, link, quoted
from diagnose.manual.rule_index import Entry, PageAddress, RuleIndex, rule_page
from diagnose.manual.rule_wording import (
    conditions,
    example_value,
    explained_value,
    expression_text,
    fact_line,
    fill_example,
    join_words,
    phrase_or,
    rule_text,
    tr,
    value_text,
)
from diagnose.phrases import Lang

#: Verdicts in the order of the table of examples.
VERDICTS = ("fires", "likely", "quiet", "unknown")


def section(entry: Entry, index: RuleIndex, address: PageAddress) -> list[Block]:
    """The rule's sentence, conditions, presumptions, rank, remedies and examples."""
    return [
        *_summary(entry, address.lang),
        *_conditions(entry, address.lang),
        *_ranking(entry, index, address),
        *_remedies(entry, address),
        *_examples(entry, address.lang),
    ]


def _summary(entry: Entry, lang: Lang) -> Iterator[Block]:
    raw = entry.raw
    if "background" in raw:
        yield Paragraph(rule_text(raw["background"], lang))
    example = next((example for example in raw.get("examples", ()) if example.get("expect") == "fires"), None)
    if example is None:
        sentence = rule_text(raw["evidence"], lang)
    else:
        sentence = fill_example(raw["evidence"], {**raw.get("given", {}), **example.get("with", {})}, lang)
    yield Heading(3, tr("says", lang))
    yield Paragraph(tr("sentence", lang, said=sentence))
    if "put_right" in raw:
        yield Paragraph(tr("put_right", lang, said=rule_text(raw["put_right"], lang)))


def _conditions(entry: Entry, lang: Lang) -> Iterator[Block]:
    raw = entry.raw
    yield Heading(3, tr("when", lang))
    for part in ("all", "any", "none"):
        yield from conditions(raw["when"].get(part, ()), part, lang)
    if "presume" in raw:
        yield Heading(3, tr("presumed", lang))
        said = raw.get("assuming", {})
        sentence = tr("aloud", lang, said=rule_text(said, lang)) if "en" in said else ""
        yield Paragraph(tr("presuming", lang) + sentence)
        yield Items(tuple(_presumption(name, text, said, lang) for name, text in raw["presume"].items()))


def _presumption(name: str, text: str, said: Mapping[str, Any], lang: Lang) -> str:
    """One fact that is taken for granted, and how that is said."""
    explained = explained_value(name, value_text(text, lang), lang)
    return explained + tr("aloud", lang, said=rule_text(said[name], lang)) if name in said else explained


def _ranking(entry: Entry, index: RuleIndex, address: PageAddress) -> Iterator[Block]:
    """What decides the rule's rank among the causes."""
    raw, lang = entry.raw, address.lang
    yield Heading(3, tr("accounts_for", lang))
    if "accounts_for" in raw:
        yield Paragraph(tr("as_written", lang, line=code(raw["accounts_for"]), words=expression_text(parse_sum(raw["accounts_for"]), lang)))
    else:
        yield Paragraph(tr("accounts_for_nothing", lang))
    if raw.get("yields_to"):
        yield Heading(3, tr("yields_to", lang))
        yield Items(tuple(_stronger_link(name, index, address) for name in raw["yields_to"]))


def _stronger_link(name: str, index: RuleIndex, address: PageAddress) -> str:
    """Link to a rule or cause that this rule yields to."""
    if name in ("everything", "anything"):
        return tr(name, address.lang)
    rule = index.cause_rule(name)
    if rule is not None:
        return link(quoted(rule.raw["title"][address.lang]), address.link_to(rule_page("causes", rule.word), rule.id))
    title = phrase_or("manual", f"cause_{name}", name, address.lang)
    return link(title, address.link_to(rule_page("causes", name))) if index.for_word("causes", name) else title


def _remedies(entry: Entry, address: PageAddress) -> Iterator[Block]:
    lang = address.lang
    links = [
        link(phrase_or("render", f"remedy_{word}", word, lang), address.link_to(rule_page("remedies", word)))
        for word in entry.raw.get("remedies", ())
    ]
    if links:
        yield Heading(3, tr("remedies", lang))
        yield Paragraph(join_words(links, lang))


def _examples(entry: Entry, lang: Lang) -> Iterator[Block]:
    raw = entry.raw
    examples = sorted((example for example in raw.get("examples", ()) if example.get("expect") in VERDICTS), key=_verdict_order)
    if not examples:
        return
    yield Heading(3, tr("examples", lang))
    if raw.get("given"):
        yield Paragraph(tr("shared", lang))
        yield Items(tuple(explained_value(name, example_value(text, lang), lang) for name, text in raw["given"].items()))
    rows = []
    for example in examples:
        changed = _facts_line(example.get("with", {}), lang) or tr("as_given", lang)
        # the names of examples are in English only
        cells = (quoted(example.get("name", "")), changed) if lang == "en" else (changed,)
        rows.append((tr(f"verdict_{example['expect']}", lang), *cells))
    head = ("verdict", "example", "facts_changed") if lang == "en" else ("verdict", "facts_changed")
    yield Grid(tuple(tr(word, lang) for word in head), tuple(rows))


def _verdict_order(example: Mapping[str, str]) -> int:
    return VERDICTS.index(example["expect"])


def _facts_line(facts: Mapping[str, str], lang: Lang) -> str:
    return ("；" if lang == "zh" else "; ").join(fact_line(name, text, lang) for name, text in facts.items())
