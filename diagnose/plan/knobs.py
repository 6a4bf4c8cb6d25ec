"""A knob and its new value to edits of the user's own files: the tables of rules/frameworks read the other way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from diagnose.adapters import tables
from diagnose.adapters.settings import Document, Entry
from diagnose.adapters.tables import NOTHING, Key, Span, Table
from diagnose.adapters.translate import automatic, name_of
from diagnose.catalogue import model as catalogued
from diagnose.facts import FactBook, Value, declared
from diagnose.phrases import Text, phrase
from diagnose.plan.remedy import Edit
from diagnose.plan.spelling import exchanged, flagged, in_list, literal, merged, now, spelled, word_for
from diagnose.record import record


def edits(documents: Sequence[Document], book: FactBook, changes: Mapping[str, Value]) -> tuple[Edit, ...] | None:
    """The edits that give the knobs these values; None where a knob has no key here (`why_not` says which)."""
    made: list[Edit] = []
    for knob, value in changes.items():
        found = Bench(tuple(documents), book, changes).turn(knob, value)
        if found is None:
            return None
        made += [edit for edit in found if edit not in made]
    return tuple(made)


def why_not(documents: Sequence[Document], book: FactBook, changes: Mapping[str, Value]) -> Text | None:
    """Why `edits` has no answer; None where it has one."""
    if edits(documents, book, changes) is not None:
        return None
    names = dict.fromkeys(tables.called(document.framework).zh for document in documents)
    return phrase("adapters.no_key", framework=", ".join(names) or "-")


@record
class Bench:
    """The documents of one job, those that win first, and what is known about the releases they are for."""

    documents: tuple[Document, ...]
    book: FactBook
    changes: Mapping[str, Value]

    def turn(self, knob: str, value: Value) -> list[Edit] | None:
        """The edits for one knob: where it is set now, else where it can be added, else through the file that a key names."""
        setting = [document for document in self.documents if self._setters(document, knob)]
        for document in setting:
            if (made := self._reset(document, knob, value)) is not None:
                return made
        if setting:
            return None  # what is set there would win over what is added elsewhere
        if value is not None and self.book.value(knob) == value:
            return []
        for document in self._homes(knob):
            if (made := self._added(document, knob, value)) is not None:
                return made
        return self._another_file(knob, value)

    # -- where it is set

    def _setters(self, document: Document, knob: str) -> list[Entry]:
        return [entry for entry in document.entries if knob in entry.knobs]

    def _reset(self, document: Document, knob: str, value: Value) -> list[Edit] | None:
        """Change the key that sets the knob now, or put another key of the same framework in its place."""
        tab = tables.table(document.framework)
        current = self._setters(document, knob)
        ranked = sorted(current, key=lambda entry: self._rank(tab, knob, entry))
        for entry in ranked:
            key = next(key for key in tab.of(knob) if key.key == name_of(entry.key))
            if key.read_only:
                continue
            new = self.written(document, key, value, entry)
            if new is not None:
                changed = [] if new == entry.written and not flagged(entry) else [Edit(document.name, entry.key, now(entry), new)]
                if flagged(entry) and new == "true":
                    changed = []
                return [*changed, *self._silenced(document, knob, value, entry), *self._needed(document, key, value)]
        added = self._added(document, knob, value)
        if added is None and not self._off_is_enough(tab, knob, value):
            return None
        silenced = self._silenced(document, knob, value, None)
        return None if silenced is None else [*(added or []), *silenced]

    def _rank(self, tab: Table, knob: str, entry: Entry) -> int:
        return next((index for index, key in enumerate(tab.of(knob)) if key.key == name_of(entry.key)), 99)

    def _silenced(self, document: Document, knob: str, value: Value, keep: Entry | None) -> list[Edit]:
        """Other keys that turn the same knob elsewhere are switched off or taken out."""
        tab, made = tables.table(document.framework), []
        for entry in self._setters(document, knob):
            key = next(key for key in tab.of(knob) if key.key == name_of(entry.key))
            if entry is keep or _means(key, entry) == value:
                continue
            if keep is not None and key.read_only and self._rank(tab, knob, keep) < self._rank(tab, knob, entry):
                continue  # the key that was changed wins over it
            off = "false" if key.values and "true" in key.values and not flagged(entry) else None
            if off is not None and key.values and key.values.get("false") not in (None, "nothing"):
                off = None
            made.append(Edit(document.name, entry.key, now(entry), spelled(off, document.form) if off else None))
        return made

    def _off_is_enough(self, tab: Table, knob: str, value: Value) -> bool:
        """Nothing needs to be written where the wanted value is what holds without any key."""
        return any(key.default is not None and not key.given and _same(value, key.default) for key in tab.of(knob) if not key.within)

    # -- where it can be added

    def _homes(self, knob: str) -> list[Document]:
        """Documents whose framework has a key for the knob: DeepSpeed's own file for its knobs, the trainer's for the rest."""
        own = [document for document in self.documents if tables.table(document.framework).trainer]
        other = [document for document in self.documents if not tables.table(document.framework).trainer]
        files = sorted(other, key=lambda document: document.framework != "deepspeed") if knob.startswith("zero.") else other
        ordered = [*own, *files]
        return sorted(ordered, key=lambda document: document.form == "command")

    def _added(self, document: Document, knob: str, value: Value) -> list[Edit] | None:
        tab = tables.table(document.framework)
        span = self.span(document)
        keys = [key for key in tab.of(knob) if key.key and not key.read_only and key.takes not in ("any", "part", "basename")]
        usable = [key for key in keys if self._covered(key, span) is not False and _fits_form(document, key)]
        for key in sorted(
            usable, key=lambda key: self._covered(key, span) is not True
        ):  # a key of every possible release before one of some
            if any(name_of(entry.key) == key.key and knob in entry.knobs for entry in document.entries):
                continue
            new = self.written(document, key, value, None)
            if new is not None:
                present = next((entry for entry in document.entries if name_of(entry.key) == key.key), None)
                first = Edit(
                    document.name, present.key if present else _spelled_key(document, key.key), now(present) if present else None, new
                )
                return [first, *self._needed(document, key, value)]
        return None

    def _covered(self, key: Key, span: Span) -> bool | None:
        version = self.book.version(key.version)
        return key.covers(Span(version, tables.finished(version)) if version else span)

    def span(self, document: Document) -> Span:
        tab = tables.table(document.framework)
        return tables.span(tab, self.book.version(tab.version), [name_of(entry.key) for entry in document.entries])

    def _needed(self, document: Document, key: Key, value: Value) -> list[Edit]:
        """The keys that the table says must stand beside it, where it is switched on."""
        if value in (False, "disabled", "none") or not key.needs:
            return []
        span, made = self.span(document), []
        held = {name_of(entry.key): entry for entry in document.entries}
        for need in key.needs:
            covered = Key("", need.key, key.version, need.since, need.until).covers(span)
            if covered is False or (covered is None and need.until is not None):
                continue
            entry = held.get(need.key)
            if need.add:
                made += in_list(document, need.key, need.add, entry)
            elif entry is None or (not isinstance(need.to, (dict, list)) and entry.written.strip("\"'").lower() != tables.word_of(need.to)):
                written = literal(need.to, document.form)
                made.append(
                    Edit(document.name, entry.key if entry else _spelled_key(document, need.key), now(entry) if entry else None, written)
                )
        return made

    # -- where it lives in a file that was not given

    def _another_file(self, knob: str, value: Value) -> list[Edit] | None:
        """Name another of the files that the framework ships: the one that differs in this knob and is nearest otherwise."""
        for document in self.documents:
            tab = tables.table(document.framework)
            entry = next((entry for entry in document.entries if name_of(entry.key) == tab.file_key and tab.file_key), None)
            if entry is None or document.form == "command":
                continue
            path = entry.written.strip("\"'")
            folder, _, file = path.replace("\\", "/").rpartition("/")
            now, wanted = tab.stock.get(file), tables.word_of("cpu" if value == "cpu" else value)
            if now is None:
                return self._inside(path, knob, value)
            rivals = [
                name
                for name, held in tab.stock.items()
                if name != file and tables.word_of(held.get(knob, "")) == wanted and _no_worse(now, held, knob)
            ]
            if rivals:
                best = min(rivals, key=lambda name: sum(tab.stock[name].get(other) != word for other, word in now.items()))
                new = f"{folder}/{best}" if folder else best
                return [Edit(document.name, entry.key, entry.written, spelled(new, document.form))]
        return self._first_file()

    def _first_file(self) -> list[Edit] | None:
        """No file is named yet, so sharding begins with one: the simplest that the framework ships with all that is asked of it.
        Where it ships none the user's own file has to be written; no single key of it would do. One process has nobody to
        share with."""
        asked = {name: tables.word_of(value) for name, value in self.changes.items() if name.startswith("zero.")}
        if "zero.stage" not in asked or (self.book.count("parallel.world") or 1) < 2:
            return None
        for document in self.documents:
            tab = tables.table(document.framework)
            named = any(name_of(entry.key) == tab.file_key for entry in document.entries)
            if not tab.file_key or not tab.trainer or named:
                continue
            fitting = [
                name for name, held in tab.stock.items() if all(tables.word_of(held.get(knob, "")) == word for knob, word in asked.items())
            ]
            if not tab.stock:
                return []
            if fitting:
                new = spelled(f"{tab.stock_folder}/{fitting[0]}", document.form)
                return [Edit(document.name, _spelled_key(document, tab.file_key), None, new)]
        return None

    def _inside(self, path: str, knob: str, value: Value) -> list[Edit] | None:
        """The file is not known: say which key of it."""
        for key in tables.table("deepspeed").of(knob):
            if key.key and not key.read_only:
                document = Document(path, "deepspeed", "json", "", ())
                new = self.written(document, key, value, None)
                return None if new is None else [Edit(path, key.key, None, new)]
        return None

    # -- how it is written

    def written(self, document: Document, key: Key, value: Value, entry: Entry | None) -> str | None:
        """The value as it is written for this key in this form; None where the key cannot hold it."""
        if value is None:
            return None
        if key.auto and document.form == "json" and value == automatic(key, self._hidden()):
            return '"auto"'
        if key.times:
            value = self._per_unit(document, key, value)
            if value is None:
                return None
        if key.takes == "part":
            return merged(key, value, entry, document.form)
        word = word_for(key, value)
        if word is None:
            return None
        if key.takes == "any":
            return exchanged(key, word, entry)
        if key.takes == "basename" and entry is not None:
            folder = entry.written.strip("\"'").rpartition("/")[0]
            word = f"{folder}/{word}" if folder else word
        if key.bare and document.form in ("shell", "command"):
            return "true" if word == "true" else None
        entry_of = declared(key.knob)
        return spelled(word, document.form, entry_of.kind if entry_of else "text", entry)

    def _hidden(self) -> int | None:
        shape = self.book.shape("model.shape")
        path = self.book.word("model.path")
        shape = shape or (catalogued(path) if path else None)
        return shape.h if shape else None

    def _per_unit(self, document: Document, key: Key, value: Value) -> Value:
        other = next((entry.written for entry in document.entries if name_of(entry.key) == key.times), "1")
        units = int(other) if other.isdigit() else 0
        return value // units if isinstance(value, int) and units and value % units == 0 else None


def _no_worse(now: Mapping[str, Any], other: Mapping[str, Any], knob: str) -> bool:
    """The other file keeps the stage unless the stage is what is asked for."""
    return knob == "zero.stage" or now.get("zero.stage") == other.get("zero.stage")


def _means(key: Key, entry: Entry) -> Value | object:
    from diagnose.adapters.leaf import Leaf

    shape = "flag" if flagged(entry) else "scalar"
    leaf = Leaf(entry.key, entry.written.strip("\"'"), entry.written, entry.start, entry.end, entry.line, entry.column, shape)  # type: ignore[arg-type]
    try:
        return tables.meaning(key, leaf)
    except ValueError:
        return NOTHING


def _same(value: Value, word: str) -> bool:
    if isinstance(value, bool):
        return word in (("enabled", "true") if value else ("disabled", "false"))
    return str(value) == word


def _fits_form(document: Document, key: Key) -> bool:
    """Keyword arguments of a call exist only in scripts that make the call; bare keys of a script need a call to stand in."""
    call, dot, _ = key.key.partition(".")
    is_call = bool(dot) and (call in ("from_pretrained", "Trainer", "model_init_kwargs") or call[:1].isupper())
    if document.form != "python":
        return not is_call
    if key.cli:
        return False
    if call == "model_init_kwargs" and any(entry.key.startswith("from_pretrained.") for entry in document.entries):
        return False  # the script loads the model itself
    if is_call and call != "model_init_kwargs":
        return any(entry.key == call or entry.key.startswith(f"{call}.") for entry in document.entries)
    return any(entry.key.endswith("()") for entry in document.entries) or document.framework == "shell"


def _spelled_key(document: Document, key: str) -> str:
    """An option gets the dashes that its neighbours have."""
    if document.form not in ("shell", "command") or document.framework == "shell":
        return key
    others = [entry.key for entry in document.entries]
    if others and not any(other.startswith("-") for other in others):
        return key
    dashes = sum("-" in name.lstrip("-") for name in others) > len(others) / 2
    return f"--{key.replace('_', '-') if dashes else key}"
