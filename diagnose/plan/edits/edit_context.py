"""What one job's edits are made from: its documents, what is known of its releases, and how a value is written for a key."""

from __future__ import annotations

from collections.abc import Mapping

from diagnose.adapters.formats.settings import Document, Entry
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.schema.spellings import Key
from diagnose.adapters.translate.translation import auto_value, name_of
from diagnose.catalogue import model as catalogued
from diagnose.facts import Fact, FactBook, Value, Witness, declared
from diagnose.plan.edits.key_fitting import spelled_key
from diagnose.plan.edits.value_spelling import exchanged, in_list, literal, merged, now, spelled, word_for
from diagnose.plan.rules.remedy import Edit
from diagnose.record import record
from diagnose.release_spans import ReleaseSpan
from diagnose.word_conditions import word_of


@record
class Desk:
    """The documents of one job, those that win first, what is known about the releases they are for, and all that is to change."""

    documents: tuple[Document, ...]
    book: FactBook
    changes: Mapping[str, Value]

    def setters(self, document: Document, knob: str) -> list[Entry]:
        return [entry for entry in document.entries if knob in entry.knobs]

    def covered(self, key: Key, span: ReleaseSpan) -> bool | None:
        if key.entry and not any(key.reads(str(fact.value)) for fact in self.entry_points()):
            return False
        version = self.book.version(key.version)
        return key.releases.covers(ReleaseSpan(version, framework_tables.final_release(version)) if version else span)

    def entry_points(self) -> list[Fact]:
        """The entry points of the job that settle what is trained; one that says nothing where none does."""
        framework = self.book.word("train.framework") or ""
        tab = framework_tables.table(framework) if framework in framework_tables.names() else None
        found = [fact for fact in self.book.all("train.entry") if tab is not None and tab.deciding(str(fact.value))]
        return found or [Fact("train.entry", "", "derived", Witness("derived"))]

    def plus(self, document: Document, key: Key) -> str:
        """Hydra's sign for a key that the framework's own configuration does not hold, or may not."""
        low = self.span(document).low
        return "++" if key.struct and document.form in ("shell", "command") and (low is None or low < key.struct) else ""

    def span(self, document: Document) -> ReleaseSpan:
        tab = framework_tables.table(document.framework)
        return framework_tables.possible_releases(
            tab, self.book.version(tab.version), [name_of(entry.key) for entry in document.entries if entry.key[:1] != "+"]
        )

    def needed(self, document: Document, key: Key, value: Value) -> list[Edit]:
        """The keys that the table says must stand beside it, where it is switched on."""
        if value in (False, "disabled", "none") or not key.needs:
            return []
        span, made = self.span(document), []
        held = {name_of(entry.key): entry for entry in document.entries}
        for need in key.needs:
            covered = need.releases.covers(span)
            if covered is False or (covered is None and need.releases.high is not None):
                continue
            entry = held.get(need.key)
            if need.add:
                made += in_list(document, need.key, need.add, entry)
            elif entry is None or (not isinstance(need.to, (dict, list)) and entry.written.strip("\"'").lower() != word_of(need.to)):
                bare = (
                    need.to is True
                    and document.form in ("shell", "command")
                    and framework_tables.table(document.framework).switch(need.key)
                )
                written = "" if bare else literal(need.to, document.form)
                name = entry.key if entry else f"{self.plus(document, key)}{spelled_key(document, need.key)}"
                made.append(Edit(document.name, name, now(entry) if entry else None, written))
        return made

    # -- how it is written

    def written(self, document: Document, key: Key, value: Value, entry: Entry | None) -> str | None:
        """The value as it is written for this key in this form; None where the key cannot hold it."""
        if value is None:
            return None
        if key.auto and document.form == "json" and value == auto_value(key, self._hidden()):
            return '"auto"'
        if key.times:
            value = self.per_unit(document, key, value)
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

    def per_unit(self, document: Document, key: Key, value: Value) -> Value:
        around = [entry for one in (document, *self.documents) if one.framework == document.framework for entry in one.entries]
        units = 1
        for name, presumed in framework_tables.factors(key.times):
            other = next((entry.written for entry in around if name_of(entry.key) == name), str(presumed or 1))
            units *= int(other) if other.isdigit() and len(other) < 8 else 0
        return value // units if isinstance(value, int) and units and value % units == 0 else None
