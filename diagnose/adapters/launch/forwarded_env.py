"""Variables that a command hands on to what runs elsewhere: in a container, on the nodes of a job, on the workers of a Ray cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from diagnose.adapters.shell.shell_text import Word

_ASSIGNED = re.compile(r"(?:--env=|-e=)?([A-Z_][A-Z0-9_]*)=")


def handed_on(words: Sequence[Word]) -> dict[str, Word]:
    """`-e X=1` and `--env X=1` of containers, `--export=ALL,X=1` of srun, `--runtime-env-json '{"env_vars": {"X": "1"}}'` of Ray."""
    env = {}
    for word in words[1:]:
        if assigned := _ASSIGNED.match(word.text):
            env[assigned[1]] = Word(word.text[assigned.end() :], word.start + assigned.end(), word.end, word.sure)
    for word, start in given(words, "--export"):
        env |= dict(_exported(word, start))
    for word, start in given(words, "--runtime-env-json"):
        env |= dict(_of_workers(word, start))
    return env


def given(words: Sequence[Word], option: str) -> Iterator[tuple[Word, int]]:
    """The word that holds an option's value, and where in it the value begins."""
    for index, word in enumerate(words):
        if word.text == "--":
            return
        if word.text.startswith(f"{option}="):
            yield word, len(option) + 1
        elif word.text == option and index + 1 < len(words):
            yield words[index + 1], 0


def _exported(word: Word, start: int) -> Iterator[tuple[str, Word]]:
    for item in re.finditer(r"([A-Za-z_]\w*)=([^,]+)", word.text[start:]):
        if word.chars is not None:
            yield item[1], word.chars.word(start + item.start(2), start + item.end(2))


def _of_workers(word: Word, start: int) -> Iterator[tuple[str, Word]]:
    from diagnose.adapters.formats.config_value import Unreadable
    from diagnose.adapters.formats.json_file import Reader

    chars = word.chars
    if chars is None or len(chars.at) != len(word.text):
        return
    try:
        leaves = Reader(word.text[start:]).leaves()
    except (Unreadable, RecursionError):
        return
    for leaf in leaves:
        block, _, name = leaf.key.rpartition(".")
        begin, end = start + leaf.start + 1, start + leaf.end - 1
        if block == "env_vars" and leaf.text and word.text[begin:end] == leaf.text:
            yield name, chars.word(begin, end)
