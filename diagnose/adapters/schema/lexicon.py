"""Reads keys of unknown programs by their spelling (rules/lexicon.yaml): `batch_size` is a batch wherever it stands."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from diagnose import rule_files
from diagnose.adapters.formats.config_value import MAX_DEPTH, Leaf
from diagnose.adapters.schema.table_types import Key, Table
from diagnose.adapters.schema.value_meaning import NOTHING, meaning
from diagnose.catalogue import model
from diagnose.facts import Value
from diagnose.word_conditions import word_of

#: The name under which documents that were read so have their table.
NAME = "lexicon"
#: Keys, imports and launchers that have to show that a document trains or runs a model, so that more than these is read of it.
NEEDED = 2
#: Values that switch something off. They say less than a key beside them that switches it on.
_OFF = (False, "disabled", "none", "fp32")
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")
_HYDRA_DEFAULT = re.compile(r"defaults\.\d")
_INTEGER = re.compile(r"\d{1,7}(?:\.0+)?")
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]*[A-Za-z][\w.-]*")
_FILE_ENDING = re.compile(r"\.(?:pt|pth|ckpt|bin|pkl|h5|onnx|yaml|yml|json|py|npz|tar|txt|msgpack)$")


@dataclass(slots=True)
class Guess:
    """A key that means a knob by its name. `implied`: it follows from what the key means."""

    leaf: Leaf
    knob: str
    value: Value
    implied: bool = False


@dataclass(slots=True)
class _Row:
    """A row of the lexicon: names that mean one knob, how their values are read, and where they mean something else."""

    key: Key
    place: int
    names: frozenset[str]
    raw: Mapping[str, Any]

    def words(self, condition: str) -> Collection[str]:
        return self.raw.get(condition, ())  # type: ignore[no-any-return]


@dataclass(slots=True)
class _Name:
    """What a key is called: its possible spellings, most particular first, the words of the path that it stands in, and the scope that the
    nearest of them names."""

    spellings: tuple[str, ...]
    path: frozenset[str]
    scope: str


@dataclass(slots=True)
class _Candidate:
    leaf: Leaf
    row: _Row
    value: Value
    knob: str
    scope: str

    @property
    def rank(self) -> tuple[bool, int, bool]:
        """Its place among the candidates of a knob, the best first."""
        return self.value in _OFF and self.value is not None, self.row.place, self.scope != "training"


@cache
def _lexicon() -> Mapping[str, Any]:
    return rule_files.table("lexicon")  # type: ignore[no-any-return]


@cache
def _scopes() -> Mapping[str, str]:
    return {word: scope for scope, words in _lexicon()["scopes"].items() for word in words}


@cache
def _rows() -> Mapping[str, Sequence[_Row]]:
    """The rows by the names that they list."""
    by_name: dict[str, list[_Row]] = {}
    for knob, entries in _lexicon()["spellings"].items():
        for place, raw in enumerate(entries):
            values = raw.get("values")
            translated = None if values is None else {word_of(name): word_of(value) for name, value in values.items()}
            takes = "many" if raw.get("takes") == "many" else "whole"
            key = Key(knob, "", "", values=translated, takes=takes, own=True, read_only=raw.get("takes") in ("largest", "many"))
            row = _Row(key, place, frozenset(raw["names"].split()), raw)
            for name in row.names:
                by_name.setdefault(name, []).append(row)
    return by_name


@cache
def _everywhere() -> frozenset[str]:
    return frozenset(_lexicon()["everywhere"].split())


@cache
def _showing() -> frozenset[str]:
    return frozenset(_lexicon()["shows"].split())


def shows_training(text: str) -> bool:
    """Whether this is a library that nothing but a model's program imports, by its top-level name."""
    return text in _lexicon()["libraries"]


def names_training(program: str) -> bool:
    """Whether the name of a program says that it trains or runs a model."""
    return not {word.lower() for word in _WORD.split(program.rpartition("/")[2])}.isdisjoint(_lexicon()["programs"])


def is_common(key: str) -> bool:
    """Whether programs of all kinds have a key of this name in such a block, so that it tells no framework from another."""
    *blocks, _ = key.split(".")
    if any(block not in _lexicon()["blocks"] for block in blocks):
        return False
    return any(spelling in _rows() or spelling in _showing() or spelling in _everywhere() for spelling in _spelled(key).spellings)


def guesses(leaves: Sequence[Leaf], shown: int = 0) -> list[Guess]:
    """The knobs that a document's keys mean by their names, a key for each knob.

    `shown` counts what besides the keys shows that the document trains or runs a model. Where too little does, nothing is read.
    """
    named = [(leaf, _spelled(leaf.key)) for leaf in leaves if leaf.shape != "map" and not _HYDRA_DEFAULT.match(leaf.key)]
    present = {spelling: False for _, name in named for spelling in name.spellings}
    present.update((spelling, True) for leaf, name in named if leaf.shape != "null" for spelling in name.spellings)
    candidates = [candidate for leaf, name in named for candidate in _candidates(leaf, name, present)]
    shown += len(present.keys() & _showing()) + len({id(candidate.row) for candidate in candidates if candidate.row.raw.get("shows")})
    if shown < NEEDED:
        return []
    decided = list(_decided(candidates))
    return decided + _implied(decided, candidates, present)


def _candidates(leaf: Leaf, name: _Name, present: Mapping[str, bool]) -> Iterator[_Candidate]:
    """What a key may mean; of several spellings the most particular one that means anything."""
    if any(_scopes().get(word) == "foreign" for word in name.path):
        return
    for spelling in name.spellings:
        is_read = False
        for row in _rows().get(spelling, ()):
            knob = row.raw.get("evaluation") if name.scope == "evaluation" else row.key.knob
            if knob is None or not _holds(row, leaf, name.path, present):
                continue
            value = _value(row, leaf)
            if value is not None:
                is_read = True
                yield _Candidate(leaf, row, value, knob, name.scope)
        if is_read:
            return


def _holds(row: _Row, leaf: Leaf, path: Collection[str], present: Mapping[str, bool]) -> bool:
    """Whether the surroundings of a key allow this meaning. `present`: the names in the document, and whether they have a value."""
    if row.raw.get("option") and not (leaf.option or leaf.key.startswith("-")):
        return False
    if leaf.key.count(".") > row.raw.get("depth", MAX_DEPTH):
        return False
    if row.words("under") and not any(word in path for word in row.words("under")):
        return False
    if row.words("beside") and not any(present.get(word) for word in row.words("beside")):
        return False
    return not any(word in path for word in row.words("outside")) and not any(word in present for word in row.words("without"))


def _value(row: _Row, leaf: Leaf) -> Value:
    """The value of the row's knob that is written; None where it is none or lies outside the row's limits."""
    takes = row.raw.get("takes", "")
    if takes == "model":
        return _model_name(leaf)
    if takes == "largest":
        leaf = _largest(leaf)
    try:
        value = meaning(row.key, leaf)
    except ValueError:
        return None
    if value is NOTHING or value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and not row.raw.get("least", 0) <= value <= row.raw.get("most", 10**15):
        return None
    return value  # type: ignore[return-value]


def _model_name(leaf: Leaf) -> str | None:
    """A model's name on the hub, or one that the catalogue knows; None for files and for architectures of other libraries."""
    text = leaf.text or ""
    if leaf.shape != "scalar" or _FILE_ENDING.search(text) or " " in text:
        return None
    return text if _HUB_NAME.fullmatch(text) or (text and model(text) is not None) else None


def _largest(leaf: Leaf) -> Leaf:
    """A list of sizes as its largest, `(640, 800)` and `640x800` as well."""
    texts = leaf.items or re.split(r"[\s,()\[\]x*]+", (leaf.text or "").strip("()[] "))
    numbers = [text for text in texts if text]
    if leaf.shape not in ("scalar", "list") or not numbers or not all(_INTEGER.fullmatch(text) for text in numbers):
        return leaf
    return replace(leaf, shape="scalar", text=str(max(int(float(text)) for text in numbers)), items=())


def _decided(candidates: Iterable[_Candidate]) -> Iterator[Guess]:
    """The best candidate of each knob, unless another as good differs."""
    by_knob: dict[str, list[_Candidate]] = {}
    for candidate in candidates:
        by_knob.setdefault(candidate.knob, []).append(candidate)
    for own in list(by_knob.values()):
        best = min(own, key=lambda candidate: candidate.rank)
        for candidate in own:  # a batch beside a micro batch is the whole batch
            whole = candidate.row.raw.get("smaller")
            if whole and candidate.knob == candidate.row.key.knob and "smaller" not in best.row.raw:
                by_knob.setdefault(whole, []).append(candidate)
    for knob, own in by_knob.items():
        rank = min(candidate.rank for candidate in own)
        equals = [candidate for candidate in own if candidate.rank == rank]
        if equals[0].row.raw.get("merged"):  # height and width: the longer side
            equals = [max(equals, key=lambda candidate: candidate.value)]  # type: ignore[arg-type, return-value]
        if all(candidate.value == equals[0].value for candidate in equals):
            yield Guess(equals[0].leaf, knob, equals[0].value)


def _implied(decided: Sequence[Guess], candidates: Iterable[_Candidate], present: Collection[str]) -> list[Guess]:
    """What follows from the knobs that are read: a rank of adapters in a file says that adapters are trained."""
    rows = {(id(candidate.leaf), candidate.knob): candidate.row for candidate in candidates}
    knobs = {guess.knob for guess in decided}
    result = []
    for guess in decided:
        row = rows.get((id(guess.leaf), guess.knob))
        if row is not None and not guess.leaf.option and not any(name in present for name in row.words("unless")):
            result += [Guess(guess.leaf, knob, value, True) for knob, value in row.raw.get("implies", {}).items() if knob not in knobs]
    return result


# -- names


def _spelled(key: str) -> _Name:
    parts = [_split(part) for part in key.lstrip("-+").split(".") if part and not part.isdecimal()]
    own = parts[-1] if parts else []
    scoped = [word for word in own if word in _scopes()]
    bare = [word for word in own if word not in _scopes()] or own
    spellings = ["_".join(own), "_".join(bare)]
    if len(parts) > 1:
        block = [word for word in parts[-2] if word not in _scopes()]
        spellings = [*([f"{'_'.join(block)}_{'_'.join(bare)}"] if block else ()), *spellings]
        if "_".join(own) in _lexicon()["containers"]:
            spellings += ["_".join(parts[-2]), *(["_".join(block)] if block else ())]
    if bare[0:1] and bare[0] in _lexicon()["qualifiers"] and len(bare) > 1:
        spellings.append("_".join(bare[1:]))
    path = [*scoped, *(word for part in reversed(parts[:-1]) for word in part)]
    return _Name(tuple(dict.fromkeys(spellings)), frozenset(path), next((_scopes()[word] for word in path if word in _scopes()), ""))


def _split(part: str) -> list[str]:
    """The words of one part of a path, in small letters."""
    return [word.lower() for word in _WORD.split(part) if word]


# -- the table by which edits are spelled


class LexiconTable(Table):
    """The lexicon as a table: its keys are changed where they stand and never added."""

    def rows(self, knob: str, name: str) -> Sequence[Key]:
        spellings = _spelled(name).spellings
        by_spelling = (row for spelling in spellings for row in _rows().get(spelling, ()))
        return [
            replace(row.key, key=name) for row in by_spelling if knob in (row.key.knob, row.raw.get("evaluation"), row.raw.get("smaller"))
        ]


@cache
def table() -> LexiconTable:
    return LexiconTable(
        name=NAME,
        version="",
        keys=(),
        unknown="anything",
        load_known=frozenset,
        detect={},
        entries={},
        stock={},
        stock_folder="",
        ignored=(),
        file_key="",
        config_keys=frozenset(),
        trainer=False,
        role="plain",
    )
