"""Remedy rules (rules/remedies/*.yaml), parsed and typed once, with those of the user's folders."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

from diagnose import rule_files
from diagnose.decide.expression import Comparison, comparison_of, names, parse, parse_sum, to_data
from diagnose.decide.rule_loader import documents
from diagnose.errors import UserError, user_error
from diagnose.facts import FactBook, require_declared
from diagnose.phrases import Text, same
from diagnose.records import NamedTuple

#: Where `largest` and `smallest` look for a value: multiples of `step` between `least` and `most`
#: (a share of the value in effect for `largest`, a value for `smallest`; absent: no limit of its own).
Aim = Literal["list", "largest", "smallest"]
Direction = Literal["", "down", "up"]
#: The companion that raises accumulation by as much as the micro batch went down.
KEEP_BATCH = "keep_batch"


class Choice(NamedTuple):
    """Which values of the knob to try.

    `list`: the first of `values` that fits; a value may be a share of the current one, such as "50%". `largest`, `smallest`: the best
    multiple of `step` that fits; `beside` names a knob whose tokens share the row, so that `most` is a share of both together.
    `goes`: whether the remedy turns its knob `down` or `up`; empty where the values are words.
    """

    aim: Aim = "list"
    values: tuple[str, ...] = ()
    step: float = 1
    least: float = 0
    most: str = ""
    beside: str = ""
    goes: Direction = ""


class Unless(NamedTuple):
    """A contraindication: if all comparisons hold, the remedy is rejected for this reason. `even_unknown`: also if it is unknown
    whether they hold, because the remedy might break the run. `gains_little`: it breaks nothing, and is said to gain little. `idle`:
    the job has nothing of the kind, so that nobody tries it."""

    all: tuple[Comparison, ...]
    reason: Text
    even_unknown: bool = False
    gains_little: bool = False
    idle: bool = False


class Rule(NamedTuple):
    """One remedy rule. The fields are those of its file; those that are not obvious:

    `where`: the conditions under which the remedy applies. `already`: values that count as in effect beside those of `to`. `popular`:
    advice that people commonly give, so that a rejection of it is shown. `alone`: the text if it saves nothing by itself but makes
    another step possible. `caveats`: shown beside it unless known not to hold. `serving`: the price where an engine serves requests
    and nothing is trained, `serving_in` that of a program (run.program). `either`: the title where nobody knows whether anything is.
    `programs`: what to do in the words of a program (run.program), a trainer (train.framework) or of what printed the failure
    (log.family: slurm_oom) instead of `do`, `other` for every known program that is not listed. `tasks`: title and what to do in the
    words of what such programs do (run.task); the remedy is for these alone.
    `at`: the fact that holds the bytes saved if no ledger prices it; `bounded`: that fact is an upper limit. `host_at`: the fact that
    holds the host memory it takes if no ledger does. `asks`: facts on which its effect depends, with the question for each.
    """

    id: str
    remedy: str
    status: str
    title: Text
    either: Text | None
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
    serving_in: Mapping[str, Text]
    where: tuple[Comparison, ...]
    not_when: tuple[Unless, ...]
    caveats: tuple[Unless, ...]
    popular: bool
    alone: Text | None
    do: Text | None
    programs: Mapping[str, Text]
    tasks: Mapping[str, tuple[Text, Text]]
    command: Text | None
    asks: tuple[tuple[str, Text], ...]
    references: tuple[str, ...]
    ours: bool = False  # shipped with the manual; a user's own rule has no page

    def words(self, book: FactBook) -> Text | None:
        """What to do by hand, as the program or trainer of this job calls it."""
        task = book.word("run.task")
        if task is not None and task in self.tasks:
            return self.tasks[task][1]
        if (named := self.named(book)) is not None:
            return self.programs[named]
        return self.programs.get(OTHER, self.do) if self.programs and book.word("run.program") is not None else self.do

    def named(self, book: FactBook) -> str | None:
        """The program, trainer or sender of the message whose own words the rule has."""
        names = (book.word(name) for name in ("run.program", "train.framework", "log.family")) if self.programs else ()
        return next((name for name in names if name is not None and name in self.programs), None)

    @property
    def url(self) -> str:
        """The rule's page in the manual; empty for a user's own rule."""
        return f"docs/generated/remedies/{self.remedy}.md#{self.id}" if self.ours else ""


#: Among the programs of a rule: every one that is known and has no words of its own, where those of `do` are another's.
OTHER = "other"

#: What parsing a file of the wrong shape may raise.
_SHAPE_ERRORS = (UserError, KeyError, TypeError, ValueError, AttributeError)


def rules(trial: bool = False) -> tuple[Rule, ...]:
    """The shipped rules in force, in the order of their file names. `trial`: with those on trial."""
    return _in_force(_shipped_rules(), trial)


def with_folders(folders: Sequence[Path], trial: bool = False) -> tuple[tuple[Rule, ...], tuple[Text, ...]]:
    """The shipped rules with those of the user's folders, which add to them or replace them by id; and the errors of unreadable ones."""
    if not folders:
        return rules(trial), ()
    rules_by_id: dict[str, Rule] = {rule.id: rule for rule in _shipped_rules()}
    faults: list[Text] = []
    for folder in folders:
        for place, raw in documents(folder, "remedies"):
            try:
                rule = parse_rule(raw)
                for line in (*rule.where, *(line for unless in (*rule.not_when, *rule.caveats) for line in unless.all)):
                    for name in names(line):
                        require_declared(name)
                rules_by_id[rule.id] = rule
            except _SHAPE_ERRORS as error:
                text = same(f"{place}: {type(error).__name__}: {error}")
                faults.append(error.at(place) if isinstance(error, UserError) else text)
    return _in_force([rules_by_id[name] for name in sorted(rules_by_id)], trial), tuple(faults)


def _in_force(rules: Iterable[Rule], trial: bool) -> tuple[Rule, ...]:
    return tuple(rule for rule in rules if rule.status == "stable" or (trial and rule.status == "trial"))


@cache
def _shipped_rules() -> tuple[Rule, ...]:
    """The shipped rules that can be read; `oomdoctor rules check` reports the others."""
    cached = rule_files.kept("plan.remedies", lambda: compile_rules(rule_files.table("remedies")), "remedies")
    return tuple(_build_rule(data, ours=True) for data in cached)


def compile_rules(table: Mapping[str, Any]) -> list[dict[str, object]]:
    """The rules with every expression as a syntax tree, so that using them needs no grammar; unreadable rules are left out."""
    readable: list[dict[str, object]] = []
    for data in table.values():
        try:
            parsed = _parse_expressions(data)
            _build_rule(parsed)
        except _SHAPE_ERRORS:
            continue
        readable.append(parsed)
    return readable


def parse_rule(data: Mapping[str, object]) -> Rule:
    """The rule of one document. Raises UserError, KeyError or ValueError where it is incomplete."""
    return _build_rule(_parse_expressions(data))


def _parse_expressions(data: Mapping[str, Any]) -> dict[str, object]:
    where = [to_data(parse(line)) for line in data.get("where", ())]
    unless, caveats = (
        [{**entry, "if": [to_data(parse(line)) for line in _as_list(entry["if"])]} for entry in data.get(field, ())]
        for field in ("not_when", "caveats")
    )
    fields = {key: value for key, value in data.items() if key not in ("background", "examples")}  # for the manual and for tests
    parsed: dict[str, object] = {**fields, "where": where, "not_when": unless, "caveats": caveats}
    if isinstance(data.get("to"), list):
        parsed["to"] = [_parse_formula(text) for text in data["to"]]
    if "with" in data:
        parsed["with"] = {knob: _parse_formula(text) for knob, text in data["with"].items()}
    return parsed


def _parse_formula(text: str) -> str:
    """A formula over facts as "=" and its syntax tree in JSON; any other value unchanged."""
    return "=" + json.dumps(to_data(parse_sum(text))) if "*" in text else text


def _build_rule(data: Mapping[str, Any], *, ours: bool = False) -> Rule:
    turns = data["turns"]
    price = data["price"]
    ledger, at, bounded = _parse_saving(data.get("saves", "unknown"))
    return Rule(
        id=data["id"],
        remedy=data["remedy"],
        status=data.get("status", "stable"),
        title=_build_text(data["title"]),
        either=_build_text(data["either"]) if "either" in data else None,
        turns=None if turns == "none" else turns,
        to=_build_choice(data.get("to", []), data.get("goes", "")),
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
        serving=_build_text(data["serving"]) if "serving" in data else None,
        serving_in={name: _build_text(text) for name, text in data.get("serving_in", {}).items()},
        where=tuple(map(comparison_of, data["where"])),
        not_when=_build_unless(data["not_when"]),
        caveats=_build_unless(data["caveats"]),
        popular=data.get("popular") == "enabled",
        alone=_build_text(data["alone"]) if "alone" in data else None,
        do=_build_text(data["do"]) if "do" in data else None,
        programs={name: _build_text(text) for name, text in data.get("programs", {}).items()},
        tasks={name: (_build_text(row["title"]), _build_text(row["do"])) for name, row in data.get("tasks", {}).items()},
        command=_build_text(data["command"]) if "command" in data else None,
        asks=tuple((fact, _build_text(why)) for fact, why in data.get("asks", {}).items()),
        references=tuple(data.get("references", ())),
        ours=ours,
    )


def _build_unless(entries: Iterable[Mapping[str, Any]]) -> tuple[Unless, ...]:
    return tuple(
        Unless(
            tuple(map(comparison_of, entry["if"])),
            _build_text(entry),
            entry.get("even") == "unknown",
            entry.get("gains") == "little",
            entry.get("tries") == "nobody",
        )
        for entry in entries
    )


def _parse_saving(data: str | Mapping[str, str]) -> tuple[bool, str, bool]:
    """(whether the ledger prices it, the fact that holds the bytes, whether that is an upper limit)."""
    if isinstance(data, Mapping):
        return False, data["at_most"], True
    return data == "ledger", "" if data in ("ledger", "unknown") else data, False


def _build_choice(data: Sequence[str] | Mapping[str, str], goes: Direction) -> Choice:
    """The values to try; a list with shares of the current value tells its direction by them."""
    if not isinstance(data, Mapping):
        shares = [float(text[:-1]) for text in data if text.endswith("%")]
        return Choice(values=tuple(data), goes=goes or ("" if not shares else "down" if min(shares) < 100 else "up"))
    for aim in ("largest", "smallest"):
        if data.get(aim) == "fits":
            limits = {name: float(data[name]) for name in ("step", "least") if name in data}
            return Choice(
                aim,
                (),
                limits.get("step", 1),
                limits.get("least", 0),
                data.get("most", ""),
                data.get("beside", ""),
                "down" if aim == "largest" else "up",
            )
    raise user_error("rule_shape", field="to")


def _build_text(data: str | Mapping[str, str]) -> Text:
    return Text(data, data) if isinstance(data, str) else Text(data["en"], data["zh"])


def _as_list(data: str | Iterable[str]) -> list[str]:
    return [data] if isinstance(data, str) else list(data)
