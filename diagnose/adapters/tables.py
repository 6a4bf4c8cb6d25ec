"""Reads rules/frameworks: which key of a framework turns which knob, in which releases, and what it is when nobody sets it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from diagnose import shipped
from diagnose.adapters.leaf import NO, YES, Leaf
from diagnose.complaints import Complaint
from diagnose.facts import Value, declared, typed
from diagnose.phrases import Text, phrase, same
from diagnose.record import record
from diagnose.units import Version


@record
class Need:
    """A key that must be set beside another: `to` its value, `add` an item that its list must hold."""

    key: str
    to: Any = None
    add: str = ""
    since: Version | None = None
    until: Version | None = None


@record
class Key:
    """One way in which a framework spells a knob, or (with an empty `key`) what the knob is when no key sets it.

    `since` and `until` are the first and last release of the framework that has it. `values` maps what is written to what it
    means ("*": anything else that is there). `takes` says how the text is read: whole, any (one of several words), part (of an
    allocator string: `part`), basename. `times` and `over` name keys whose values multiply or divide this one.
    """

    knob: str
    key: str
    version: str
    since: Version | None = None
    until: Version | None = None
    values: Mapping[str, str] | None = None
    default: str | None = None
    given: Mapping[str, tuple[str, ...]] | None = None  # a default only where these facts have one of these values
    needs: tuple[Need, ...] = ()
    takes: str = "whole"
    part: str = ""
    times: str = ""
    over: str = ""
    auto: tuple[float, int] | None = None  # what Hugging Face writes for "auto": factor and power of the hidden size
    within: str = ""  # the container whose presence makes the absence of the key say `default`
    always: bool = False  # the default holds whatever the config says: the framework sets it itself
    bare: bool = False  # a flag without a value
    cli: bool = False  # an argument of the framework's own entry point: a script has no class that takes it
    read_only: bool = False

    def covers(self, span: Span) -> bool | None:
        """Is this key one of the releases that `span` leaves possible? None: of some of them."""
        if (self.since and span.high and span.high < self.since) or (self.until and span.low and self.until < span.low):
            return False
        low = self.since is None or (span.low is not None and span.low >= self.since)
        high = self.until is None or (span.high is not None and span.high <= self.until)
        return True if low and high else None


@record
class Span:
    """The releases of a framework that are still possible; None: no bound known."""

    low: Version | None = None
    high: Version | None = None


@record
class Table:
    """One file of rules/frameworks, with what it inherits."""

    name: str
    version: str
    keys: tuple[Key, ...]
    known: frozenset[str]
    unknown: str  # what the framework does with a key that it does not know: dropped, rejected, or anything (it may be the script's own)
    detect: Mapping[str, Any]
    entries: Mapping[str, Mapping[str, str]]  # entry points and classes, and the knobs that they settle
    stock: Mapping[str, Mapping[str, str]]  # files that the framework ships, by base name, and the folder they lie in
    stock_folder: str
    ignored: tuple[Mapping[str, Any], ...]
    file_key: str  # the key that names the DeepSpeed file
    trainer: bool

    def of(self, knob: str) -> list[Key]:
        """The keys and defaults of a knob, first the ones that win."""
        return [key for key in self.keys if key.knob == knob]

    def named(self, key: str) -> list[Key]:
        """The knobs that a key turns."""
        return [entry for entry in self.keys if entry.key == key]

    @property
    def knobs(self) -> list[str]:
        return list(dict.fromkeys(key.knob for key in self.keys))


@cache
def names() -> tuple[str, ...]:
    """Every framework, the more particular first: who finds nothing of its own falls to a general one."""
    frameworks = shipped.table("frameworks")
    return tuple(sorted(frameworks, key=lambda name: (frameworks[name].get("rank", 1), name)))


def called(name: str) -> Text:
    """A framework as its people write it."""
    try:
        return phrase(f"adapters.framework_{name}")
    except KeyError:
        return same(name)


def signs(name: str) -> Mapping[str, Any]:
    """What a framework is recognised by; its keys, which take longer to build than to recognise it, are not needed for that."""
    return shipped.table("frameworks")[name].get("detect", {})  # type: ignore[no-any-return]


@cache
def releases() -> frozenset[str]:
    """Every fact that says which release a key is for."""
    found: set[str] = set()
    for name, raw in shipped.table("frameworks").items():
        own = raw.get("version", f"version.{name}")
        found.update(entry.get("version", own) for knob, entries in raw.items() if "." in knob for entry in entries)
    return frozenset(found)


@cache
def table(name: str) -> Table:
    """The table of a framework. Raises KeyError for a name that has none."""
    raw = shipped.table("frameworks")[name]
    base = table(raw["extends"]) if "extends" in raw else None
    version = raw.get("version", f"version.{name}")
    own = tuple(key for knob, entries in raw.items() if "." in knob for key in _keys(knob, entries, version))
    without = set(raw.get("without", ()))
    turned = {key.knob for key in own if key.key} | {key.knob for key in own if not key.key and key.given is None and not key.always}
    inherited = tuple(key for key in base.keys if key.knob not in turned and key.key not in without) if base else ()
    known = {word for block in raw.get("known", ()) for word in str(block).split()}
    known |= {key.key for key in own if key.key} | {key.times for key in own if key.times} | (set(base.known) if base else set())
    return Table(
        name=name,
        version=version,
        keys=own + inherited,
        known=frozenset(known - without),
        unknown=raw.get("unknown", base.unknown if base else "anything"),
        detect=signs(name),
        entries={**(base.entries if base else {}), **raw.get("entries", {})},
        stock={**(base.stock if base else {}), **raw.get("stock", {})},
        stock_folder=raw.get("stock_folder", base.stock_folder if base else ""),
        ignored=tuple(raw.get("ignored", base.ignored if base else ())),
        file_key=raw.get("file_key", base.file_key if base else ""),
        trainer=raw.get("trainer", False),
    )


def _keys(knob: str, entries: Iterable[Mapping[str, Any]], version: str) -> Iterator[Key]:
    for entry in entries:
        values = entry.get("values")
        yield Key(
            knob=knob,
            key=entry.get("key", ""),
            version=entry.get("version", version),
            since=_version(entry.get("since")),
            until=_version(entry.get("until")),
            values=None if values is None else {word_of(name): word_of(value) for name, value in values.items()},
            default=word_of(entry["default"]) if "default" in entry else None,
            given=_conditions(entry.get("if")),
            needs=tuple(_need(need) for need in entry.get("needs", ())),
            auto=tuple(entry["auto"]) if "auto" in entry else None,
            **{
                name: entry[name]
                for name in ("takes", "part", "times", "over", "within", "always", "bare", "cli", "read_only")
                if name in entry
            },
        )


def _conditions(given: Mapping[str, Any] | None) -> Mapping[str, tuple[str, ...]] | None:
    if given is None:
        return None
    return {name: tuple(word_of(word) for word in (words if isinstance(words, list) else [words])) for name, words in given.items()}


def _need(entry: Mapping[str, Any]) -> Need:
    return Need(entry["key"], entry.get("to"), entry.get("add", ""), _version(entry.get("since")), _version(entry.get("until")))


def _version(text: object) -> Version | None:
    return None if text is None else Version(str(text))


def word_of(value: object) -> str:
    """A scalar of a table as text: YAML's true is "true"."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def span(tab: Table, version: Version | None, present: Iterable[str]) -> Span:
    """The releases that a config can be for: the known one, else what its own spellings leave (a key that came late, one that went)."""
    if version is not None:
        return Span(version, finished(version))
    lows, highs = [], []
    there = set(present)
    for name in there:
        spellings = [key for key in tab.named(name) if key.version == tab.version]
        if spellings and all(key.since for key in spellings):
            lows.append(min(key.since for key in spellings if key.since))
        if spellings and all(key.until for key in spellings):
            highs.append(max(key.until for key in spellings if key.until))
    low, high = max(lows, default=None), min(highs, default=None)
    return Span() if low and high and high < low else Span(low, high)


def finished(version: Version) -> Version:
    """The release that a development version leads to: it may hold all of that release, or none of what is new in it."""
    match = re.match(r"[\d.]*\d(?=\.?(?:dev|a|b|rc))", version.text)
    return Version(match[0]) if match else version


#: Stands for a key that is there but says nothing about the knob.
NOTHING = object()


def meaning(key: Key, leaf: Leaf) -> Value | object:
    """What a written value means for the knob; NOTHING where it leaves the knob alone, None where it cannot be known.

    Raises ValueError where the knob's kind cannot hold it.
    """
    if leaf.shape == "unsure":
        return None
    if leaf.shape in ("null", "map") and not (key.values and "*" in key.values and leaf.shape == "map"):
        return NOTHING
    if key.takes == "any":
        return _any_of(key, leaf)
    text = _plain(key, leaf)
    if text is None:
        return NOTHING
    if key.values is not None:
        found = _looked_up(key.values, text)
        if found is None:
            words = (declared(key.knob) or _UNDECLARED).words
            if text.lower() in words and _switch_word(text) not in ("true", "false"):
                return _typed(key.knob, text.lower())
            if _switch_word(text) in ("true", "false") or text.lower() == "auto":
                return NOTHING
            raise ValueError(text)
        return NOTHING if found == "nothing" else _typed(key.knob, found)
    return _typed(key.knob, text)


def _looked_up(values: Mapping[str, str], text: str) -> str | None:
    folded = {name.lower(): word for name, word in values.items()}
    return folded.get(text.lower(), folded.get(_switch_word(text), folded.get("*")))


@record
class _Undeclared:
    words: tuple[str, ...] = ()
    kind: str = "text"


_UNDECLARED = _Undeclared()


def _plain(key: Key, leaf: Leaf) -> str | None:
    if leaf.shape == "flag":
        return None if key.takes == "basename" else "true"
    if leaf.shape == "list":
        return ",".join(leaf.items)
    text = leaf.text or ""
    if key.takes == "part":
        return allocator_option(text, key.part)
    if key.takes == "basename":
        return text.replace("\\", "/").rpartition("/")[2]
    return text


def _any_of(key: Key, leaf: Leaf) -> Value | object:
    words = leaf.items if leaf.shape == "list" and leaf.items else (leaf.text or "").replace(",", " ").split()
    for word in words:
        for name in (word, _switch_word(word)):
            for spelling, found in (key.values or {}).items():
                if spelling.lower() == name.lower():
                    return NOTHING if found == "nothing" else _typed(key.knob, found)
    return NOTHING


def allocator_option(text: str, name: str) -> str | None:
    """The value of one option of an allocator string such as `expandable_segments:True,max_split_size_mb:128`."""
    for option in text.replace(" ", "").split(","):
        found, _, value = option.partition(":")
        if found == name:
            return f"{value} MiB" if name.endswith("_mb") else value
    return None


def _switch_word(text: str) -> str:
    word = text.strip().lower()
    return "true" if word in YES else "false" if word in NO else word


def _count(knob: str, text: str) -> Value | object:
    """A count; -1, and 0 where none of something makes no sense, leave the knob as it is."""
    if text.strip().lower() in ("auto", ""):
        return NOTHING
    try:
        value = typed(knob, text)
    except Complaint as error:
        raise ValueError(text) from error
    if not isinstance(value, int):
        raise ValueError(text)
    return NOTHING if value < 0 or (value == 0 and knob.startswith(("train.", "parallel."))) else value


#: Characters of the longest path or name.
LONGEST = 4096


def _typed(knob: str, text: str) -> Value | object:
    entry = declared(knob)
    if entry is not None and entry.kind == "count":
        return _count(knob, text)
    if entry is not None and entry.kind == "word" and entry.words and text not in entry.words:
        raise ValueError(text)
    if entry is not None and entry.kind == "text":
        if len(text) > LONGEST:
            raise ValueError(text)
        return text or NOTHING
    try:
        return typed(knob, _switch_word(text) if entry is not None and entry.kind == "switch" else text)
    except Complaint as error:
        raise ValueError(text) from error
