"""The ledger of every configuration of the corpus: what it prints can be recomputed, and its ranges hold what they leave open."""

from __future__ import annotations

import re
from itertools import chain
from typing import Any

import pytest
from checkout import ROOT
from collected import for_each
from configs import NAMES, checked
from pencil import arithmetic

from diagnose.budget.model.ledger import Ledger, Term
from diagnose.budget.moments.role_ledgers import ledgers
from diagnose.facts import FactBook

DOCUMENTED = (ROOT / "docs" / "memory.md").read_text(encoding="utf-8").partition("## States")[0]

#: What a precision may be that nobody states. The ledger must have counted with each of them.
OPEN = {"train.precision": ("bf16", "fp16", "fp32"), "train.load_dtype": ("bf16", "fp16", "fp32")}


def every_term(found: tuple[Ledger, ...]) -> list[Term]:
    """Of every moment of every role, on the cards and on the host."""
    moments = chain.from_iterable((*ledger.moments, *ledger.host.moments) for ledger in found)
    return [term for moment in moments for term in moment.terms] + [term for ledger in found for term in ledger.host.terms]


@pytest.mark.parametrize("name", NAMES)
def test_a_pencil_gets_the_same(name: str) -> None:
    """Every term says its formula in letters that docs/memory.md explains, in figures that give its bytes, and where it is from."""
    for term in every_term(checked(name).ledgers):
        assert abs(arithmetic(term.numbers) - term.size.bytes) < 1, term
        assert 0 <= term.size.low <= term.size.bytes <= term.size.high, term
        assert term.source, term
        for letter in re.findall(r"[A-Za-z_]\w*", re.sub(r"\d+e\d+", "", term.symbols)):
            assert letter in ("min", "max", "ceil", "pow2") or re.search(rf"(?<!\w){letter}(?!\w)", DOCUMENTED), f"{letter} of {term.key}"


@for_each("name", NAMES)
def test_a_range_holds_what_it_leaves_open(name: str) -> None:
    """Saying a precision that was open never leads out of the range that was shown."""
    book = FactBook(checked(name).facts)
    before = ledgers(book)
    for knob, words in OPEN.items():
        open_for = [ledger for ledger in before if knob in ledger.unknown]
        for word in words if open_for else ():
            for shown, settled in zip(before, ledgers(book.changed({knob: word})), strict=True):
                if knob not in shown.unknown or not shown.moments:
                    continue
                low, high = (max(getattr(moment.total, end) for moment in shown.moments) for end in ("low", "high"))
                assert low <= max(moment.total.bytes for moment in settled.moments) <= high, (knob, word, shown.role)


@for_each("name", NAMES)
def test_every_moment_is_told(name: str) -> None:
    """The report as data has every moment of every role, those of the host as well, and each sums up to its terms."""
    found = checked(name)
    budgets: Any = found.to_dict("en")["budgets"]
    for ledger, told in zip(found.ledgers, budgets, strict=True):
        pairs = [*zip(ledger.moments, told["moments"], strict=True), *zip(ledger.host.moments, told["host"]["moments"], strict=True)]
        for moment, said in pairs:
            assert (said["name"], len(said["terms"])) == (moment.name, len(moment.terms))
            assert said["total"]["bytes"] == sum(term["size"]["bytes"] for term in said["terms"])
