"""The dictionary of facts, and what each framework calls each knob."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from diagnose import rule_files
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.schema.spellings import Key
from diagnose.facts import Declared, declared
from diagnose.manual.blocks import BREAK, Block, Grid, Heading, Paragraph, code, quoted
from diagnose.manual.rule_wording import say
from diagnose.phrases import Lang


def dictionary(lang: Lang) -> Iterator[Block]:
    """Every fact that is no knob: kind, who says so, meaning."""
    yield Paragraph(say("facts_intro", lang))
    for group, names in _grouped(rule_files.table("facts")):
        yield Heading(2, code(f"{group}.*"))
        head = tuple(say(word, lang) for word in ("name", "kind", "by", "meaning"))
        yield Grid(head, tuple(_fact(entry, lang) for name in names if (entry := declared(name)) is not None))


def _fact(entry: Declared, lang: Lang) -> tuple[str, ...]:
    return _name(entry.name), say(f"kind_{entry.kind}", lang), say(f"by_{entry.by}", lang), _meaning(entry, lang)


def _name(name: str) -> str:
    """A name that other pages can link to."""
    return f'<a id="{name}"></a>{code(name)}'


def _meaning(entry: Declared, lang: Lang) -> str:
    said = quoted(entry.zh if lang == "zh" else entry.en)
    words = say("one_of", lang, words=", ".join(map(code, entry.words))) if entry.words else ""
    how = say("find_out", lang, how=quoted(entry.how[lang])) if entry.how else ""
    return said + words + how


def matrix(lang: Lang) -> Iterator[Block]:
    """For each group of knobs what they mean, and a table of the keys of the frameworks that have any."""
    yield Paragraph(say("knobs_intro", lang))
    for group, knobs in _grouped(rule_files.table("knobs")):
        yield Heading(2, code(f"{group}.*"))
        entries = [entry for knob in knobs if (entry := declared(knob)) is not None]
        head = tuple(say(word, lang) for word in ("name", "kind", "meaning"))
        yield Grid(head, tuple((_name(entry.name), say(f"kind_{entry.kind}", lang), _meaning(entry, lang)) for entry in entries))
        cells = {(knob, framework): _keys(framework, knob, lang) for knob in knobs for framework in framework_tables.names()}
        columns = [framework for framework in framework_tables.names() if any(cells[knob, framework] for knob in knobs)]
        rows = tuple((code(knob), *(cells[knob, framework] for framework in columns)) for knob in knobs)
        if columns:
            yield Grid((say("knob", lang), *columns), tuple(row for row in rows if any(row[1:])))


def _keys(framework: str, knob: str, lang: Lang) -> str:
    keys = [key for key in framework_tables.table(framework).of(knob) if key.key]
    return BREAK.join(dict.fromkeys(_key(key, framework, lang) for key in keys))


def _key(key: Key, framework: str, lang: Lang) -> str:
    """`max_length` ≥ 0.16.0"""
    name = f"{key.key}={key.part}" if key.takes == "part" else key.key
    marks = [releases(key, framework, lang), say("read_only", lang) if key.read_only else ""]
    return " ".join([code(name), *filter(None, marks)])


def releases(key: Key, framework: str, lang: Lang) -> str:
    """The releases that have the key; empty for all. The library is named where it is not the framework's own."""
    if key.since is None and key.until is None:
        return ""
    own = key.version == framework_tables.table(framework).version and key.version.removeprefix("version.") == framework
    library = "" if own else f"{key.version.removeprefix('version.')} "
    if key.since and key.until:
        return say("between", lang, library=library, since=key.since.text, until=key.until.text)
    return f"{library}≥ {key.since.text}" if key.since else f"{library}≤ {key.until.text if key.until else ''}"


def _grouped(names: Iterable[str]) -> list[tuple[str, list[str]]]:
    """Names by what stands before their dot, in the order of the file."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(name.partition(".")[0], []).append(name)
    return list(groups.items())
