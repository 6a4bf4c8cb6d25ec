"""The command `oomdoctor`: the commands about one job are understood at once, everything else by typer.

Importing typer costs six bare interpreters and its parsing of values (through pydantic) nine more, which is as much as the
whole diagnosis. So a plain `explain`, `check`, `facts` or `run` is read here; at anything unusual (a mistake, `--help`, completion)
typer takes over. tests/surfaces/test_cli.py holds the two readings together.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Literal

from diagnose.surfaces.term.console import guarded, language

Kind = Literal["switch", "word", "number", "list", "format", "language"]

#: Option -> the parameter that it sets, and what it takes.
MODEL: dict[str, tuple[str, Kind]] = {
    "--config": ("configs", "list"),
    "--model": ("model", "word"),
    "--gpu": ("gpu", "word"),
    "--gpus": ("gpus", "number"),
    "--set": ("set", "list"),
}
SHOWN: dict[str, tuple[str, Kind]] = {
    "--format": ("format", "format"),
    "--lang": ("lang", "language"),
    "--verbose": ("verbose", "switch"),
    "-v": ("verbose", "switch"),
    "--redact": ("redact", "switch"),
    "--no-redact": ("redact", "switch"),
    "--strict": ("strict", "switch"),
}
ANSWER: dict[str, tuple[str, Kind]] = {
    **MODEL,
    **SHOWN,
    "--rules": ("rules", "list"),
    "--top": ("top", "number"),
    "--explain-all": ("every_rule", "switch"),
    "--explain-budget": ("budget", "switch"),
    "--patch": ("patch", "word"),
    "--apply": ("apply", "switch"),
}
OPTIONS: dict[str, dict[str, tuple[str, Kind]]] = {
    "explain": {**ANSWER, "--trial": ("trial", "switch"), "--snapshot": ("snapshot", "word")},
    "check": ANSWER,
    "facts": {**MODEL, **SHOWN},
    "run": {
        **{flag: taken for flag, taken in ANSWER.items() if taken[0] not in ("patch", "apply", "strict")},
        "--log": ("log", "word"),
        "--snapshot": ("snapshot", "word"),
    },
}
WORDS: dict[Kind, tuple[str, ...]] = {"format": ("text", "json", "markdown", "html", "sarif"), "language": ("en", "zh")}

Value = str | int | bool | list[str]


def main() -> None:
    """Understand the words of the command line, answer, and leave with the exit status of the contract."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by whoever started us
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123 - as long as the process
    words = sys.argv[1:]
    read = None if "_OOMDOCTOR_COMPLETE" in os.environ else understood(words)
    if read is not None and words[0] == "run":
        from diagnose.surfaces.run.run_command import run

        sys.exit(run(*read))
    if read is None:
        from diagnose.surfaces.cli import usage
        from diagnose.surfaces.cli.commands import app

        sys.exit(usage.answered(app))
    else:
        sys.exit(guarded(language(str(read[1]["lang"]) if "lang" in read[1] else None), task(words[0], *read)))


def understood(words: Sequence[str]) -> tuple[list[str], dict[str, Value]] | None:
    """The files and the options that the words name; None where typer should have a look."""
    options = OPTIONS.get(words[0]) if words else None
    if options is None:
        return None
    files: list[str] = []
    values: dict[str, Value] = {}
    rest = list(reversed(words[1:]))
    while rest:
        word = rest.pop()
        if words[0] == "run" and (word == "--" or not word.startswith("-")):  # from here on it is the command's
            files = [*([] if word == "--" else [word]), *reversed(rest)]
            return (files, values) if files else None
        if word == "-" or not word.startswith("-"):
            files.append(word)
            continue
        flag, equals, text = word.partition("=")
        if flag not in options:
            return None
        name, kind = options[flag]
        if kind == "switch":
            if equals:
                return None
            values[name] = not flag.startswith("--no-")
            continue
        if not equals:
            if not rest or (rest[-1].startswith("-") and rest[-1] != "-"):
                return None
            text = rest.pop()
        if not take(values, name, kind, text):
            return None
    return None if words[0] == "run" else (files, values)


def take(values: dict[str, Value], name: str, kind: Kind, text: str) -> bool:
    """Keep an option's value; False where it is none that the option takes."""
    if kind == "list":
        held = values.setdefault(name, [])
        assert isinstance(held, list)
        held.append(text)
    elif kind == "number":
        if not (text.isascii() and text.isdigit() and len(text) < 9):
            return False
        values[name] = int(text)
    else:
        if kind in WORDS and text not in WORDS[kind]:
            return False
        values[name] = text
    return True


def task(command: str, files: list[str], values: dict[str, Value]) -> Callable[[], int]:
    """What a command does with these files and options."""
    from diagnose.surfaces.term import answer_command

    values["lang"] = language(str(values["lang"]) if "lang" in values else None)
    asked, shown = answer_command.parted(values)
    if command == "explain":
        return lambda: answer_command.explain(files, asked, shown)
    if command == "check":
        return lambda: answer_command.check(files, asked, shown)
    return lambda: answer_command.facts(files, asked, shown)


if __name__ == "__main__":
    main()
