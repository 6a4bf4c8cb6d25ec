"""Edits to variables of a script: an `export` line as its shell writes it, or a word for what hands the variable on."""

from __future__ import annotations

import re
import shlex

from diagnose.adapters.formats.settings import Document
from diagnose.adapters.schema import framework_tables
from diagnose.plan.patch.patch_places import line_end, line_start, newline
from diagnose.plan.patch.splice import Splice
from diagnose.plan.rules.remedy import Edit


def is_variable(document: Document, edit: Edit) -> bool:
    """Does the edit concern a variable of the environment?"""
    name = name_in(edit.key)
    return framework_tables.table(document.framework).variables or (
        name.isupper() and name in framework_tables.table(framework_tables.of_role("variables")).known
    )


def name_in(key: str) -> str:
    """The variable of a key such as `--runtime-env-json env_vars.NAME`."""
    return key.rpartition(" ")[2].removeprefix("env_vars.")


def removed(text: str, start: int, end: int) -> Splice:
    """`export X=1` goes with its line; a variable before a command, with the blank after it."""
    line = line_start(text, start)
    alone = not text[end : line_end(text, end)].strip()
    if alone and text[line:start].strip() in ("", "export", "set", "$env:"):
        return Splice(line, line_end(text, end, with_break=True), "")
    blank = re.compile(r"[ \t]*").match(text, end)
    return Splice(start, blank.end() if blank else end, "")


def inserted(document: Document, edit: Edit) -> list[Splice]:
    """A new variable: for what carries it to the training, else (or as well) exported before everything that is run."""
    from diagnose.plan.patch.env_carriers import carriers

    if (item := in_manifest(document, name_in(edit.key), edit.to or "")) is not None:
        return [item]
    name, value = name_in(edit.key), _bare(edit.to or "")
    carried = carriers(document.text, name, value)
    cuts = [cut for one in carried for cut in one.cuts]
    return [*cuts, _line(document.text, name, value)] if not carried or any(one.exported for one in carried) else cuts


def in_manifest(document: Document, name: str, value: str) -> Splice | None:
    """After the last variable of a container's `env`, in the manner in which that stands, or as its first; None for any other text."""
    text, entry = document.text, document.entries[-1] if document.entries else None
    if entry is None or not framework_tables.table(document.framework).variables or not entry.line:
        from diagnose.plan.patch.patch_manifest import first_variable

        return first_variable(document, name, value)
    line, end = line_start(text, entry.start), line_end(text, entry.end)
    listed = re.compile(r"( *)  value:[ \t]").match(text, line)
    flow = re.compile(r"( *)- \{ *name:").match(text, line)
    if listed and re.compile(rf"{listed[1]}- name:[^\n]*\r?\n\Z").search(text, line_start(text, max(line - 1, 0)), line):
        said = [f"{listed[1]}- name: {name}", f'{listed[1]}  value: "{value}"']
    elif flow:
        said = [f'{flow[1]}- {{name: {name}, value: "{value}"}}']
    else:
        return None
    return Splice(end, end, "".join(newline(text) + one for one in said))


def _bare(value: str) -> str:
    """A value without the quotes of a shell."""
    try:
        return "".join(shlex.split(value))
    except ValueError:
        return value


def _line(text: str, name: str, value: str) -> Splice:
    """A line after the comments that a script begins with."""
    from diagnose.adapters.shell.shell_text import dialect_of

    dialect = dialect_of(text)
    if dialect == "bash" and "\n" not in text.strip("\r\n"):  # one command
        return Splice(0, 0, f"{name}={shlex.quote(value)} ")
    at = 0
    for match in re.finditer(r"[^\n]*\n", text):
        if match[0].strip() and not re.match(r"\s*(?:#|@echo|::|rem\b)", match[0], re.IGNORECASE):
            break
        at = match.end() if match[0].strip() else at
    written = {"powershell": f'$env:{name} = "{value}"', "cmd": f"set {name}={value}"}.get(dialect, f"export {name}={shlex.quote(value)}")
    return Splice(at, at, written + newline(text))
