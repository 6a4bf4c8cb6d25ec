"""Reads commands written as lists: words in YAML, JSON or Python, containers of a Kubernetes manifest, one option per line."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from diagnose.adapters.formats.config_value import Unreadable
from diagnose.adapters.formats.yaml_file import compose_documents
from diagnose.adapters.launch.launch_command import Launch, command_launches
from diagnose.adapters.shell.shell_text import Chars, Command, Word

if TYPE_CHECKING:
    from yaml.nodes import Node

    from diagnose.adapters.python.script_values import NodePlaces

_WORDS = ("command", "args")
_OPTION_ITEM = re.compile(r"^\s*(?:-\s+)?[\"']?--?[A-Za-z]", re.MULTILINE)
_MAX_WORDS = 2000


def parse_data_lists(text: str) -> list[Launch]:
    """The launches in the argument lists of a YAML or JSON text; empty for a text that cannot be parsed."""
    try:
        result: list[Launch] = []
        for node in compose_documents(text):
            if _is_node(node, "sequence"):
                result += _start_of_words(_words(node, text), {}, text)
            elif node is not None:
                result += [launch for words, env in _containers(node, text, 0) for launch in _start_of_words(words, env, text)]
        return result
    except (Unreadable, RecursionError):
        return []


def _is_node(node: object, kind: str) -> bool:
    return getattr(node, "id", "") == kind


def _containers(node: Node, text: str, depth: int) -> Iterator[tuple[list[Word], dict[str, Word]]]:
    """Every mapping with `command` or `args`, however deep, with its variables."""
    if depth > 24:
        return
    if _is_node(node, "sequence"):
        for item in node.value:
            yield from _containers(item, text, depth + 1)
        return
    if not _is_node(node, "mapping"):
        return
    fields = {name.value: value for name, value in node.value if _is_node(name, "scalar")}
    words = [word for name in _WORDS if _is_node(fields.get(name), "sequence") for word in _words(fields[name], text)]
    if words:
        yield words, dict(_variables(fields.get("env"), text))
        return
    for value in fields.values():
        yield from _containers(value, text, depth + 1)


def _variables(node: Any, text: str) -> Iterator[tuple[str, Word]]:
    """`env:` as a list of names and values, or as a mapping."""
    if _is_node(node, "mapping"):
        pairs = [(name, value) for name, value in node.value if _is_node(name, "scalar")]
        yield from ((name.value, _word(value, text)) for name, value in pairs if _is_node(value, "scalar"))
    for item in node.value if _is_node(node, "sequence") else ():
        fields = {name.value: value for name, value in item.value if _is_node(name, "scalar")} if _is_node(item, "mapping") else {}
        if _is_node(fields.get("name"), "scalar") and _is_node(fields.get("value"), "scalar"):
            yield fields["name"].value, _word(fields["value"], text)


def _words(node: Any, text: str) -> list[Word]:
    return [_word(item, text) for item in node.value[:_MAX_WORDS] if _is_node(item, "scalar")]


def _word(node: Any, text: str) -> Word:
    """A scalar as a shell word; unsure if Kubernetes would expand a `$(NAME)` in it."""
    start, end = node.start_mark.index, node.end_mark.index
    value, written = node.value, text[start:end]
    if node.style in ("|", ">"):
        end = start + len(written.rstrip())
    chars = Chars(value, [start] * len(value), [end] * len(value))
    inner = start + (node.style in ("'", '"'))
    if text[inner : inner + len(value)] == value:
        chars = Chars()
        chars.literal(value, inner)
    elif node.style == "|":
        chars = _block_chars(value, text, start)
    sure = "$(" not in value or node.style in ("|", ">")
    chars.sure = sure
    return Word(value, start, end, sure, chars)


def _block_chars(value: str, text: str, start: int) -> Chars:
    """Offsets of a literal block: each line is indented in the text."""
    chars, at = Chars(), text.find("\n", start) + 1
    for line in value.splitlines(keepends=True):
        bare = line.rstrip("\n")
        at = text.find(bare, at)
        if at < 0:
            return Chars(value, [start] * len(value), [start] * len(value))
        chars.literal(bare, at)
        at += len(bare)
        if line.endswith("\n"):
            stop = text.find("\n", at)
            chars.add("\n", stop if stop >= 0 else at, (stop if stop >= 0 else at) + 1)
    return chars


def _start_of_words(words: Sequence[Word], env: dict[str, Word], text: str) -> list[Launch]:
    """The launch that the words describe; options without a program belong to one named elsewhere."""
    if not words or not any(word.text.startswith("-") or "=" in word.text for word in words):
        return []
    launches_ = command_launches(Command(tuple(words), env, words[0].start), text)
    return [_as_list(launch) if launch.orphan else launch for launch in launches_]


def _as_list(launch: Launch) -> Launch:
    return replace(launch, launcher="list", orphan=False)


def join_option_lines(launches_: Sequence[Launch]) -> list[Launch]:
    """Join options on lines of their own, without any program, into one launch instead of many cut-off ones."""
    orphans = [launch for launch in launches_ if launch.orphan]
    if not orphans or any(launch.program for launch in launches_) or any(launch.env for launch in launches_):
        return list(launches_)
    flags = tuple(flag for launch in orphans for flag in launch.flags)
    files = tuple(word for launch in orphans for word in launch.files)
    return [replace(orphans[0], launcher="list", flags=flags, files=files, end=orphans[-1].end, orphan=False)]


def parse_python_lists(text: str) -> list[Launch]:
    """The launches in a script's lists of strings: `subprocess.run(["torchrun", "train.py", "--bs", "8"])`."""
    if not _OPTION_ITEM.search(text) and "--" not in text:
        return []
    # the reader of Python is loaded only for scripts
    from diagnose.adapters.python.script_calls import parse_script
    from diagnose.adapters.python.script_values import NodePlaces

    place = NodePlaces(text)
    result: list[Launch] = []
    for node in ast.walk(parse_script(text)):
        if isinstance(node, (ast.List, ast.Tuple)) and len(node.elts) > 1:
            words = [_word_of_expression(item, place, text) for item in node.elts[:_MAX_WORDS]]
            if any(word.text.startswith("--") for word in words) and words[0].sure:
                result += _start_of_words(words, {}, text)
    return result


def _word_of_expression(node: ast.expr, place: NodePlaces, text: str) -> Word:
    start, end = place.span(node)
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        is_literal = isinstance(node, ast.Constant) and isinstance(node.value, (int, float))
        return Word(str(node.value) if isinstance(node, ast.Constant) else text[start:end], start, end, is_literal)
    chars = Chars()
    if text[start + 1 : start + 1 + len(node.value)] == node.value:
        chars.literal(node.value, start + 1)
    else:
        chars.add(node.value, start, end)
    return Word(node.value, start, end, True, chars)
