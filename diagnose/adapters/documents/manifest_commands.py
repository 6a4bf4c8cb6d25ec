"""Reads commands in files of other programs: words and texts in YAML or JSON (compose, Kubernetes, launch.json), one option per line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from diagnose import rule_files
from diagnose.adapters.formats.config_value import Unreadable
from diagnose.adapters.formats.yaml_file import compose_documents
from diagnose.adapters.launch.launch_command import Launch, starts_program, text_launches, text_words, words_launches
from diagnose.adapters.launch.launchers import is_image
from diagnose.adapters.shell.shell_text import Chars, Word

_MAX_WORDS = 2000
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(?=.)")
_VARIABLE = re.compile(r"\$\(([A-Za-z_]\w*)\)")
_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|(//[^\n]*|/\*.*?\*/|,(?=\s*(?:[\]}]|//)))', re.DOTALL)


def parse_data_lists(text: str) -> list[Launch]:
    """The launches in the argument lists and command texts of a YAML or JSON text; empty for a text that cannot be parsed."""
    try:
        result: list[Launch] = []
        for node in compose_documents(_blank_comments(text) if text.lstrip()[:1] in ("{", "/") else text):
            if _is_node(node, "sequence"):
                result += words_launches(_words(node, text), {}, text)
            elif node is not None:
                result += [launch for holder in _holders(node, 0) for launch in _launches_of(holder, text)]
        return result
    except (Unreadable, RecursionError):
        return []


def _blank_comments(text: str) -> str:
    """JSON without the comments and last commas that editors allow, of the same length."""
    return _COMMENT.sub(lambda match: " " * len(match[0]) if match[1] else match[0], text)


def _is_node(node: object, kind: str) -> bool:
    return getattr(node, "id", "") == kind


def _holders(node: Any, depth: int) -> Iterator[dict[str, Any]]:
    """Every mapping that holds a command, however deep, by its keys."""
    if depth > 24:
        return
    if _is_node(node, "sequence"):
        for item in node.value:
            yield from _holders(item, depth + 1)
        return
    if not _is_node(node, "mapping"):
        return
    fields = {name.value: value for name, value in node.value if _is_node(name, "scalar")}
    keys = rule_files.table("programs")["holders"]
    image = fields.get(keys["image"])
    entered = _is_node(image, "scalar") and image is not None and is_image(image.value)  # it needs no command
    if entered or any(_is_node(fields.get(key), "sequence") or _is_node(fields.get(key), "scalar") for key in keys["words"]):
        yield fields
        return
    for value in fields.values():
        yield from _holders(value, depth + 1)


def _launches_of(fields: dict[str, Any], text: str) -> list[Launch]:
    """What the command of one mapping starts: its words, or, where there is nothing but a text of several commands, those of the text."""
    keys = rule_files.table("programs")["holders"]
    env = {name: word for key in keys["env"] for name, word in _variables(fields.get(key), text)}
    words: list[Word] = []
    for key, starters in keys["programs"].items():
        if _is_node(fields.get(key), "scalar"):
            program = _word(fields[key], text)
            words += [*(Word(starter, program.start, program.start) for starter in starters), program]
    for key in keys["words"]:
        node = fields.get(key)
        if _is_node(node, "sequence"):
            words += _words(node, text)
        elif _is_node(node, "scalar") and (chars := _word(node, text).chars) is not None:
            words += text_words(chars)
    words = [_expanded(word, env) for word in words]
    image = fields.get(keys["image"])
    if _is_node(image, "scalar") and image is not None and (words[0].text.startswith("-") if words else is_image(image.value)):
        words = [_word(image, text), *words]
    texts = [word for word in words if word.chars is not None and re.search(r"\s", word.text.strip())]
    if words and len(texts) == len(words):  # each is a command of its own, or several
        nested = [launch for word in texts if word.chars is not None for launch in text_launches(word.chars, env)]
        return nested if any(starts_program(launch) or (launch.program and launch.flags) for launch in nested) else []
    return words_launches(words, env, text)


def _expanded(word: Word, env: Mapping[str, Word]) -> Word:
    """A word with the variables of its container that Kubernetes puts into it: `--batch-size=$(BATCH)`."""
    parts = _VARIABLE.split(word.text) if not word.sure and word.chars is not None else []
    if len(parts) < 2 or word.chars is None or not all(name in env and env[name].sure for name in parts[1::2]):
        return word
    chars = Chars()
    at = 0
    for index, part in enumerate(parts):
        if index % 2:
            value, end = env[part], at + len(part) + 3
            for char in value.text:
                chars.add(char, value.start, value.end)
            at = end
        else:
            chars.append(part, word.chars.starts[at : at + len(part)], word.chars.ends[at : at + len(part)])
            at += len(part)
    return Word(chars.text, word.start, word.end, True, chars)


def _variables(node: Any, text: str) -> Iterator[tuple[str, Word]]:
    """`env:` as a list of names and values or of assignments, or as a mapping."""
    if _is_node(node, "mapping"):
        pairs = [(name, value) for name, value in node.value if _is_node(name, "scalar")]
        yield from ((name.value, _word(value, text)) for name, value in pairs if _is_node(value, "scalar"))
    for item in node.value if _is_node(node, "sequence") else ():
        fields = {name.value: value for name, value in item.value if _is_node(name, "scalar")} if _is_node(item, "mapping") else {}
        assignment = _ASSIGNMENT.match(item.value) if _is_node(item, "scalar") else None
        chars = _word(item, text).chars if assignment else None
        if assignment and chars is not None:
            yield assignment[1], chars.word(assignment.end(1) + 1, len(item.value))
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
    elif placed := _chars_in_order(value, text, inner, end):
        chars = placed
    sure = "$(" not in value or node.style in ("|", ">")
    chars.sure = sure
    return Word(value, start, end, sure, chars)


def _chars_in_order(value: str, text: str, start: int, end: int) -> Chars | None:
    """Offsets of a text that YAML folds or JSON escapes: its words as they are written, in their order; None where one is escaped."""
    chars, at = Chars(), start
    for part in re.finditer(r"(\s+)|([^\s\"\\]+)|(.)", value):
        if part[1]:
            chars.add(part[1], at, at)
            continue
        found = text.find(part[0], at, end)
        if found < 0:
            return None
        chars.literal(part[0], found)
        at = found + len(part[0])
    return chars


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


def join_option_lines(launches_: Sequence[Launch]) -> list[Launch]:
    """Join options on lines of their own, without any program, into one launch instead of many cut-off ones."""
    orphans = [launch for launch in launches_ if launch.orphan]
    if not orphans or any(launch.program for launch in launches_) or any(launch.env for launch in launches_):
        return list(launches_)
    flags = tuple(flag for launch in orphans for flag in launch.flags)
    files = tuple(word for launch in orphans for word in launch.files)
    return [replace(orphans[0], launcher="list", flags=flags, files=files, end=orphans[-1].end, orphan=False)]


def _split(chars: Chars) -> list[Word]:
    """The words of a variable's text that is all options; none of any other."""
    if not chars.sure or not chars.text.lstrip().startswith("--"):
        return []
    return [chars.word(match.start(), match.end()) for match in islice(re.finditer(r"\S+", chars.text), _MAX_WORDS)]


def unused_arrays(variables: Iterable[object], launches_: Sequence[Launch], text: str) -> list[Launch]:
    """The options of arrays (MODEL_ARGS=(--num-layers 36 ...)) and of texts (ARGS="--epochs 9 ...") that no command of the script takes, as
    one launch: people paste the part of a script that they changed. Empty where some script is started with options of its own."""
    lists = (_split(value) if isinstance(value, Chars) else value for value in variables)
    arrays = [words for words in lists if isinstance(words, list) and words and words[0].text.startswith("--")]
    if not arrays or any(flag.key.startswith("--") and launch.program.endswith(".py") for launch in launches_ for flag in launch.flags):
        return []
    taken = {flag.pos for launch in launches_ for flag in launch.flags}
    words = [word for array in arrays if not any(word.start in taken for word in array) for word in array]
    return words_launches(words, {}, text)
