"""Edits to environment variables: an `export` line of a script, an option that passes the variable on, an `env` entry of a manifest."""

from __future__ import annotations

import re
import shlex

from diagnose.adapters.formats import yaml_file
from diagnose.adapters.formats.config_value import Leaf, Unreadable
from diagnose.adapters.formats.settings import Document
from diagnose.adapters.schema import framework_tables
from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.plan.patch.patch_places import Splice, line_end, line_start, newline
from diagnose.plan.remedies.remedy import Edit

_CONTAINER = lazy_compile(r"(?:^|.*\.)containers\.\d+$")


def is_variable(document: Document, edit: Edit) -> bool:
    """Whether the edit is about an environment variable."""
    name = variable_name(edit.key)
    if framework_tables.table(document.framework).variables:
        return True
    return name.isupper() and name in framework_tables.table(framework_tables.of_role("variables")).known


def variable_name(key: str) -> str:
    """The variable of a key such as `--runtime-env-json env_vars.NAME`."""
    return key.rpartition(" ")[2].removeprefix("env_vars.")


def remove_variable(text: str, start: int, end: int) -> Splice:
    """Remove `export X=1` with its line, `X=1 command` with the blank after it."""
    line = line_start(text, start)
    ends_line = not text[end : line_end(text, end)].strip()
    if ends_line and text[line:start].strip() in ("", "export", "set", "$env:"):
        return Splice(line, line_end(text, end, with_break=True), "")
    blank = re.compile(r"[ \t]*").match(text, end)
    return Splice(start, blank.end() if blank else end, "")


def insert_variable(document: Document, edit: Edit) -> list[Splice]:
    """Insert a new variable: into a manifest, into the options that pass it on, else (or as well) as an export before all commands."""
    if (manifest_splice := insert_in_manifest(document, variable_name(edit.key), edit.to or "")) is not None:
        return [manifest_splice]
    from diagnose.plan.patch.env_carriers import carriers  # reads shell scripts: costs start-up time, and few jobs need it

    name, value = variable_name(edit.key), _unquote(edit.to or "")
    options = carriers(document.text, name, value)
    splices = [splice for option in options for splice in option.splices]
    exports = not options or any(option.needs_export for option in options)
    return [*splices, _export_line(document.text, name, value)] if exports else splices


def insert_in_manifest(document: Document, name: str, value: str) -> Splice | None:
    """Add a variable to a container's `env`, written as the last one there, or create `env`. None where the document is no manifest."""
    text, entry = document.text, document.entries[-1] if document.entries else None
    if entry is None or not framework_tables.table(document.framework).variables or not entry.line:
        return _insert_env_block(document, name, value)
    line, end = line_start(text, entry.start), line_end(text, entry.end)
    block_item = re.compile(r"( *)  value:[ \t]").match(text, line)
    flow_item = re.compile(r"( *)- \{ *name:").match(text, line)
    if block_item and re.compile(rf"{block_item[1]}- name:[^\n]*\r?\n\Z").search(text, line_start(text, max(line - 1, 0)), line):
        lines = [f"{block_item[1]}- name: {name}", f'{block_item[1]}  value: "{value}"']
    elif flow_item:
        lines = [f'{flow_item[1]}- {{name: {name}, value: "{value}"}}']
    else:
        return None
    return Splice(end, end, "".join(newline(text) + line_text for line_text in lines))


def _insert_env_block(document: Document, name: str, value: str) -> Splice | None:
    """Give the container whose command the document is an `env` block; None where it is no manifest or has variables already."""
    text = document.text
    start = next((entry.start for entry in document.entries), None)
    if start is None or "containers" not in text:
        return None
    try:
        leaves = list(yaml_file.Reader(text).leaves())
    except (Unreadable, RecursionError):
        return None
    containers = (leaf for leaf in leaves if leaf.shape == "map" and _CONTAINER.match(leaf.key))
    container = next((leaf for leaf in containers if leaf.start <= start < leaf.end), None)
    if container is None or any(leaf.key in (f"{container.key}.env", f"{container.key}.envFrom") for leaf in leaves):
        return None
    sibling = next((leaf for leaf in leaves if leaf.key.rpartition(".")[0] == container.key and _is_scalar_line(text, leaf)), None)
    if sibling is None:
        return None
    indent = " " * (sibling.column - 1)
    lines = [f"{indent}env:", f"{indent}  - name: {name}", f'{indent}    value: "{value}"']
    end = line_end(text, sibling.end)
    return Splice(end, end, "".join(newline(text) + line for line in lines))


def _is_scalar_line(text: str, leaf: Leaf) -> bool:
    """Whether a key and its scalar value have a line to themselves, so that another key may follow on the next."""
    line = line_start(text, leaf.end)
    trailing = text[leaf.end : line_end(text, leaf.end)]
    is_alone = not trailing.partition("#")[0].strip() and re.match(r" *(?:- +)?[\w.-]+:[ \t]", text[line:])
    return leaf.shape == "scalar" and bool(is_alone)


def _unquote(value: str) -> str:
    """A value without shell quotes."""
    try:
        return "".join(shlex.split(value))
    except ValueError:
        return value


def _export_line(text: str, name: str, value: str) -> Splice:
    """The assignment in the script's shell, on a line after the comments that the script begins with."""
    from diagnose.adapters.shell.shell_text import dialect_of  # only plans with variables need it

    dialect = dialect_of(text)
    if dialect == "bash" and "\n" not in text.strip("\r\n"):  # one command
        return Splice(0, 0, f"{name}={shlex.quote(value)} ")
    at = 0
    for match in re.finditer(r"[^\n]*\n", text):
        if match[0].strip() and not re.match(r"\s*(?:#|@echo|::|rem\b)", match[0], re.IGNORECASE):
            break
        at = match.end() if match[0].strip() else at
    assignment = {"powershell": f'$env:{name} = "{value}"', "cmd": f"set {name}={value}"}.get(
        dialect, f"export {name}={shlex.quote(value)}"
    )
    return Splice(at, at, assignment + newline(text))
