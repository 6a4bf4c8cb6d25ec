"""A config's bytes to its form and its leaves: decoded, its kind found by what it says, never by its name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from diagnose import shipped
from diagnose.adapters import json_file, tables, yaml_file
from diagnose.adapters.leaf import MAX_BYTES, MAX_SCRIPT, Leaf, Remark, Unreadable
from diagnose.adapters.settings import ConfigSource, Form
from diagnose.facts import Input, Notice, Witness
from diagnose.phrases import Text, phrase, same

if TYPE_CHECKING:
    from ast import Module

    from diagnose.adapters.launch import Launch
    from diagnose.adapters.python_file import Script

_PYTHON = re.compile(r"^(?:from\s+[\w.]+\s+import\b|import\s+[A-Za-z_]\w*|def\s+\w+\(|class\s+\w+|@\w+)", re.MULTILINE)
_PATH = re.compile(r"^[A-Za-z_][\w]*(?:\.[\w]+)+=", re.MULTILINE)

#: What --config KIND=FILE may call a kind beside a framework's name.
_FORMS: Mapping[str, Form] = {"shell": "shell", "python": "python"}
_ALIAS = {"hf_args": "transformers", "ms-swift": "swift", "hydra": "verl"}


@cache
def _shell() -> re.Pattern[str]:
    """What a launch script or a command line holds: a program (rules/programs.yaml), a shell's own word, a variable, an option."""
    programs = shipped.table("programs")
    names = "|".join(map(re.escape, (*programs["commands"], *programs["launchers"])))
    words = rf"{names}|python[\d.]*|sbatch|bash|sh|export|set|pytest|nohup|docker|uv"
    return re.compile(rf"(?:^|[\s;&|(/])(?:{words})\s|^\s*[A-Za-z_]\w*=\S*|(?:^|\s)--[A-Za-z]|^\s*#SBATCH", re.MULTILINE)


@dataclass(slots=True)
class Opened:
    """A config that was read (or was not: then `kind` is unknown and `notices` says why)."""

    source: ConfigSource
    input: Input
    form: Form | None = None
    kind: str = "unknown"
    text: str = ""
    leaves: tuple[Leaf, ...] = ()
    launches: tuple[Launch, ...] = ()
    script: Script | None = None
    model: Mapping[str, object] | None = None  # a model's own config.json
    found_by: Leaf | None = None  # the key that gave the kind away
    notices: tuple[Notice, ...] = ()


def opened(source: ConfigSource) -> Opened:
    """Never raises: what cannot be used is a notice that names the place."""
    text, encoding, trouble = decoded(source.data)
    lines = text.count("\n") + (not text.endswith("\n") if text else 0)

    def as_input(kind: str) -> Input:
        return Input(source.name, kind, len(source.data), lines, encoding)

    def refused(code: str, what: Text, line: int = 0, column: int = 0) -> Opened:
        where = phrase("adapters.at", what=what, line=line, column=column) if line else what
        message = phrase("adapters.in_file", file=same(source.name), what=where)
        return Opened(
            source, as_input("unknown"), notices=(Notice("error", f"config.{code}", message, Witness(source.name, line, column)),)
        )

    if trouble:
        return refused(trouble, phrase(f"adapters.{trouble}"))
    try:
        found = _read(source, text)
    except Unreadable as error:
        return refused(error.code, error.message, error.line, error.column)
    except RecursionError:
        return refused("too_large", phrase("adapters.too_large"))
    found.input = as_input(found.kind)
    return found


def decoded(data: bytes) -> tuple[str, str, str]:
    """The text, its encoding, and what is wrong with it (empty: nothing)."""
    if len(data) > MAX_BYTES:
        return "", "binary", "too_large"
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace"), "utf-16", ""
    if not data.strip(b" \t\r\n\xef\xbb\xbf"):
        return "", "utf-8", "empty"
    if b"\0" in data:
        return "", "binary", "binary"
    try:
        return data.decode("utf-8-sig"), "utf-8", ""
    except UnicodeDecodeError:
        pass
    for encoding in ("gb18030", "latin-1"):
        try:
            return data.decode(encoding), encoding, ""
        except UnicodeDecodeError:
            continue
    return "", "binary", "binary"


def _read(source: ConfigSource, text: str) -> Opened:
    kind = _forced(source.forced_kind)
    blank = Input(source.name, "unknown", 0, 0, "")
    form = _FORMS.get(kind or "") or _form(text)
    if form in ("python", "shell") and len(text) > MAX_SCRIPT:
        raise Unreadable("too_large", phrase("adapters.too_large"))
    if form == "python":
        from diagnose.adapters import python_file  # ast is not for every start

        script = python_file.Reader(text).read(python_classes())
        kind = _kind_of_classes(script) if kind in (None, "python") else kind
        return Opened(source, blank, "python", kind or "python", text, tuple(script.leaves), script=script)
    if form == "shell":
        from diagnose.adapters.launch import launches  # nor is the reader of shell

        return Opened(source, blank, "shell", kind or "shell", text, launches=tuple(launches(text)))
    reader: json_file.Reader | yaml_file.Reader = json_file.Reader(text) if form == "json" else yaml_file.Reader(text)
    leaves = tuple(reader.leaves())
    found, leaf = (kind, None) if kind else kind_of_keys(leaves)
    notices = [_as_notice(source.name, remark) for remark in reader.remarks]
    model = _model_config(text) if found is None and {leaf.key for leaf in leaves} >= {"hidden_size", "num_hidden_layers"} else None
    if model is not None:
        found = "model"
    if found is None:
        tried = ", ".join(name for name in tables.names() if tables.signs(name).get("keys"))
        message = phrase("adapters.in_file", file=same(source.name), what=phrase("adapters.unknown_kind", tried=tried))
        notices.append(Notice("error", "config.unknown_kind", message, Witness(source.name)))
    return Opened(source, blank, form, found or "unknown", text, leaves, model=model, found_by=leaf, notices=tuple(notices))


def _forced(kind: str | None) -> str | None:
    """The table that a forced kind names: `llamafactory` and `llamafactory_yaml` alike."""
    if kind is None:
        return None
    short = re.sub(r"_(?:yaml|json|cli)$", "", kind)
    name = _ALIAS.get(short, short)
    return name if name in tables.names() or name in _FORMS else None


def _as_notice(name: str, remark: Remark) -> Notice:
    return Notice("warning", f"config.{remark.code}", remark.message, Witness(name, remark.line, remark.column))


def _form(text: str) -> Form:
    """json, yaml, shell or python, by what the text looks like; raises Unreadable for none of them."""
    first = text.lstrip()
    if first.startswith("#!"):
        return "python" if "python" in first.partition("\n")[0] else "shell"
    if re.match(r"(?:\s|//[^\n]*\n|/\*.*?\*/)*[{\[]", text, re.DOTALL):
        return "json"
    if _PYTHON.search(text):
        try:
            _parsed(text)
            return "python"
        except Unreadable:
            pass
    try:
        leaves = yaml_file.Reader(text).leaves()
        spaced = any(" " in leaf.key for leaf in leaves[:1])  # a command line with a colon in it is a mapping to YAML
        return "shell" if spaced and _shell().search(text) else "yaml"
    except Unreadable as trouble:
        if _PYTHON.search(text) and not _shell().search(text):
            _parsed(text)  # says what is wrong with the script
        if _shell().search(text) or _PATH.search(text):
            return "shell"
        if _calls(text):
            return "python"
        raise trouble from None


def _parsed(text: str) -> Module:
    from diagnose.adapters import python_file

    return python_file.parsed(text)


def _calls(text: str) -> bool:
    """Is this a fragment of Python: a bare call such as `TrainingArguments(...)`, or assignments?"""
    try:
        tree = _parsed(text)
    except Unreadable:
        return False
    import ast

    return any(isinstance(node, (ast.Call, ast.Assign)) for node in ast.walk(tree))


def kind_of_keys(leaves: Iterable[Leaf]) -> tuple[str | None, Leaf | None]:
    """The framework whose keys these are, and the key that says so; the more particular framework first."""
    by_name = {leaf.key: leaf for leaf in leaves}
    if len(by_name) == 1:
        return _kind_of_one(next(iter(by_name.values())))
    for name in tables.names():
        for sought in tables.signs(name).get("keys", ()):
            if all(key in by_name for key in sought):
                return name, by_name[sought[0]]
    return _kind_by_majority(by_name)


def _kind_of_one(leaf: Leaf) -> tuple[str | None, Leaf | None]:
    """One key is enough where one trainer alone knows it."""
    knowing = [
        name for name in tables.names() if tables.table(name).trainer and any(key.key == leaf.key for key in tables.table(name).keys)
    ]
    for name in tables.names():
        if [leaf.key] in tables.signs(name).get("keys", ()):
            return name, leaf
    return (knowing[0], leaf) if knowing else (None, None)


def _kind_by_majority(by_name: Mapping[str, Leaf]) -> tuple[str | None, Leaf | None]:
    """No known set is there (a few lines of a file, say): the trainer that knows most of the keys, if it knows more than half and two."""
    best, score, first = None, 1, None
    for name in tables.names():
        tab = tables.table(name)
        if not tab.trainer:
            continue
        known = [leaf for key, leaf in by_name.items() if key in tab.known]
        turning = [leaf for leaf in known if tab.named(leaf.key)]
        if len(known) > score and 2 * len(known) > sum("." not in key for key in by_name) and turning:
            best, score, first = name, len(known), turning[0]
    return best, first


def python_classes() -> frozenset[str]:
    """Every class of a script that some table reads."""
    return frozenset(name for framework in tables.names() for name in tables.signs(framework).get("classes", ()))


def _kind_of_classes(script: Script) -> str:
    """The framework whose classes the script calls; a plain script where it calls none."""
    called = set(script.classes)
    for name in tables.names():
        if called & set(tables.signs(name).get("classes", ())):
            return name
    return "transformers" if called else "pytorch" if script.leaves else "python"


def _model_config(text: str) -> Mapping[str, object] | None:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None
