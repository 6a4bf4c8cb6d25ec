"""Reports of launchers and shells that a signal ended a process (grammars/launcher_oom.lark). They prove a kill, not its reason."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from diagnose.parse.messages import scheduler_oom
from diagnose.parse.messages.message_spec import statement_specs
from diagnose.parse.model.message import Message
from diagnose.parse.text import grammar_statements
from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.parse.text.lines import lines_above
from diagnose.units import whole_number, whole_numbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from diagnose.parse.text.grammar_statements import Statement
    from diagnose.parse.text.lines import Page

LONGEST = 900  # characters that are read: of a message that was found in a longer line what stands round it

_NUMBER = {"SIGKILL": 9, "SIGBUS": 7, "SIGTERM": 15, "Killed": 9, "Bus error": 7}
#: What the numbers of a statement are, in the order they stand.
_FIGURES = {
    "failed": ("signal", "local_rank", "pid"),
    "failed_old": ("pid", "local_rank", "signal"),
    "exitcode": ("signal", "pid"),
    "received": ("signal", "pid"),
    "ended": ("pid", "signal"),
    "noticed": ("rank", "pid"),
    "spawned": ("local_rank",),
    "sent": ("pid",),
}

_HEAD = lazy_compile(r"^\s*\[\d{1,6}\]:")
_FIELD = lazy_compile(r"^\s*(host|rank) {0,8}: (\S{1,200})(?: \(local_rank: (\d{1,6})\))?")
_HYDRA = lazy_compile(r"=\s+(?:RANK (\d{1,6}) )?PID (\d{1,10}) RUNNING AT (\S{1,100})")


def goes_on(_text: str, _line: str) -> bool:
    """Never: each line of such a report is a message of its own."""
    return False


def read(text: str) -> Message | None:
    """The message in a line; None where it names no signal that tells anything."""
    statements = grammar_statements.parse_statements("launcher_oom", grammar_statements.collapse_blanks(text[:LONGEST]))
    return next((message for statement in statements if (message := _message(statement)) is not None), None)


def _message(statement: Statement) -> Message | None:
    words = statement.words[0] if statement.words else ""
    figures = dict(zip(_FIGURES.get(statement.kind, ()), (number or 0 for number in whole_numbers(words)), strict=False))
    row = statement_specs("launcher_oom").get(f"signal_{_signal(statement.kind, words, figures)}")
    if row is None:
        return None
    message = row.message(statement)
    message.pid, message.rank, message.local_rank = figures.get("pid") or None, figures.get("rank"), figures.get("local_rank")
    if statement.kind == "shell":
        match = re.search(r"(?:line \d+:|^\[\d+\] ?[+-]?) (\d+) [Kk]illed", words)
        message.pid = whole_number(match[1]) if match else None
    elif statement.kind == "task":
        message.tasks = scheduler_oom.parse_tasks(words)
    elif statement.kind == "noticed":
        message.host = re.sub(r".* on node (\S+) exited.*", r"\1", words)
    if message.pid and row.status == "suspected":
        message.killed["launcher"] = message.pid
    return message


def _signal(kind: str, words: str, figures: Mapping[str, int]) -> int:
    """The signal's number, by number or name; 0 for one that tells nothing."""
    named = re.search(r"SIG[A-Z]+", words) or re.search(r"Killed|Bus error", words)
    if kind in ("returned", "noticed", "hydra"):
        return [0, *whole_numbers(words)][-1] or 0
    if kind in ("shell", "code"):
        return 9
    return figures.get("signal") or _NUMBER.get(named[0] if named else "", 0)


def complete(message: Message, page: Page, index: int) -> Sequence[int]:
    """Add the rank and host that torchrun's table and Hydra's frame print above the line with the signal."""
    line = page.line(index).text
    used: list[int] = []
    if "exitcode" in line and "failed (" not in line:
        for at, text in lines_above(page, index, 5):
            field = _FIELD.match(text)
            if field is not None and field[1] == "host":
                message.host = field[2]
            elif field is not None and field[2].isdecimal():
                message.rank, message.local_rank = whole_number(field[2]), whole_number(field[3] or "")
                used.append(at)
            if _HEAD.match(text):
                break
    elif "SIGNAL: " in line or "EXIT STRING" in line:
        for _, text in lines_above(page, index, 8):
            match = _HYDRA.search(text)
            if match is not None:
                message.rank = whole_number(match[1] or "")
                message.pid, message.host = whole_number(match[2]) or 0, match[3]
                message.killed["launcher"] = message.pid
                break
    return used
