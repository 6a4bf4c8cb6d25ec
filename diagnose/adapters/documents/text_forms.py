"""Detects the form of a text by its content: YAML, JSON, TOML, shell or Python."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from diagnose import rule_files
from diagnose.adapters.formats import yaml_file
from diagnose.adapters.formats.config_value import Leaf, Unreadable
from diagnose.adapters.formats.settings import Form
from diagnose.parse.text.lazy_re import lazy_compile

if TYPE_CHECKING:
    from ast import Module

_PYTHON = lazy_compile(r"(?:^|\r)(?:from\s+[\w.]+\s+import\b|import\s+[A-Za-z_]\w*|def\s+\w+\(|class\s+\w+|@\w+)", re.MULTILINE)
_SCRIPT = lazy_compile(r"(?:[ \t\r]*(?:#[^\n]*)?\n)*[ \t]*(?:from[ \t]+[\w.]+[ \t]+import\b|import[ \t]+\w+[ \t]*(?:\r?\n|as\b|$))")
_TOML = lazy_compile(r"^\[\[?[A-Za-z_][\w.-]*\]\]?[ \t]*(?:#.*)?\r?$", re.MULTILINE)
#: `[ -f x ]` is a test of the shell, and `{ export A=1; ... }` a group of its commands.
_JSON = lazy_compile(r"(?:\s|//[^\n]*\n|/\*.*?\*/)*(?:\{(?!\s{1,80}[A-Za-z_][\w./-]{0,80}[ \t]{1,8}[^\s:])|\[(?!\[?\s+-))", re.DOTALL)
_JSONNET = lazy_compile(r"(?:\s|//[^\n]*\n|#[^\n]*\n)*local\s+[A-Za-z_]\w*\s*(?:=[^=\n]*[;{\[]|\([\w, ]*\)\s*=|=\s*\n)")
_PATH = lazy_compile(r"^[ \t]*(?:\+{1,2}|~)?[A-Za-z_]\w*(?:\.\w+)+=", re.MULTILINE)  # an override, as Hydra adds and deletes keys too
_SPACED = lazy_compile(r"^[A-Za-z_]\w* = ", re.MULTILINE)  # no assignment of a shell
_WINDOWS = lazy_compile(r"^[ \t]*(?:@echo off|\$env:\w+[ \t]*=)", re.MULTILINE | re.IGNORECASE)

#: Whether a framework knows these keys.
IsKnown = Callable[[list[Leaf]], bool]


@cache
def shell_pattern() -> re.Pattern[str]:
    """Matches a line of shell: a program of rules/programs.yaml, a shell word, an assignment or an option."""
    programs = rule_files.table("programs")
    names = "|".join(map(re.escape, (*programs["commands"], *programs["launchers"])))
    words = rf"{names}|python[\d.]*|sbatch|bash|sh|export|set|pytest|nohup|docker|uv"
    return re.compile(
        rf"(?:^|[\s;&|(/@!])(?:{words})\s|^[ \t]*[A-Za-z_]\w*=\S*|(?:^|\s)--[A-Za-z]|^[ \t]*#(?:SBATCH|PBS|BSUB)"
        r"|^[\w./-]{0,80}(?:train|finetun)[\w./-]{0,40}[ \t]+(?:\S{1,200}[ \t]+)?-[A-Za-z]",
        re.MULTILINE,
    )


def detect_form(text: str, is_known: IsKnown) -> tuple[Form, yaml_file.Reader | None]:
    """The form of a text, and the reader that has read it as YAML, where that told. Raises Unreadable if it has none."""
    form = _signed_form(text)
    if form is not None:
        return form, None
    reader = yaml_file.Reader(text)
    try:
        leaves = reader.leaves()
    except Unreadable as trouble:
        return _detect_non_mapping(text, is_known, trouble), None
    spaced = any(" " in leaf.key for leaf in leaves[:1])  # a command line with a colon in it is a mapping to YAML
    return ("shell", None) if spaced and shell_pattern().search(text) else ("yaml", reader)


def _signed_form(text: str) -> Form | None:
    """The form that a text shows by signs of its own; None for what may be YAML. Raises Unreadable for TOML with a mistake."""
    first = text.lstrip()
    if first.startswith("#!"):
        return "python" if "python" in first.partition("\n")[0] and not _is_misnamed_shell(text) else "shell"
    if _WINDOWS.search(text):
        return "shell"
    if _TOML.search(text) and (form := _toml_form(text)):
        return form
    if _JSON.match(text) or _JSONNET.match(text):
        return "json"
    if _PYTHON.search(text):
        try:
            _parse_python(text)
            return "python"
        except Unreadable:
            pass
    return None


def _is_misnamed_shell(text: str) -> bool:
    """Whether a text that calls itself Python in its first line is a command of a shell: it has the signs of one and does not parse."""
    if not shell_pattern().search(text):
        return False
    try:
        _parse_python(text)
    except Unreadable:
        return True
    return False


def _detect_non_mapping(text: str, is_known: IsKnown, trouble: Unreadable) -> Form:
    """The form of a text that is no YAML mapping. Raises `trouble` if it has no other form."""
    if _PYTHON.search(text) and (_SCRIPT.match(text) or not shell_pattern().search(text)):
        _parse_python(text)  # says what is wrong with the script
    if re.match(r"(?:[ \t]*(?:#[^\n]*)?\n)*[ \t]*- ", text) and trouble.code == "not_a_mapping":
        return "yaml"  # a list: whether it is one of words is for its reader to say
    is_shell = shell_pattern().search(text) is not None or _PATH.search(text) is not None
    if is_shell and not (_SPACED.search(text) and _is_python_fragment(text)):
        return "shell"
    if not is_shell and _is_toml(text, is_known):
        return "toml"
    if _is_python_fragment(text):
        return "python"
    raise trouble from None


def _toml_form(text: str) -> Form | None:
    """TOML if the whole text parses; raises Unreadable if it starts as TOML and then fails."""
    # Here and below: the readers of TOML and of Python (ast) are loaded only for texts that may be that.
    from diagnose.adapters.formats import toml_file

    try:
        toml_file.Reader(text).leaves()
    except Unreadable:
        lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
        if lines and _TOML.match(lines[0]) and any(toml_file.TOML_LINE.match(line) for line in lines[1:]):
            raise
        return None
    return "toml"


def _is_toml(text: str, is_known: IsKnown) -> bool:
    """Whether dotted assignments without a header, which are valid Python too, are a framework's keys."""
    from diagnose.adapters.formats import toml_file

    try:
        return is_known(list(toml_file.Reader(text).leaves()))
    except Unreadable:
        return False


def _parse_python(text: str) -> Module:
    from diagnose.adapters.python import script_calls

    return script_calls.parse_script(text)


def _is_python_fragment(text: str) -> bool:
    """Whether this is Python with a call, such as `TrainingArguments(...)`, or an assignment."""
    try:
        tree = _parse_python(text)
    except Unreadable:
        return False
    import ast

    return any(isinstance(node, (ast.Call, ast.Assign)) for node in ast.walk(tree))
