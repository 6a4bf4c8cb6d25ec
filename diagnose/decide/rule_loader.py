"""Rule files to rules: the shipped ones, then those of the user's folders, which override by id."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from diagnose import rule_files
from diagnose.decide.expression import Comparison, Node, comparison_of, names, node_of, parse, parse_sum, to_data
from diagnose.errors import UserError, user_error
from diagnose.facts import require_declared
from diagnose.phrases import Text, same
from diagnose.records import NamedTuple

#: A rule as its file writes it: every scalar is text.
Raw: TypeAlias = "Mapping[str, Any]"

#: What a rule needs to speak; the examples stay behind.
_SPOKEN = ("id", "cause", "status", "title", "presume", "assuming", "yields_to", "evidence", "put_right", "remedies", "rules_out",
           "references")  # fmt: skip


class Rule(NamedTuple):
    """A cause: when it speaks, what it says, and what it makes beside the point."""

    id: str
    cause: str
    status: str
    title: Text
    all: tuple[Comparison, ...]
    any: tuple[Comparison, ...]
    none: tuple[Comparison, ...]
    presume: Mapping[str, str]
    assuming: Mapping[str, Text]  # how each presumption is said aloud, or ("") all at once; empty: in general words
    accounts_for: Node | None
    yields_to: tuple[str, ...]  # rules, or causes of the vocabulary, that set this one aside
    evidence: Text
    put_right: Text | None  # which setting to put right, where a configuration is not in effect
    remedies: tuple[str, ...]
    rules_out: str  # the list of the vocabulary with the remedies that leave what it speaks of as it is; "": none
    references: tuple[str, ...]
    ours: bool = False  # shipped with the manual; a user's own rule has no page

    @property
    def lines(self) -> tuple[Comparison, ...]:
        return self.all + self.any + self.none

    @property
    def url(self) -> str:
        """Where the manual (diagnose/manual) explains it; empty for a rule of the user's."""
        return f"docs/generated/causes/{self.cause}.md#{self.id}" if self.ours else ""


def compile_rule(raw: Raw) -> dict[str, Any]:
    """The rule as JSON can hold it, its conditions parsed, so that speaking needs no grammar. Raises UserError."""
    rule = rule_of(raw)
    compiled = {key: raw[key] for key in _SPOKEN if key in raw}
    compiled["when"] = {name: [to_data(line) for line in lines] for name in ("all", "any", "none") if (lines := getattr(rule, name))}
    if rule.accounts_for is not None:
        compiled["accounts_for"] = to_data(rule.accounts_for)
    return compiled


def rule_of(raw: Raw, *, ours: bool = False) -> Rule:
    """The rule that a file holds, compiled or not. Raises UserError where it has no usable shape."""
    where = str(raw.get("id", "?")) if isinstance(raw, Mapping) else "?"
    try:
        when = raw["when"]
        accounts = raw.get("accounts_for")
        return Rule(
            id=raw["id"],
            cause=raw["cause"],
            status=raw.get("status", "stable"),
            title=_text(raw["title"]),
            all=_lines(when.get("all", ())),
            any=_lines(when.get("any", ())),
            none=_lines(when.get("none", ())),
            presume=dict(raw.get("presume", {})),
            assuming=_assuming(raw.get("assuming", {})),
            accounts_for=None if accounts is None else parse_sum(accounts) if isinstance(accounts, str) else node_of(accounts),
            yields_to=tuple(raw.get("yields_to", ())),
            evidence=_text(raw["evidence"]),
            put_right=_text(raw["put_right"]) if "put_right" in raw else None,
            remedies=tuple(raw.get("remedies", ())),
            rules_out=raw.get("rules_out", ""),
            references=tuple(raw.get("references", ())),
            ours=ours,
        )
    except (KeyError, TypeError, AttributeError) as error:
        field = str(error).strip("'") if isinstance(error, KeyError) else "form"
        raise user_error("rule_shape", where, field=field) from error


def _text(entry: Mapping[str, str]) -> Text:
    return Text(entry["en"], entry["zh"])


def _assuming(entry: Mapping[str, Any]) -> dict[str, Text]:
    """One text for all that is presumed, or one for each fact that is worth saying."""
    return {"": _text(entry)} if "en" in entry else {fact: _text(text) for fact, text in entry.items()}


def _lines(entries: Sequence[Any]) -> tuple[Comparison, ...]:
    """Conditions as a file writes them, as `compile_rule` does, or as they are."""
    return tuple(
        parse(entry) if isinstance(entry, str) else entry if isinstance(entry, Comparison) else comparison_of(entry) for entry in entries
    )


def rules(folders: Sequence[Path] = (), *, trial: bool = False) -> tuple[list[Rule], list[Text]]:
    """Every rule that may speak, by id, and the faults of those that cannot be read."""
    ours, unread = _shipped()
    by_id, faults = {rule.id: rule for rule in ours}, [same(fault) for fault in unread]
    for folder in folders:
        for where, raw in documents(folder):
            try:
                rule = rule_of(raw)
                for name in (name for line in rule.lines for name in names(line)):
                    require_declared(name)  # a rule about a fact that nobody makes would stay silent for ever
                by_id[rule.id] = rule
            except UserError as error:
                faults.append(error.at(where))
    speaking = ("stable", "trial") if trial else ("stable",)
    return [by_id[name] for name in sorted(by_id) if by_id[name].status in speaking], faults


@cache
def _shipped() -> tuple[tuple[Rule, ...], tuple[str, ...]]:
    held = rule_files.kept("judge.rules", _compiled, "causes", "versions")
    lines = [comparison_of(line) for line in held["lines"]]
    return tuple(rule_of(_restored(compiled, lines), ours=True) for compiled in held["rules"]), tuple(held["faults"])


def _restored(compiled: Raw, lines: Sequence[Comparison]) -> Raw:
    """A kept rule with its conditions for their numbers."""
    when = {name: [lines[number] for number in numbers] for name, numbers in compiled["when"].items()}
    return {**compiled, "when": when}


def _compiled() -> dict[str, list[Any]]:
    """Our own rules with their conditions parsed, each condition once (`lines`), and what is wrong with the others."""
    from diagnose.decide.known_bad_releases import rules_of

    good: list[dict[str, Any]] = []
    bad: list[str] = []
    for raw in (*rule_files.table("causes").values(), *rules_of(rule_files.table("versions"))):
        try:
            good.append(compile_rule(raw))
        except UserError as error:
            bad.append(str(error))
    numbers: dict[str, int] = {}
    for compiled in good:
        compiled["when"] = {
            name: [numbers.setdefault(json.dumps(line), len(numbers)) for line in lines] for name, lines in compiled["when"].items()
        }
    return {"rules": good, "lines": list(map(json.loads, numbers)), "faults": bad}


def documents(folder: Path, room: str = "causes") -> Iterator[tuple[str, Raw]]:
    """The rule documents of a user's folder (DIR/causes/*.yaml or DIR/*.yaml) with their place, scalars as text."""
    import yaml

    key = {"causes": "cause", "remedies": "remedy"}[room]
    for file in sorted([*folder.glob("*.yaml"), *(folder / room).glob("*.yaml")]):
        try:
            for raw in yaml.load_all(file.read_bytes(), rule_files.yaml_loader(as_text=True)):
                if isinstance(raw, Mapping) and key in raw:
                    yield str(file), raw
        except (yaml.YAMLError, OSError, UnicodeDecodeError):
            continue  # `rules check` says what is wrong with the file
