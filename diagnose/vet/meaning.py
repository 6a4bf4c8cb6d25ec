"""Checks the conditions of a rule: facts exist, kinds agree, words are possible values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from diagnose import facts, rule_files
from diagnose.decide import expression
from diagnose.decide.comparison import check_words, kind_of
from diagnose.decide.rule_outcome import ESTIMATE, MOST
from diagnose.errors import UserError
from diagnose.phrases import Text
from diagnose.vet.fault import Fault
from diagnose.vet.paper import Paper

Place = tuple[str | int, ...]


def lines(paper: Paper) -> Iterator[tuple[Place, str]]:
    """Every condition of a rule with its place."""
    if paper.room == "causes":
        for part, entries in paper.data["when"].items():
            yield from ((("when", part, index), line) for index, line in enumerate(entries))
    elif paper.room == "versions":
        for part in ("symptom", "any", "none"):
            yield from (((part, index), line) for index, line in enumerate(paper.data.get(part, ())))
    else:
        yield from ((("where", index), line) for index, line in enumerate(paper.data.get("where", ())))
        for field in ("not_when", "caveats"):
            for index, entry in enumerate(paper.data.get(field, ())):
                condition = entry.get("if", ()) if isinstance(entry, Mapping) else ()
                for line in [condition] if isinstance(condition, str) else condition:
                    yield (field, index, "if"), line


def check(paper: Paper) -> Iterator[Fault]:
    """Every condition parses, compares comparable kinds, and names possible values."""
    for place, line in lines(paper):
        try:
            comparison = expression.parse(line)
            kind_of(comparison)
            check_words(comparison)
        except UserError as error:
            yield paper.says(place, _said(error))
    yield from values(paper)
    yield from bytes_named(paper)


def values(paper: Paper) -> Iterator[Fault]:
    """Values under `presume`, `given` and `with` are possible values of their facts."""
    places: list[tuple[Place, Mapping[str, str]]] = [((field,), paper.data.get(field, {})) for field in ("presume", "given")]
    examples = paper.data.get("examples", ()) if paper.room != "remedies" else ()
    places += [(("examples", index, "with"), example.get("with", {})) for index, example in enumerate(examples)]
    for place, entries in places:
        for name, text in entries.items():
            try:
                facts.typed(name, "0 GiB" if place == ("presume",) and text in (ESTIMATE, MOST) else text)
            except UserError as error:
                yield paper.says((*place, name), _said(error))


def bytes_named(paper: Paper) -> Iterator[Fault]:
    """`accounts_for` is an amount of bytes."""
    if "accounts_for" not in paper.data or paper.room == "remedies":
        return
    try:
        node = expression.parse_sum(paper.data["accounts_for"])
        if kind_of(expression.Comparison(node, ">=", expression.Figure("size", "0 B"))) != "size":
            yield paper.fault(("accounts_for",), "not_bytes")
    except UserError as error:
        yield paper.says(("accounts_for",), _said(error))


def producible(papers: Sequence[Paper]) -> Iterator[Fault]:
    """Every fact in a condition can be produced, by the package that declares it or by an option."""
    for paper in papers:
        for place, line in lines(paper):
            try:
                fact_names = list(expression.names(expression.parse(line)))
            except UserError:
                continue  # reported already
            for name in fact_names:
                if facts.declared(name) is not None and not produced(name):
                    yield paper.fault(place, "never_produced", name=name)


@cache
def produced(name: str) -> bool:
    """Whether anything produces this fact: a framework table, the package named in its declaration, or the user."""
    entry = facts.declared(name)
    if entry is None:
        return False
    if entry.by == "given" or name in rule_files.table("knobs"):
        return True
    text = _sources(entry.by)
    stem, _, field = name.partition(".")
    # Rooms that produce a family of facts write stem and field apart: f"log.{name}" for a list of names.
    return name in text or (f'"{stem}.{{' in text and re.search(rf"\b{field}\b", text) is not None)


@cache
def _sources(room: str) -> str:
    """The text of a package with all tables and grammars, in which a produced fact must occur by name."""
    package, home = Path(rule_files.HERE), rule_files.home()
    tables = [
        file for file in (*(home / "rules").glob("*.yaml"), *(home / "rules/code").glob("*.yaml")) if file.stem not in ("facts", "knobs")
    ]
    files = [package / f"{room}.py", *(package / room).rglob("*.py"), *(home / "grammars").glob("*.lark"), *tables]
    return "\n".join(file.read_text(encoding="utf-8") for file in sorted(files) if file.is_file())


def _said(error: UserError) -> Text:
    return Text(error.to("en"), error.to("zh"))
