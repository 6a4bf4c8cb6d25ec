"""Reads rules/frameworks: which key of a framework turns which knob, in which releases, and what it is when nobody sets it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache, partial
from typing import Any, Literal

from diagnose import rule_files
from diagnose.adapters.schema.spellings import Key, Need, Table
from diagnose.phrases import Text, phrase, same
from diagnose.record import replace
from diagnose.release_spans import EVERY, ReleaseSpan, from_data
from diagnose.units import Version
from diagnose.word_conditions import conditions, word_of


@cache
def _index() -> dict[str, Any]:
    """What tells frameworks apart, and which facts say their releases. Of most tables a diagnosis needs no more."""
    return rule_files.kept("frameworks.index", _made_index, "frameworks")  # type: ignore[no-any-return]


def _made_index() -> dict[str, Any]:
    found = {}
    for name, raw in rule_files.table("frameworks").items():
        own = raw.get("version", f"version.{name}")
        dated = sorted({entry.get("version", own) for knob, entries in raw.items() if "." in knob for entry in entries})
        found[name] = {
            "rank": raw.get("rank", 1),
            "detect": raw.get("detect", {}),
            "releases": dated,
            "extends": raw.get("extends", ""),
            "serves": raw.get("serves", False),
            "trainer": raw.get("trainer", False),
            "role": raw.get("role", ""),
            "launches": raw.get("launches", ""),
            "aliases": raw.get("aliases", []),
        }
    return found


@cache
def names() -> tuple[str, ...]:
    """Every framework, the more particular first: who finds nothing of its own falls to a general one."""
    return tuple(sorted(_index(), key=lambda name: (_index()[name]["rank"], name)))


def display_name(name: str) -> Text:
    """A framework as its people write it."""
    try:
        return phrase(f"adapters.framework_{name}")
    except KeyError:
        return same(name)


def signs(name: str) -> Mapping[str, Any]:
    """What a framework is recognised by; its keys, which take longer to build than to recognise it, are not needed for that."""
    return _index()[name]["detect"]  # type: ignore[no-any-return]


def by_signs_only(name: str) -> bool:
    """Rank 0: an engine or a library over another framework, whose keys are that one's too; no share of keys speaks for it."""
    return _index()[name]["rank"] == 0  # type: ignore[no-any-return]


#: The `role` of a table: whose arguments other trainers take, too (`general`); keywords of torch in a script without a trainer (`plain`);
#: the sharding engine with a file of its own (`engine`); a library that runs around a script's own loop (`around`); variables of the
#: environment (`variables`).
Role = Literal["general", "plain", "engine", "around", "variables"]


@cache
def of_role(role: Role) -> str:
    """The table of this role, the most particular where several have it."""
    return next(name for name in names() if _index()[name]["role"] == role)


@cache
def launcher_table(word: str) -> str | None:
    """The table of a launcher's options."""
    return next((name for name in names() if word and _index()[name]["launches"] == word), None)


@cache
def job_independent() -> frozenset[str]:
    """Tables of what any job may hold, whatever it trains with."""
    return frozenset(name for name, entry in _index().items() if (entry["role"] or entry["launches"]) and not entry["trainer"])


@cache
def resolve_alias(word: str) -> str:
    """The framework that a word names which is not its own name; else the word."""
    return next((name for name, entry in _index().items() if word in entry["aliases"]), word)


@cache
def engines() -> tuple[str, ...]:
    """The inference engines."""
    return tuple(name for name in names() if _index()[name]["serves"])


@cache
def bases(name: str) -> tuple[str, ...]:
    """The tables whose keys a framework inherits, the nearest first."""
    base = _index()[name]["extends"]
    return (base, *bases(base)) if base else ()


@cache
def releases() -> frozenset[str]:
    """Every fact that says which release a key is for."""
    return frozenset(name for entry in _index().values() for name in entry["releases"])


@cache
def table(name: str) -> Table:
    """The table of a framework. Raises KeyError for a name that has none."""
    if name not in _index():
        raise KeyError(name)
    raw = rule_files.table(f"frameworks/{name}")
    base = table(raw["extends"]) if "extends" in raw else None
    version = raw.get("version", f"version.{name}")
    readers = raw.get("read_by", {})
    own = tuple(_with_readers(key, readers) for knob, entries in raw.items() if "." in knob for key in _keys(knob, entries, version))
    without = set(raw.get("without", ()))
    turned = {key.knob for key in own if key.key} | {key.knob for key in own if not key.key and key.given is None and not key.always}
    inherited = tuple(key for key in base.keys if key.knob not in turned and key.key not in without) if base else ()
    return Table(
        name=name,
        version=version,
        keys=own + inherited,
        unknown=raw.get("unknown", base.unknown if base else "anything"),
        load_known=partial(known, name),
        detect=signs(name),
        entries={**(base.entries if base else {}), **raw.get("entries", {})},
        stock={**(base.stock if base else {}), **raw.get("stock", {})},
        stock_folder=raw.get("stock_folder", base.stock_folder if base else ""),
        ignored=(*({"version": version, **rule} for rule in raw.get("ignored", ())), *(base.ignored if base else ())),
        file_key=raw.get("file_key", base.file_key if base else ""),
        config_keys=frozenset(raw.get("config_keys", base.config_keys if base else ())),
        trainer=raw.get("trainer", False),
        serves=raw.get("serves", False),
        positional=raw.get("positional", ""),
        interpolates=raw.get("interpolates", base.interpolates if base else False),
        resolvers=raw.get("resolvers", base.resolvers if base else None),
        dated=_dated_keys(raw.get("dated", ())) or (base.dated if base else None),
        shipped=frozenset(raw.get("shipped", base.shipped if base else ())),
        extended_by=frozenset(raw.get("extended_by", base.extended_by if base else ())),
        integrations=tuple(raw.get("integrations", base.integrations if base else ())),
        blocks=_blocks(raw, base),
        shape=raw.get("shape", base.shape if base else {}),
        environment=raw.get("environment", base.environment if base else "shell"),
        variables=raw.get("variables", base.variables if base else False),
        bare_switches=raw.get("bare_switches", base.bare_switches if base else False),
        role=raw.get("role", ""),
        launches=raw.get("launches", ""),
        dumps_whole=raw.get("dumps_whole", False),
        one_process=raw.get("one_process", base.one_process if base else False),
        spawns=tuple(raw.get("spawns", ())),
    )


@cache
def known(name: str) -> frozenset[str]:
    """Every key of a framework that we know to be real, whether or not it turns a knob (rules/keys, read when first asked for)."""
    tab, raw = table(name), rule_files.table(f"frameworks/{name}")
    try:
        blocks = rule_files.table(f"keys/{name}")
    except FileNotFoundError:
        blocks = []
    words = {word for block in blocks for word in block["names"].split()}
    words |= {key.key for key in tab.keys if key.key and not key.code} | {word for key in tab.keys for word, _ in factors(key.times)}
    words |= tab.config_keys | ({tab.file_key} if tab.file_key else set())
    words |= known(raw["extends"]) if "extends" in raw else frozenset()
    return frozenset(words - set(raw.get("without", ())))


def _keys(knob: str, entries: Iterable[Mapping[str, Any]], version: str) -> Iterator[Key]:
    for entry in entries:
        values = entry.get("values")
        yield Key(
            knob=knob,
            key=entry.get("key", ""),
            version=entry.get("version", version),
            releases=from_data(entry.get("since"), entry.get("until")),
            values=None if values is None else {word_of(name): word_of(value) for name, value in values.items()},
            default=word_of(entry["default"]) if "default" in entry else None,
            given=conditions(entry["if"]) if "if" in entry else None,
            where=conditions(entry["where"]) if "where" in entry else None,
            entry=tuple(entry.get("entry", ())),
            needs=tuple(_need(need) for need in entry.get("needs", ())),
            struct=Version(entry["struct"]) if "struct" in entry else None,
            auto=tuple(entry["auto"]) if "auto" in entry else None,
            **{
                name: entry[name]
                for name in (
                    "takes",
                    "part",
                    "times",
                    "over",
                    "also",
                    "within",
                    "always",
                    "bare",
                    "cli",
                    "code",
                    "fills",
                    "read_only",
                    "own",
                    "wins",
                )
                if name in entry
            },
        )


def _dated_keys(lines: Iterable[Mapping[str, str]]) -> dict[str, ReleaseSpan]:
    spans: dict[str, ReleaseSpan] = {}
    for line in lines:
        span = from_data(line.get("since"), line.get("until"))
        for name in line["keys"].split():
            earlier = spans.get(name, EVERY)
            spans[name] = ReleaseSpan(span.low or earlier.low, span.high or earlier.high)
    return spans


def _with_readers(key: Key, readers: Mapping[str, Sequence[str]]) -> Key:
    """The key with the entry points that read it, where the table says them of all keys of a pattern."""
    patterns = next((words for pattern, words in readers.items() if fnmatchcase(key.key, pattern)), ()) if key.key and not key.entry else ()
    return replace(key, entry=tuple(patterns)) if patterns else key


def factors(written: str) -> list[tuple[str, int | None]]:
    """The keys of `times` or `over`, several parted by blanks, and what each counts for where nobody sets it (`key=8`)."""
    return [(name, int(number) if number else None) for name, _, number in (word.partition("=") for word in written.split())]


def _blocks(raw: Mapping[str, Any], base: Table | None) -> Mapping[str, frozenset[str]] | None:
    if "blocks" not in raw:
        return base.blocks if base else None
    return {name: frozenset(words.split()) for name, words in raw["blocks"].items()}


def _need(entry: Mapping[str, Any]) -> Need:
    return Need(entry["key"], entry.get("to"), entry.get("add", ""), from_data(entry.get("since"), entry.get("until")))


def possible_releases(tab: Table, version: Version | None, present: Iterable[str]) -> ReleaseSpan:
    """The releases that a config can be for: the known one, else what its own spellings leave (a key that came late, one that went)."""
    if version is not None:
        return ReleaseSpan(version, final_release(version))
    lows, highs = [], []
    keys = set(present)
    for name in keys:
        spellings = [key.releases for key in tab.named(name) if key.version == tab.version]
        if spellings and all(releases.low for releases in spellings):
            lows.append(min(releases.low for releases in spellings if releases.low))
        if spellings and all(releases.high for releases in spellings):
            highs.append(max(releases.high for releases in spellings if releases.high))
        dated = (tab.dated or {}).get(name, EVERY)
        lows += [dated.low] if dated.low else []
        highs += [dated.high] if dated.high else []
    low, high = max(lows, default=None), min(highs, default=None)
    return EVERY if low and high and high < low else ReleaseSpan(low, high)


def final_release(version: Version) -> Version:
    """The release that a development version leads to: it may hold all of that release, or none of what is new in it."""
    match = re.match(r"[\d.]*\d(?=\.?(?:dev|a|b|rc))", version.text)
    return Version(match[0]) if match else version
