"""Settings in pasted blocks that no reader of configs takes: fragments of calls, files of programs without a table."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from diagnose.adapters.formats.config_value import Leaf
from diagnose.adapters.schema import lexicon
from diagnose.facts import Fact, Witness

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from diagnose.inputs.pasted_page import Block

LINES, WIDTH = 400, 400  # lines read of a block, and characters of a line
#: A line that holds nothing but settings: `num_workers=1, batch_size=1,`, `"batch": 4`. Comments are taken off.
_ITEM = r"""["']?[A-Za-z_][\w.-]{0,60}["']? {0,8}[=:] {0,8}(?:"[^"]{0,120}"|'[^']{0,120}'|\[[^\[\]()]{0,80}\]|[\w./+-]{1,80})"""
_ITEMS = re.compile(rf"\s{{0,40}}{_ITEM}(?:\s{{0,4}},\s{{0,4}}{_ITEM}){{0,12}}\s{{0,4}}(?:[)}}\],]{{1,4}}\s{{0,4}})?$")
_SETTING = re.compile(r"""["']?([A-Za-z_][\w.-]{0,60})["']? {0,8}[=:] {0,8}["']?(?P<value>[\w./+-]{1,120})(?!["']?[\w(\[])""")
_COMMENT = re.compile(r"\s(?:#|//).*$")
#: A line that opens a block, whose name says what its settings are of: `[general]`, `eval:`, `val_dataloader = dict(`.
_OPENS = re.compile(
    r"\s{0,40}(?:\[{1,2}([\w.-]{1,60})\]{1,2}|[\"']?([A-Za-z_][\w.-]{0,60})[\"']?(?::|\s?[:=]\s?[\w.]{0,60}[({\[]))\s{0,4}$"
)
#: What shows that a program printed a block, or that it is the code of a library.
_NO_SETTINGS = re.compile(r"Traceback \(most recent|^\s{0,8}File \"|\d\d:\d\d:\d\d|%\||^\s{0,40}(?:def|class|diff --git|@@) ", re.MULTILINE)


def facts(blocks: Iterable[Block], page: str) -> list[Fact]:
    """What the blocks of a page set by the names of their keys, each as a guess, the first of a fact."""
    found: dict[str, Fact] = {}
    for block in blocks:
        if _NO_SETTINGS.search(block.text):
            continue
        for guess in lexicon.guesses(list(_leaves(block)), lexicon.NEEDED).read:
            place = Witness(page, guess.leaf.line, key=guess.leaf.key.rpartition(".")[2])
            found.setdefault(guess.knob, Fact(guess.knob, guess.value, "guessed", place))
    return list(found.values())


def _leaves(block: Block) -> Iterator[Leaf]:
    opened = ""
    for line, text in enumerate(block.text.split("\n")[:LINES], block.line):
        plain = _COMMENT.sub("", text[:WIDTH])
        if header := _OPENS.match(plain):
            opened = f"{header[1] or header[2]}."
        elif _ITEMS.match(plain):
            for setting in _SETTING.finditer(plain):
                value = setting["value"]
                value = value.replace("_", "") if value[0].isdecimal() else value
                yield Leaf(f"{opened}{setting[1]}", value, setting["value"], 0, 0, line, setting.start(1) + 1)
