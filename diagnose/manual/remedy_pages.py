"""The section of a remedy rule on its page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from diagnose.adapters.schema import framework_tables
from diagnose.adapters.schema.table_types import Key
from diagnose.decide.expression import parse_sum
from diagnose.facts import declared, typed
from diagnose.manual.blocks import BREAK, Block, Grid, Heading, Items, Paragraph, code, link
from diagnose.manual.reference_pages import release_range
from diagnose.manual.rule_index import Entry, PageAddress, RuleIndex, fact_page
from diagnose.manual.rule_wording import (
    condition,
    conditions,
    emphasized_title,
    explained_value,
    expression_text,
    join_words,
    rule_text,
    tr,
    value_text,
)
from diagnose.phrases import Lang
from diagnose.plan.edits.value_spelling import literal, word_for
from diagnose.plan.remedies.remedy_rules import KEEP_BATCH


def section(entry: Entry, index: RuleIndex, address: PageAddress) -> list[Block]:  # noqa: ARG001 - the signature that causes.section has
    """The knob that the rule changes, its price, its conditions, each framework's spelling, and examples."""
    return [
        *_change(entry, address),
        *_price(entry, address.lang),
        *_conditions(entry, address.lang),
        *_edits(entry, address.lang),
        *_examples(entry, address.lang),
    ]


def _change(entry: Entry, address: PageAddress) -> Iterator[Block]:
    raw, lang = entry.raw, address.lang
    if "background" in raw:
        yield Paragraph(rule_text(raw["background"], lang))
    if "do" in raw:
        yield Paragraph(("" if raw["turns"] == "none" else tr("by_hand", lang)) + rule_text(raw["do"], lang))
    if "programs" in raw:
        yield Items(
            tuple(f"{framework_tables.display_name(name).to(lang)}: {rule_text(text, lang)}" for name, text in raw["programs"].items())
        )
    if "alone" in raw:
        yield Paragraph(rule_text(raw["alone"], lang))
    if "command" in raw:
        yield Paragraph(tr("command", lang, command=rule_text(raw["command"], lang)))
    yield Heading(3, tr("turns", lang))
    if raw["turns"] == "none":
        yield Paragraph(tr("turns_nothing", lang))
        return
    knob = link(code(raw["turns"]), address.link_to(fact_page(raw["turns"]), raw["turns"]))
    yield Paragraph(tr("turns_to", lang, knob=knob, meaning=emphasized_title(raw["turns"], lang), values=_values(raw.get("to", ()), lang)))
    if raw.get("already"):
        yield Paragraph(tr("already", lang, values=join_words([value_text(text, lang) for text in raw["already"]], lang)))
    if raw.get("with"):
        texts = [
            tr("pair", lang, left=link(code(name), address.link_to(fact_page(name), name)), right=_value(text, lang))
            for name, text in raw["with"].items()
        ]
        yield Paragraph(tr("together", lang))
        yield Items(tuple(texts))


def _values(targets: Sequence[str] | Mapping[str, str], lang: Lang) -> str:
    """The values that the planner tries."""
    if not isinstance(targets, Mapping):
        return join_words([_value(text, lang) for text in targets], lang)
    aim = "largest" if "largest" in targets else "smallest"
    sentence = tr(f"aim_{aim}", lang, step=targets.get("step", "1"))
    for limit in ("least", "most"):
        sentence += tr(f"aim_{limit}", lang, limit=value_text(targets[limit], lang)) if limit in targets else ""
    return sentence


def _value(text: str, lang: Lang) -> str:
    if text == KEEP_BATCH:
        return tr("keep_batch", lang)
    if text.startswith("+"):
        return tr("with_word", lang, word=code(text[1:]))
    return expression_text(parse_sum(text), lang) if "*" in text else value_text(text, lang)


def _price(entry: Entry, lang: Lang) -> Iterator[Block]:
    raw = entry.raw
    saves = raw.get("saves", "unknown")
    if isinstance(saves, Mapping):
        sentence = tr("saves_at_most", lang, bytes=emphasized_title(saves["at_most"], lang))
    elif saves in ("ledger", "unknown"):
        sentence = tr(f"saves_{saves}", lang)
    else:
        sentence = tr("saves_fact", lang, bytes=emphasized_title(saves, lang))
    yield Heading(3, tr("saves", lang))
    yield Paragraph(sentence + (tr(f"relieves_{raw['relieves']}", lang) if "relieves" in raw else ""))
    yield Heading(3, tr("price", lang))
    texts = [tr(f"{part}_{raw['price'][part]}", lang) for part in ("results", "speed", "effort")]
    yield Items((*texts, tr("host_memory", lang)) if "host_memory" in raw["price"] else tuple(texts))
    if "serving" in raw:
        yield Paragraph(tr("serving", lang, said=rule_text(raw["serving"], lang)))
    for name, said in raw.get("serving_in", {}).items():
        yield Paragraph(tr("serving_in", lang, program=framework_tables.display_name(name).to(lang), said=rule_text(said, lang)))


def _conditions(entry: Entry, lang: Lang) -> Iterator[Block]:
    raw = entry.raw
    if raw.get("where"):
        yield Heading(3, tr("where", lang))
        yield from conditions(raw["where"], "where_all", lang)
    if raw.get("not_when"):
        yield Heading(3, tr("not_when", lang))
        yield Items(tuple(_exception(unless, lang) for unless in raw["not_when"]))
    if raw.get("caveats"):
        yield Heading(3, tr("caveats", lang))
        yield Items(tuple(_exception(caveat, lang) for caveat in raw["caveats"]))
    if raw.get("asks"):
        yield Heading(3, tr("asks", lang))
        yield Items(tuple(explained_value(fact, rule_text(why, lang), lang) for fact, why in raw["asks"].items()))


def _exception(unless: Mapping[str, Any], lang: Lang) -> str:
    lines = [unless["if"]] if isinstance(unless["if"], str) else list(unless["if"])
    parts = [rule_text(unless, lang), *(condition(line, lang) for line in lines)]
    return BREAK.join([*parts, tr("even_unknown", lang)] if unless.get("even") == "unknown" else parts)


# -- how it is written


def _edits(entry: Entry, lang: Lang) -> Iterator[Block]:
    """A row for each key, with every framework that has it; nothing for a remedy without a knob."""
    knob = entry.raw["turns"]
    rows: dict[tuple[str, str, str], list[str]] = {}
    if fact_page(knob) != "knobs.md":
        return  # no knob: nothing is changed, or only by hand in a script
    for framework in framework_tables.names():
        for key in framework_tables.table(framework).of(knob):
            if key.addable and (text := _spelling(key, entry.raw.get("to", ()), framework, lang)):
                rows.setdefault((text, release_range(key, framework, lang), _needed_keys(key)), []).append(framework)
    yield Heading(3, tr("edits", lang))
    if not rows:
        yield Paragraph(tr("no_key", lang))
        return
    head = tuple(tr(word, lang) for word in ("framework", "key", "releases", "beside"))
    yield Grid(head, tuple((", ".join(sorted(names)), *cells) for cells, names in rows.items()))


def _spelling(key: Key, targets: Sequence[str] | Mapping[str, str], framework: str, lang: Lang) -> str:
    """`key: value` for each value that the key can hold, `key: N` for numbers; empty if it can hold none."""
    entry = declared(key.knob)
    if isinstance(targets, Mapping) or entry is None or not all(_is_constant(text, entry.kind) for text in targets):
        return code(_assignment(key, "N"))
    return BREAK.join(dict.fromkeys(filter(None, (_setting(key, text, framework, lang) for text in targets))))


def _is_constant(text: str, kind: str) -> bool:
    """Whether a value is the same in every run: a word or a number, no share or formula."""
    return kind in ("switch", "word") or text.isdigit()


def _setting(key: Key, text: str, framework: str, lang: Lang) -> str:
    """The assignment of a value to a key, or that the key is left out where it can only switch on what is off by default."""
    value = typed(key.knob, text)
    spelling = text if value is None else str(value) if key.takes == "part" else word_for(key, value)
    if spelling is not None and (not key.bare or spelling == "true"):
        return code(_assignment(key, spelling))
    off = any(sibling.default == text and sibling.given is None for sibling in framework_tables.table(framework).of(key.knob))
    return tr("left_out", lang, name=code(key.key)) if off and text in ("none", "disabled") else ""


def _assignment(key: Key, word: str) -> str:
    if key.takes == "part":
        return f"{key.key}={key.part}:{word}"
    return key.key if key.bare else f"{key.key}: {word}"


def _needed_keys(key: Key) -> str:
    return BREAK.join(code(f"{need.key}: {need.add or literal(need.to, 'yaml')}") for need in key.needs)


def _examples(entry: Entry, lang: Lang) -> Iterator[Block]:
    examples = entry.raw.get("examples", ())
    if examples:
        yield Heading(3, tr("examples", lang))
        rows = tuple(
            (example.get("framework", ""), _code_lines(example.get("before", "")), _code_lines(example.get("after", "")))
            for example in examples
        )
        yield Grid(tuple(tr(word, lang) for word in ("framework", "before", "after")), rows)


def _code_lines(text: str) -> str:
    """Lines of a file as code in a table cell."""
    return BREAK.join(code(line) for line in text.splitlines() if line.strip())
