"""Reference pages: the dictionary of facts, the knobs with each framework's keys, the models and cards of the catalogue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from diagnose import rule_files
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.schema.table_types import Key
from diagnose.facts import Declared, declared
from diagnose.manual.blocks import BREAK, Block, Grid, Heading, Paragraph, code, quoted
from diagnose.manual.rule_wording import tr
from diagnose.phrases import Lang


def fact_blocks(lang: Lang) -> Iterator[Block]:
    """All facts other than knobs: kind, source, meaning."""
    yield Paragraph(tr("facts_intro", lang))
    for group, names in _group_names(rule_files.table("facts")):
        yield Heading(2, code(f"{group}.*"))
        head = tuple(tr(word, lang) for word in ("name", "kind", "by", "meaning"))
        yield Grid(head, tuple(_fact(entry, lang) for name in names if (entry := declared(name)) is not None))


def _fact(declaration: Declared, lang: Lang) -> tuple[str, ...]:
    return (
        _anchored_name(declaration.name),
        tr(f"kind_{declaration.kind}", lang),
        tr(f"by_{declaration.by}", lang),
        _meaning(declaration, lang),
    )


def _anchored_name(name: str) -> str:
    """A name as code with an anchor for links."""
    return f'<a id="{name}"></a>{code(name)}'


def _meaning(entry: Declared, lang: Lang) -> str:
    meaning = quoted(entry.zh if lang == "zh" else entry.en)
    choices = tr("one_of", lang, words=", ".join(map(code, entry.words))) if entry.words else ""
    advice = tr("find_out", lang, how=quoted(entry.how[lang])) if entry.how else ""
    return meaning + choices + advice


def knob_blocks(lang: Lang) -> Iterator[Block]:
    """For each group of knobs their meaning, and a table of the frameworks' keys."""
    yield Paragraph(tr("knobs_intro", lang))
    for group, knobs in _group_names(rule_files.table("knobs")):
        yield Heading(2, code(f"{group}.*"))
        entries = [entry for knob in knobs if (entry := declared(knob)) is not None]
        head = tuple(tr(word, lang) for word in ("name", "kind", "meaning"))
        yield Grid(head, tuple((_anchored_name(entry.name), tr(f"kind_{entry.kind}", lang), _meaning(entry, lang)) for entry in entries))
        cells = {(knob, framework): _keys(framework, knob, lang) for knob in knobs for framework in framework_tables.names()}
        columns = [framework for framework in framework_tables.names() if any(cells[knob, framework] for knob in knobs)]
        rows = tuple((code(knob), *(cells[knob, framework] for framework in columns)) for knob in knobs)
        if columns:
            yield Grid((tr("knob", lang), *columns), tuple(row for row in rows if any(row[1:])))


def _keys(framework: str, knob: str, lang: Lang) -> str:
    keys = [key for key in framework_tables.table(framework).of(knob) if key.key]
    return BREAK.join(dict.fromkeys(_key(key, framework, lang) for key in keys))


def _key(key: Key, framework: str, lang: Lang) -> str:
    """`max_length` ≥ 0.16.0"""
    name = f"{key.key}={key.part}" if key.takes == "part" else key.key
    marks = [release_range(key, framework, lang), tr("read_only", lang) if key.read_only else ""]
    return " ".join([code(name), *filter(None, marks)])


def release_range(key: Key, framework: str, lang: Lang) -> str:
    """The range of releases that have a key; empty for all. Names the library where it is not the framework's own."""
    if not key.releases.bounded:
        return ""
    own = key.version == framework_tables.table(framework).version and key.version.removeprefix("version.") == framework
    library = "" if own else f"{key.version.removeprefix('version.')} "
    low, high = key.releases.low, key.releases.high
    if low and high:
        return tr("between", lang, library=library, since=low.text, until=high.text)
    return f"{library}≥ {low.text}" if low else f"{library}≤ {high.text if high else ''}"


def _group_names(names: Iterable[str]) -> list[tuple[str, list[str]]]:
    """Names grouped by the part before their dot, in the order of the file."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(name.partition(".")[0], []).append(name)
    return list(groups.items())


# -- the catalogue


def model_blocks(lang: Lang) -> Iterator[Block]:
    """The models by family, with the dimensions that decide their memory."""
    families = rule_files.table("models").values()
    yield Paragraph(tr("models_intro", lang, count=sum(len(family["models"]) for family in families)))
    head = tuple(tr(word, lang) for word in ("model", "parameters", "layers", "hidden", "heads", "vocabulary", "longest"))
    for family in families:
        yield Heading(2, family["family"])
        yield Grid(head, tuple(_model_row(entry) for entry in family["models"]))


def _model_row(entry: Mapping[str, Any]) -> tuple[str, ...]:
    heads = f"{entry['num_attention_heads']} / {entry['num_key_value_heads']}"
    figures = (entry["num_hidden_layers"], entry["hidden_size"], heads, entry["vocab_size"], entry.get("max_position_embeddings", ""))
    return code(entry["id"]), f"{entry['total_params'] / 1e9:.2f} B", *map(str, figures)


def card_blocks(lang: Lang) -> Iterator[Block]:
    """The cards, with the memory totals that programs print for them."""
    entries = [card for table in rule_files.table("hardware").values() for card in table.get("cards", ())]
    yield Paragraph(tr("cards_intro", lang, count=len(entries)))
    head = tuple(tr(word, lang) for word in ("card", "names", "capability", "printed", "computes"))
    yield Grid(head, tuple(_card_row(card) for card in entries))


def _card_row(card: Mapping[str, Any]) -> tuple[str, ...]:
    printed = sorted({*card.get("seen", ()), *card.get("recalled", ())}, key=float)
    features = [
        title
        for key, title in (("bf16", "bf16"), ("fp8", "fp8"), ("fa2", "flash attention 2"), ("fa3", "flash attention 3"))
        if card.get(key)
    ]
    return code(card["key"]), ", ".join(card["names"]), str(card.get("compute_capability") or ""), ", ".join(printed), ", ".join(features)
