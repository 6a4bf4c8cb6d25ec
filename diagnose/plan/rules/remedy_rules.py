"""Remedy rules as the planner uses them: rules/remedies/*.yaml, read and typed once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

from diagnose import rule_files
from diagnose.decide.expression import Comparison, comparison_of, names, parse, parse_sum, to_data
from diagnose.errors import UserError, user_error
from diagnose.facts import must_exist
from diagnose.phrases import Text, same
from diagnose.record import record

#: Where `largest` and `smallest` look for a value: multiples of `step` between `least` and `most`
#: (a share of the value in effect for `largest`, a value for `smallest`; absent: no limit of its own).
Aim = Literal["list", "largest", "smallest"]
#: The companion that raises accumulation by as much as the micro batch went down.
KEEP_BATCH = "keep_batch"


@record
class Choice:
    """Which values to try. `values` are texts, a share such as "50%" among them; the first that fits is taken.

    For `largest` and `smallest` the best multiple of `step` counts; `beside` names the knob whose tokens stand in the
    same row, so that `most` is a share of both together.
    """

    aim: Aim = "list"
    values: tuple[str, ...] = ()
    step: float = 1
    least: float = 0
    most: str = ""
    beside: str = ""


@record
class Unless:
    """A contraindication: where all comparisons hold, the remedy is rejected for this reason; `even_unknown`: also where nobody
    knows whether they hold, since the advice might break the run."""

    all: tuple[Comparison, ...]
    reason: Text
    even_unknown: bool = False


@record
class Rule:
    """One remedy rule. The fields are those of its file; what their names do not say:

    `already` are values that count as in effect beside those of `to`; `where` are conditions under which people give
    this advice at all; `popular` says that they do, so that it is weighed and, if need be, rejected aloud; `alone` is
    what to say where it saves nothing by itself yet makes another step possible; `caveats` are said beside it unless they are
    known not to hold; `serving` is the price where an engine serves requests and nothing is trained; `host_at` names the fact
    of the host memory that it takes, where no ledger says it; `at` names the fact of the bytes where `saves` is not the
    ledger, `bounded` that those are an upper limit; `asks` are facts that decide how good it is.
    """

    id: str
    remedy: str
    status: str
    title: Text
    turns: str | None
    to: Choice
    companions: tuple[tuple[str, str], ...]
    already: tuple[str, ...]
    relieves: Literal["gpu", "host", "both"]
    ledger: bool
    at: str
    bounded: bool
    results: str
    speed: str
    effort: str
    takes_host: bool
    host_at: str
    serving: Text | None
    where: tuple[Comparison, ...]
    not_when: tuple[Unless, ...]
    caveats: tuple[Unless, ...]
    popular: bool
    alone: Text | None
    do: Text | None
    command: Text | None
    asks: tuple[tuple[str, Text], ...]
    references: tuple[str, ...]
    ours: bool = False  # shipped with the manual; a user's own rule has no page

    @property
    def url(self) -> str:
        """Where the manual (diagnose/manual) explains it; empty for a rule of the user's."""
        return f"docs/generated/remedies/{self.remedy}.md#{self.id}" if self.ours else ""


#: What reading a file of the wrong shape may raise.
_UNREADABLE = (UserError, KeyError, TypeError, ValueError, AttributeError)


def rules(trial: bool = False) -> tuple[Rule, ...]:
    """Our remedies in force, in the order of their file names; those on trial only when asked for."""
    return _speaking(_shipped(), trial)


def with_folders(folders: Sequence[Path], trial: bool = False) -> tuple[tuple[Rule, ...], tuple[Text, ...]]:
    """Our remedies with those of the user's folders, which add to them or replace them by id; and the faults of those unread."""
    if not folders:
        return rules(trial), ()
    from diagnose.decide.rule_loader import documents

    found: dict[str, Rule] = {rule.id: rule for rule in _shipped()}
    faults: list[Text] = []
    for folder in folders:
        for where, raw in documents(folder, "remedies"):
            try:
                rule = read(raw)
                for line in (*rule.where, *(line for unless in (*rule.not_when, *rule.caveats) for line in unless.all)):
                    for name in names(line):
                        must_exist(name)
                found[rule.id] = rule
            except _UNREADABLE as error:
                crash = same(f"{where}: {type(error).__name__}: {error}")
                faults.append(error.at(where) if isinstance(error, UserError) else crash)
    return _speaking([found[name] for name in sorted(found)], trial), tuple(faults)


def _speaking(found: Iterable[Rule], trial: bool) -> tuple[Rule, ...]:
    return tuple(rule for rule in found if rule.status == "stable" or (trial and rule.status == "trial"))


@cache
def _shipped() -> tuple[Rule, ...]:
    """Every rule that can be read; `oomdoctor rules check` says what is wrong with the others."""
    kept = rule_files.kept("plan.remedies", lambda: compiled(rule_files.table("remedies")), "remedies")
    return tuple(_rule(data, ours=True) for data in kept)


def compiled(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rules with every comparison as a tree, so that running them needs no grammar; those that cannot be read sit out."""
    good: list[dict[str, Any]] = []
    for data in table.values():
        try:
            trees = _with_trees(data)
            _rule(trees)
        except _UNREADABLE:
            continue
        good.append(trees)
    return good


def read(data: Mapping[str, Any]) -> Rule:
    """A rule from its file. Raises UserError, KeyError or ValueError where the file does not say enough."""
    return _rule(_with_trees(data))


def _with_trees(data: Mapping[str, Any]) -> dict[str, Any]:
    where = [to_data(parse(line)) for line in data.get("where", ())]
    unless, caveats = (
        [{**entry, "if": [to_data(parse(line)) for line in _lines(entry["if"])]} for entry in data.get(field, ())]
        for field in ("not_when", "caveats")
    )
    own = {key: value for key, value in data.items() if key not in ("background", "examples")}  # for the manual and for tests
    trees: dict[str, Any] = {**own, "where": where, "not_when": unless, "caveats": caveats}
    if isinstance(data.get("to"), list):
        trees["to"] = [_formula(text) for text in data["to"]]
    if "with" in data:
        trees["with"] = {knob: _formula(text) for knob, text in data["with"].items()}
    return trees


def _formula(text: str) -> str:
    """A value that is a formula over facts, as its tree behind an equals sign; any other value as it is."""
    return "=" + json.dumps(to_data(parse_sum(text))) if "*" in text else text


def _rule(data: Mapping[str, Any], *, ours: bool = False) -> Rule:
    turns = data["turns"]
    price = data["price"]
    ledger, at, bounded = _saving(data.get("saves", "unknown"))
    return Rule(
        id=data["id"],
        remedy=data["remedy"],
        status=data.get("status", "stable"),
        title=_text(data["title"]),
        turns=None if turns == "none" else turns,
        to=_choice(data.get("to", [])),
        companions=tuple(data.get("with", {}).items()),
        already=tuple(data.get("already", ())),
        relieves=data.get("relieves", "gpu"),
        ledger=ledger,
        at=at,
        bounded=bounded,
        results=price["results"],
        speed=price["speed"],
        effort=price["effort"],
        takes_host="host_memory" in price,
        host_at=host if (host := price.get("host_memory", "")) not in ("ledger", "unknown") else "",
        serving=_text(data["serving"]) if "serving" in data else None,
        where=tuple(map(comparison_of, data["where"])),
        not_when=_unless(data["not_when"]),
        caveats=_unless(data["caveats"]),
        popular=data.get("popular") == "enabled",
        alone=_text(data["alone"]) if "alone" in data else None,
        do=_text(data["do"]) if "do" in data else None,
        command=_text(data["command"]) if "command" in data else None,
        asks=tuple((fact, _text(why)) for fact, why in data.get("asks", {}).items()),
        references=tuple(data.get("references", ())),
        ours=ours,
    )


def _unless(entries: Iterable[Mapping[str, Any]]) -> tuple[Unless, ...]:
    return tuple(Unless(tuple(map(comparison_of, entry["if"])), _text(entry), entry.get("even") == "unknown") for entry in entries)


def _saving(data: str | Mapping[str, str]) -> tuple[bool, str, bool]:
    """(priced by the ledger, fact of the bytes, whether that is only a limit)."""
    if isinstance(data, Mapping):
        return False, data["at_most"], True
    return data == "ledger", "" if data in ("ledger", "unknown") else data, False


def _choice(data: Sequence[str] | Mapping[str, str]) -> Choice:
    if not isinstance(data, Mapping):
        return Choice(values=tuple(data))
    for aim in ("largest", "smallest"):
        if data.get(aim) == "fits":
            limits = {name: float(data[name]) for name in ("step", "least") if name in data}
            return Choice(aim, (), limits.get("step", 1), limits.get("least", 0), data.get("most", ""), data.get("beside", ""))
    raise user_error("rule_shape", field="to")


def _text(data: str | Mapping[str, str]) -> Text:
    return Text(data, data) if isinstance(data, str) else Text(data["en"], data["zh"])


def _lines(data: str | Iterable[str]) -> list[str]:
    return [data] if isinstance(data, str) else list(data)
