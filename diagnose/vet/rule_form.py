"""Checks the form of a rule: fields, their order, id."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from diagnose import rule_files
from diagnose.vet import tables
from diagnose.vet.fault import Fault
from diagnose.vet.paper import Paper

if TYPE_CHECKING:
    from pydantic import TypeAdapter

#: What a field holds where it is not one text: a list of texts, texts by name, or a list of those.
LISTS = ("yields_to", "remedies", "symptom", "any", "none", "already", "where")
NAMED = ("given", "presume", "with", "title", "evidence", "put_right", "assuming", "price", "serving", "serving_in", "asks")
ENTRIES = ("examples", "not_when", "caveats")
PARTS = ("all", "any", "none")
STATUS = ("trial", "stable", "retired")


@cache
def schema(room: str) -> TypeAdapter[object]:
    """The schema of a folder's rules."""
    # Here and below: pydantic takes as long to import as a diagnosis; `rules list` and `rules show` do without.
    from pydantic import TypeAdapter

    from diagnose.vet.schemas import RULES

    return TypeAdapter(RULES[room])


@cache
def fields_of(room: str) -> Mapping[str, bool]:
    """The fields of a rule in order, and whether each is required."""
    from diagnose.vet.schemas import RULES

    return {field.alias or name: field.is_required() for name, field in RULES[room].model_fields.items()}


def check(paper: Paper) -> Iterator[Fault]:
    """All faults of form of one rule."""
    yield from fields(paper)
    yield from tables.faults(paper.file, schema(paper.room), paper.data, paper.lines, deeper_than=1)
    yield from order(paper)
    yield from words(paper)
    yield from forms(paper)
    yield from conditions(paper)


def usable(paper: Paper) -> bool:
    """Whether the rule is well-formed enough for the other checks."""
    return all(field in paper.data for field, needed in fields_of(paper.room).items() if needed) and not [*forms(paper), *conditions(paper)]


def fields(paper: Paper) -> Iterator[Fault]:
    """Every field is known, and no required one is missing."""
    allowed = list(fields_of(paper.room))
    for field in paper.data:
        if field not in allowed:
            near = difflib.get_close_matches(field, allowed, 1)
            yield paper.fault((field,), "unknown_field" if not near else "unknown_field_near", field=field, near="".join(near))
    for field, needed in fields_of(paper.room).items():
        if needed and not paper.data.get(field):
            yield paper.fault((), "missing_field", field=field)


def order(paper: Paper) -> Iterator[Fault]:
    """Fields are in the standard order, which readers of many rules rely on."""
    allowed = list(fields_of(paper.room))
    places = [(allowed.index(field), field) for field in paper.data if field in allowed]
    for (earlier, line_before), (later, field) in pairwise(places):
        if later < earlier:
            yield paper.fault((field,), "field_order", field=field, before=line_before)


def words(paper: Paper) -> Iterator[Fault]:
    """The id is the file's name, and cause, remedies and the like are words of the vocabulary."""
    if paper.room != "versions" and paper.data.get("id") != paper.name:
        yield paper.fault(("id",), "id_is_not_file", id=str(paper.data.get("id")), file=paper.name)
    if paper.data.get("status", "stable") not in STATUS:
        yield paper.fault(("status",), "unknown_word", word=str(paper.data["status"]), known=", ".join(STATUS))
    vocabulary = rule_files.table("vocabulary")
    if paper.room == "causes" and paper.data.get("cause") not in vocabulary["cause"]:
        word = str(paper.data.get("cause"))
        yield paper.fault(("cause",), "unknown_word", word=word, known=nearest(word, vocabulary["cause"]))
    if paper.room == "remedies" and paper.data.get("remedy") not in remedy_words():
        yield paper.fault(
            ("remedy",), "unknown_word", word=str(paper.data.get("remedy")), known=nearest(str(paper.data.get("remedy")), remedy_words())
        )


def forms(paper: Paper) -> Iterator[Fault]:
    """Lists are lists, and mappings are mappings."""
    for field, value in paper.data.items():
        if field in LISTS and not (isinstance(value, list) and all(isinstance(entry, str) for entry in value)):
            yield paper.fault((field,), "not_a_list", field=field)
        if field in NAMED and not isinstance(value, Mapping):
            yield paper.fault((field,), "not_named", field=field)
        if field in ENTRIES and not (isinstance(value, list) and all(isinstance(entry, Mapping) for entry in value)):
            yield paper.fault((field,), "not_entries", field=field)
    for index, example in enumerate(paper.data.get("examples", ())):
        if isinstance(example, Mapping) and not isinstance(example.get("with", {}), Mapping):
            yield paper.fault(("examples", index), "not_named", field="with")


def conditions(paper: Paper) -> Iterator[Fault]:
    """`when` consists of three flat lists of conditions. Nested ones would be two causes, or a missing fact."""
    if paper.room != "causes":
        return
    when = paper.data.get("when")
    if not isinstance(when, Mapping):
        yield paper.fault(("when",), "when_form")
        return
    for part, lines in when.items():
        flat = isinstance(lines, list) and all(isinstance(line, str) for line in lines)
        if part not in PARTS or not flat or not lines:
            yield paper.fault(("when", part), "when_form")


def remedy_words() -> set[str]:
    """Every remedy of the vocabulary."""
    groups: Mapping[str, Sequence[str]] = rule_files.table("vocabulary")["remedy"]
    return {word for group in groups.values() for word in group}


def nearest(word: str, words: Iterable[str]) -> str:
    """Similar words to suggest, or the file that lists all."""
    return ", ".join(difflib.get_close_matches(word, list(words), 3)) or "rules/vocabulary.yaml"


def texts(data: object) -> bool:
    """Whether a value is a text in both languages."""
    return isinstance(data, Mapping) and all(isinstance(data.get(lang), str) and data[lang].strip() for lang in ("en", "zh"))
