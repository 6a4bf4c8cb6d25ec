"""Our run of a compiled grammar reads what lark reads."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import lark
import pytest
from checkout import ROOT
from collected import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from sweep import examples, sample

from diagnose import lalr, rule_files

GRAMMARS = sorted(path.stem for path in (ROOT / "grammars").glob("*.lark"))

#: How much of the end of a log is looked at, and how much is read from a place on where a grammar's text could begin.
END, LONG = 2500, 600


@cache
def both(name: str) -> tuple[lark.Lark, lalr.Parser]:
    return lark.Lark(rule_files.grammar(name), parser="lalr", maybe_placeholders=False), rule_files.parser(name)


def of_lark(node: Any) -> Any:
    if isinstance(node, lark.Token):
        return lalr.Token(node.type, str(node), node.start_pos or 0, node.end_pos or 0, node.line or 0)
    return lalr.Tree(str(node.data), [of_lark(child) for child in node.children])


def alike(name: str, text: str) -> None:
    """Raises AssertionError where the two see another tree, or another place at which a text does not fit its grammar."""
    theirs, ours = both(name)
    try:
        expected: object = of_lark(theirs.parse(text))
    except lark.UnexpectedInput as trouble:
        expected = trouble.pos_in_stream, trouble.column
    try:
        seen: object = ours.parse(text)
    except lalr.Unread as trouble:
        seen = trouble.at, trouble.column
    assert seen == expected, text


def fits(name: str, text: str) -> bool:
    try:
        both(name)[1].parse(text)
    except lalr.Unread:
        return False
    return True


@cache
def logs() -> tuple[str, ...]:
    texts = [path.read_text(encoding="utf-8", errors="replace")[-END:] for path in sorted((ROOT / "corpus").rglob("*.log"))]
    return (*texts, *(" ".join(text.split()) for text in texts))


@for_each("name", [name for name in GRAMMARS if name != "rule_expr"])
def test_logs_are_read_alike(name: str) -> None:
    """From the first words of a message on, whole lines and collapsed, through what follows it: every grammar meets its own texts."""
    ours = both(name)[1]
    begins = re.compile(ours._terminals[ours._pattern_of_state[ours._start]])
    firsts = (
        (text, next((match.start() for match in begins.finditer(text) if match.lastgroup not in ours._ignored), None)) for text in logs()
    )
    texts = sample(sorted({text[first : first + LONG] for text, first in firsts if first is not None}), 150)
    fitting = [text for text in texts if fits(name, text)]
    assert fitting
    for text in (*sample(fitting, 20), *sample([text for text in texts if text not in fitting], 20)):
        alike(name, text)


@pytest.mark.parametrize("name", GRAMMARS)
@settings(max_examples=examples(30))
@given(data=st.data())
def test_words_of_a_grammar_in_any_order_are_read_alike(name: str, data: st.DataObject) -> None:
    words = sorted(set(re.findall(r"[A-Za-z][A-Za-z ]{3,}", rule_files.grammar(name))))
    word = st.sampled_from([*words, "1.5 GiB", "3", "2 MB", "a.b", "of", "%", ">=", "(", ")", "*", "\n", "out of memory."])
    alike(name, data.draw(st.lists(word, max_size=12).map(" ".join)))


@for_each("text", ["a.b >= 3 GiB", "size - 2 * 10% of a.b == (1 + x) * 4", "", "a.b >", "a.b >= 2 >= 3", "a.b >= ?"])
def test_comparisons_are_read_alike(text: str) -> None:
    alike("rule_expr", text)


def test_a_quoted_word_that_fits_a_terminal_is_refused() -> None:
    """Lark would tell the two apart after the match; the tables cannot, so that is said when they are made."""
    with pytest.raises(ValueError, match="priority"):
        lalr.compiled('start: ("if" | WORD)+\nWORD: /[a-z]+/\n%ignore " "')
