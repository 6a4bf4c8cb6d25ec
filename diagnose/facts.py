"""Facts about a job: their declared kinds, values, origins and witnesses, and the `FactBook` that holds them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import PurePath
from typing import Any, Literal, TypeAlias

from diagnose import rule_files
from diagnose.catalogue import Model, model
from diagnose.errors import user_error
from diagnose.phrases import Text
from diagnose.records import NamedTuple
from diagnose.units import Size, Version, size_of

Kind = Literal["size", "count", "ratio", "word", "switch", "version", "text", "shape"]
Origin = Literal["given", "log", "config", "catalogue", "derived", "guessed", "said", "default"]
#: By kind. size: Size; count: int; ratio: float; word, text: str, or Text where people call it otherwise in each language;
#: switch: bool; version: Version; shape: Model; None: unknown
Value: TypeAlias = "Size | int | float | str | bool | Version | Model | Text | None"

#: Precedence of origins, lowest first. A log shows what ran, a config what was meant to; a guess rests on the name of a key whose program
#: is unknown (rules/lexicon.yaml). What a person writes beside them (rules/prose.yaml) only replaces what is presumed.
RANK: dict[Origin, int] = {"given": 0, "log": 1, "config": 2, "catalogue": 3, "derived": 4, "guessed": 5, "said": 6, "default": 7}

#: Origins that something else has to confirm before figures are built on them.
UNCONFIRMED: tuple[Origin, ...] = ("guessed",)

#: Upper bound of plausible numbers; a larger one is a typing error.
MOST = 10**15


class Witness(NamedTuple):
    """Where something is known from: a line of an input, a key of a file, or one of "catalogue", "default", "given", "derived" with an
    explaining text. `line` and `column` are 1-based; 0: none."""

    source: str
    line: int = 0
    column: int = 0
    text: str = ""
    key: str = ""


def file_of(source: str) -> str:
    """The file that an input is, or is a block of, without its folders."""
    file = source.partition("#block-")[0]
    return PurePath(file).name or file


class Fact(NamedTuple):
    """A value with its origin and witness. `refines`: it replaces an earlier fact of the same origin (a card's key for its printed
    name)."""

    name: str
    value: Value
    origin: Origin
    witness: Witness
    refines: bool = False


class Notice(NamedTuple):
    """A remark to the reader that is no fact about the run: an unusable file, a message not fully understood."""

    level: Literal["info", "warning", "error"]
    code: str
    message: Text
    witness: Witness | None = None


class Input(NamedTuple):
    """A file or text of the caller and its recognised kind: log, wandb, a kind of config, or unknown."""

    name: str
    kind: str
    bytes: int
    lines: int
    encoding: str
    notes: tuple[str, ...] = ()


class Declared(NamedTuple):
    """The declaration of a fact (rules/facts.yaml) or knob (rules/knobs.yaml)."""

    name: str
    kind: Kind
    by: str  # the package that produces it; "adapters" for every knob
    en: str
    zh: str
    words: tuple[str, ...] = ()
    how: Mapping[str, str] | None = None
    ask: Mapping[str, str] | None = None  # the question for it, where its name alone makes none
    answers: tuple[str, ...] = ()  # the words that the question offers, where more are accepted
    package: str = ""  # of a release: what pip calls the library, where that is another name
    trainer: bool = False  # of a release: a log that prints it is one of this framework

    @property
    def is_knob(self) -> bool:
        return self.name in rule_files.table("knobs")


@cache
def declared(name: str) -> Declared | None:
    """The declaration of a fact or knob; None if there is none."""
    for file, producer in (("facts", ""), ("knobs", "adapters")):
        entry = rule_files.table(file).get(name)
        if entry is not None:
            return Declared(
                name,
                entry["kind"],
                entry.get("by", producer),
                entry["en"],
                entry["zh"],
                _words(entry),
                entry.get("how"),
                entry.get("ask"),
                tuple(entry.get("answers", ())),
                entry.get("package", ""),
                entry.get("trainer", False),
            )
    return None


def _words(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """The allowed words of a fact: listed, or a part of the vocabulary (`of`)."""
    return tuple(rule_files.table("vocabulary")[entry["of"]] if "of" in entry else entry.get("words", ()))


def library_of(package: str) -> str:
    """The library that a package installs, as version.NAME has it; mostly they have one name."""
    return _libraries().get(package, package)


@cache
def _libraries() -> dict[str, str]:
    return {entry["package"]: name.removeprefix("version.") for name, entry in rule_files.table("facts").items() if "package" in entry}


def names() -> list[str]:
    """All declared names."""
    return [*rule_files.table("facts"), *rule_files.table("knobs")]


def require_declared(name: str) -> Declared:
    """The declaration of a fact or knob. Raises UserError, suggesting the nearest name, if there is none."""
    entry = declared(name)
    if entry is None:
        import difflib

        suggestions = difflib.get_close_matches(name, names(), 1)
        raise user_error("no_such_fact", hint="did_you_mean" if suggestions else "see_facts", name=name, near="".join(suggestions))
    return entry


#: Characters of the longest path, name or list that a config or an option may give, and of one that a message quotes.
MAX_TEXT, _QUOTED = 4096, 80


def typed(name: str, text: str) -> Value:
    """Parse the value of a fact by its declared kind; "unknown" is None.

    Raises UserError for an undeclared name or a text that is no value of the kind.
    """
    entry = require_declared(name)
    text = text.strip()
    if text.lower() in ("unknown", "null", "none") and not (entry.kind == "word" and text.lower() in entry.words):
        return None
    try:
        return _READ[entry.kind](text)
    except (ValueError, OverflowError) as error:
        raise user_error("wrong_kind", hint=f"kind_{entry.kind}", name=name, kind=entry.kind, text=quoted(text)) from error


def quoted(text: str) -> str:
    """A text in quotes, cut off where a message about it would be all text."""
    return repr(text if len(text) <= _QUOTED else f"{text[:_QUOTED]}...")


def _size(text: str) -> Size:
    size = size_of(text)
    if size is None:
        raise ValueError(text)
    return size


def _count(text: str) -> int:
    number = _ratio(text.replace("_", "").replace(",", ""))
    if number != int(number):
        raise ValueError(text)
    return int(number)


def _ratio(text: str) -> float:
    number = float(text)
    if not abs(number) <= MOST:  # nan as well
        raise ValueError(text)
    return number


def _switch(text: str) -> bool:
    word = text.lower()
    if word in ("enabled", "true", "yes", "on", "1"):
        return True
    if word in ("disabled", "false", "no", "off", "0"):
        return False
    raise ValueError(text)


def _shape(text: str) -> Model:
    shape = model(text)
    if shape is None:
        raise ValueError(text)
    return shape


_READ: dict[Kind, Callable[[str], Value]] = {
    "size": _size,
    "count": _count,
    "ratio": _ratio,
    "word": str,
    "switch": _switch,
    "version": Version,
    "text": str,
    "shape": _shape,
}


def _is_figure(value: Value) -> bool:
    return isinstance(value, (int, float, Size)) and not isinstance(value, bool)


class FactBook:
    """Facts by name. The origin of highest precedence (`RANK`) wins, and within an origin the fact learned first."""

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        self._facts: list[Fact] = []
        self._best: dict[str, Fact] = {}
        self.learn(facts)

    def learn(self, facts: Iterable[Fact]) -> FactBook:
        for fact in facts:
            self._facts.append(fact)
            best = self._best.get(fact.name)
            if best is None or RANK[fact.origin] < RANK[best.origin] + fact.refines:
                self._best[fact.name] = fact
        return self

    def changed(self, values: Mapping[str, Value]) -> FactBook:
        """A copy in which these facts have other values, for what-if calculations."""
        book = FactBook()
        book._facts = self._facts
        book._best = {
            **self._best,
            **{name: Fact(name, value, "given", Witness("given", text="what if")) for name, value in values.items()},
        }
        return book

    def confirmed(self) -> FactBook:
        """A copy in which figures that are only guessed are unknown; no default takes their place. (A key that is called `use_lora` leaves
        little to doubt; one that is called `batch_size` may count another thing, unless something else says the same figure.)"""
        said = {(fact.name, fact.value) for fact in self._facts if fact.origin not in UNCONFIRMED and _is_figure(fact.value)}
        weak = {
            name: None
            for name, fact in self._best.items()
            if fact.origin in UNCONFIRMED and _is_figure(fact.value) and (name, fact.value) not in said
        }
        return self.changed(weak) if weak else self

    def fact(self, name: str) -> Fact | None:
        return self._best.get(name)

    def value(self, name: str) -> Value:
        fact = self._best.get(name)
        return None if fact is None else fact.value

    # The typed accessors return None for unknown facts and for values of another type.
    def size(self, name: str) -> Size | None:
        value = self.value(name)
        return value if isinstance(value, Size) else None

    def count(self, name: str) -> int | None:
        value = self.value(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def ratio(self, name: str) -> float | None:
        value = self.value(name)
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None

    def word(self, name: str) -> str | None:
        value = self.value(name)
        return value if isinstance(value, str) else None

    def switch(self, name: str) -> bool | None:
        value = self.value(name)
        return value if isinstance(value, bool) else None

    def version(self, name: str) -> Version | None:
        value = self.value(name)
        return value if isinstance(value, Version) else None

    def shape(self, name: str) -> Model | None:
        value = self.value(name)
        return value if isinstance(value, Model) else None

    def all(self, name: str) -> list[Fact]:
        """All facts of a name in the order learned (there may be several of config.unknown_key)."""
        return [fact for fact in self._facts if fact.name == name]

    def __contains__(self, name: str) -> bool:
        return name in self._best

    def __iter__(self) -> Iterator[Fact]:
        return iter(self._facts)


def derived_fact(name: str, value: Value, formula: str) -> Fact:
    """A fact derived from other facts; the formula is its witness."""
    return Fact(name, value, "derived", Witness("derived", text=formula))
