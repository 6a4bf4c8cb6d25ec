"""A remedy rule as a part of a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from diagnose.adapters.schema import framework_tables
from diagnose.adapters.schema.spellings import Key
from diagnose.decide.expression import parse_sum
from diagnose.facts import declared, typed
from diagnose.manual.blocks import BREAK, Block, Grid, Heading, Items, Paragraph, code, link
from diagnose.manual.knob_pages import releases
from diagnose.manual.rule_index import Entry, Seat, Shelf, page_of_name
from diagnose.manual.rule_wording import condition, conditions, explained, listed, named, node_words, say, text_of, value_words
from diagnose.phrases import Lang
from diagnose.plan.edits.value_spelling import literal, word_for
from diagnose.plan.rules.remedy_rules import KEEP_BATCH


def section(entry: Entry, shelf: Shelf, seat: Seat) -> list[Block]:  # noqa: ARG001 - the signature that causes.section has
    """What the rule turns, at what price, when not, and how each framework writes it."""
    return [
        *_turning(entry, seat),
        *_price(entry, seat.lang),
        *_when(entry, seat.lang),
        *_edits(entry, seat.lang),
        *_examples(entry, seat.lang),
    ]


def _turning(entry: Entry, seat: Seat) -> Iterator[Block]:
    raw, lang = entry.raw, seat.lang
    if "background" in raw:
        yield Paragraph(text_of(raw["background"], lang))
    if "do" in raw:
        yield Paragraph(("" if raw["turns"] == "none" else say("by_hand", lang)) + text_of(raw["do"], lang))
    if "alone" in raw:
        yield Paragraph(text_of(raw["alone"], lang))
    if "command" in raw:
        yield Paragraph(say("command", lang, command=text_of(raw["command"], lang)))
    yield Heading(3, say("turns", lang))
    if raw["turns"] == "none":
        yield Paragraph(say("turns_nothing", lang))
        return
    knob = link(code(raw["turns"]), seat.to(page_of_name(raw["turns"]), raw["turns"]))
    yield Paragraph(say("turns_to", lang, knob=knob, meaning=named(raw["turns"], lang), values=_values(raw.get("to", ()), lang)))
    if raw.get("already"):
        yield Paragraph(say("already", lang, values=listed([value_words(text, lang) for text in raw["already"]], lang)))
    if raw.get("with"):
        texts = [
            say("pair", lang, left=link(code(name), seat.to(page_of_name(name), name)), right=_value(text, lang))
            for name, text in raw["with"].items()
        ]
        yield Paragraph(say("together", lang))
        yield Items(tuple(texts))


def _values(to: Sequence[str] | Mapping[str, str], lang: Lang) -> str:
    """The values that are tried."""
    if not isinstance(to, Mapping):
        return listed([_value(text, lang) for text in to], lang)
    aim = "largest" if "largest" in to else "smallest"
    said = say(f"aim_{aim}", lang, step=to.get("step", "1"))
    for limit in ("least", "most"):
        said += say(f"aim_{limit}", lang, limit=value_words(to[limit], lang)) if limit in to else ""
    return said


def _value(text: str, lang: Lang) -> str:
    if text == KEEP_BATCH:
        return say("keep_batch", lang)
    if text.startswith("+"):
        return say("with_word", lang, word=code(text[1:]))
    return node_words(parse_sum(text), lang) if "*" in text else value_words(text, lang)


def _price(entry: Entry, lang: Lang) -> Iterator[Block]:
    raw = entry.raw
    saves = raw.get("saves", "unknown")
    if isinstance(saves, Mapping):
        said = say("saves_at_most", lang, bytes=named(saves["at_most"], lang))
    elif saves in ("ledger", "unknown"):
        said = say(f"saves_{saves}", lang)
    else:
        said = say("saves_fact", lang, bytes=named(saves, lang))
    yield Heading(3, say("saves", lang))
    yield Paragraph(said + (say(f"relieves_{raw['relieves']}", lang) if "relieves" in raw else ""))
    yield Heading(3, say("price", lang))
    texts = [say(f"{part}_{raw['price'][part]}", lang) for part in ("results", "speed", "effort")]
    yield Items((*texts, say("host_memory", lang)) if "host_memory" in raw["price"] else tuple(texts))
    if "serving" in raw:
        yield Paragraph(say("serving", lang, said=text_of(raw["serving"], lang)))


def _when(entry: Entry, lang: Lang) -> Iterator[Block]:
    raw = entry.raw
    if raw.get("where"):
        yield Heading(3, say("where", lang))
        yield from conditions(raw["where"], "where_all", lang)
    if raw.get("not_when"):
        yield Heading(3, say("not_when", lang))
        yield Items(tuple(_unless(unless, lang) for unless in raw["not_when"]))
    if raw.get("caveats"):
        yield Heading(3, say("caveats", lang))
        yield Items(tuple(_unless(caveat, lang) for caveat in raw["caveats"]))
    if raw.get("asks"):
        yield Heading(3, say("asks", lang))
        yield Items(tuple(explained(fact, text_of(why, lang), lang) for fact, why in raw["asks"].items()))


def _unless(unless: Mapping[str, Any], lang: Lang) -> str:
    lines = [unless["if"]] if isinstance(unless["if"], str) else list(unless["if"])
    told = [text_of(unless, lang), *(condition(line, lang) for line in lines)]
    return BREAK.join([*told, say("even_unknown", lang)] if unless.get("even") == "unknown" else told)


# -- how it is written


def _edits(entry: Entry, lang: Lang) -> Iterator[Block]:
    """A row for each key, with every framework that has it; nothing for a remedy without a knob."""
    knob = entry.raw["turns"]
    rows: dict[tuple[str, str, str], list[str]] = {}
    if page_of_name(knob) != "knobs.md":
        return  # nothing is turned, or what a script does
    for framework in framework_tables.names():
        for key in framework_tables.table(framework).of(knob):
            if key.addable and (text := _spelling(key, entry.raw.get("to", ()), framework, lang)):
                rows.setdefault((text, releases(key, framework, lang), _needed(key)), []).append(framework)
    yield Heading(3, say("edits", lang))
    if not rows:
        yield Paragraph(say("no_key", lang))
        return
    head = tuple(say(word, lang) for word in ("framework", "key", "releases", "beside"))
    yield Grid(head, tuple((", ".join(sorted(names)), *cells) for cells, names in rows.items()))


def _spelling(key: Key, to: Sequence[str] | Mapping[str, str], framework: str, lang: Lang) -> str:
    """`key: value` for each value that the key can hold; N stands for a number. Empty where it can hold none."""
    entry = declared(key.knob)
    if isinstance(to, Mapping) or entry is None or not all(_fixed(text, entry.kind) for text in to):
        return code(_assigned(key, "N"))
    return BREAK.join(dict.fromkeys(filter(None, (_setting(key, text, framework, lang) for text in to))))


def _fixed(text: str, kind: str) -> bool:
    """Whether a value is the same in every run: a word, or a figure that is no share and no formula."""
    return kind in ("switch", "word") or text.isdigit()


def _setting(key: Key, text: str, framework: str, lang: Lang) -> str:
    """How a key is given the value; that it is left out, where it can only switch on what is off without it."""
    value = typed(key.knob, text)
    word = text if value is None else str(value) if key.takes == "part" else word_for(key, value)
    if word is not None and (not key.bare or word == "true"):
        return code(_assigned(key, word))
    off = any(other.default == text and other.given is None for other in framework_tables.table(framework).of(key.knob))
    return say("left_out", lang, name=code(key.key)) if off and text in ("none", "disabled") else ""


def _assigned(key: Key, word: str) -> str:
    if key.takes == "part":
        return f"{key.key}={key.part}:{word}"
    return key.key if key.bare else f"{key.key}: {word}"


def _needed(key: Key) -> str:
    return BREAK.join(code(f"{need.key}: {need.add or literal(need.to, 'yaml')}") for need in key.needs)


def _examples(entry: Entry, lang: Lang) -> Iterator[Block]:
    examples = entry.raw.get("examples", ())
    if examples:
        yield Heading(3, say("examples", lang))
        rows = tuple(
            (example.get("framework", ""), _shown(example.get("before", "")), _shown(example.get("after", ""))) for example in examples
        )
        yield Grid(tuple(say(word, lang) for word in ("framework", "before", "after")), rows)


def _shown(text: str) -> str:
    """Lines of a file in a cell."""
    return BREAK.join(code(line) for line in text.splitlines() if line.strip())
