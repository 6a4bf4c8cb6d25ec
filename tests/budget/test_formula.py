"""The formulas of the ledger: what is shown in figures is what was computed."""

from __future__ import annotations

import pytest
from collected import for_each
from hypothesis import given
from hypothesis import strategies as st

from diagnose.budget.model.formulas import Span, formula, term


@for_each(
    "symbols, value",
    [
        ("2*P/N", 250),
        ("2 + 3*P", 3002),
        ("(2 + 3)*P", 5000),
        ("P - N - 1", 991),
        ("max(0, N - P)", 0),
        ("min(P, 1e9)", 1000),
        ("6*min(P, 40//N)", 30),
        ("ceil(P/3)", 334),
    ],
)
def test_evaluates(symbols: str, value: int) -> None:
    """Precedence, brackets and the functions that terms use."""
    assert formula(symbols).evaluate({"P": 1000, "N": 8}) == value


@for_each("text", ["", "2*", "(2", "2 3", "P.attr", "__import__('os')", "2**3", "max()"])
def test_nothing_else_is_a_formula(text: str) -> None:
    """A formula is arithmetic and nothing more: no attribute, no call of anything else."""
    with pytest.raises((ValueError, KeyError)):
        formula(text).evaluate({"P": 1})


@given(st.integers(1, 10**12), st.integers(1, 10**6), st.integers(1, 64))
def test_figures_mean_the_same(p: int, t: int, n: int) -> None:
    """The text in figures evaluates to what the text in letters does."""
    made = formula("2*P/N + (4*t - 1)*7")
    values = {"P": p, "t": t, "N": n}
    assert formula(made.figures(values)).evaluate({}) == made.evaluate(values)


def test_ranges_keep_their_order() -> None:
    """A letter known as a range makes a size with that range; what is divided by or subtracted turns it round."""
    made = term("stem", "activations", "2*P/w", {"P": 100, "w": Span(2, 4, 5)})
    assert (made.size.low, made.size.bytes, made.size.high) == (40, 50, 100)
    assert made.numbers == "2*100/4"


def test_byte_counts_stay_whole() -> None:
    """No rounding of what divides: 16-bit floats end at 2**53, parameters times bytes must not."""
    assert formula("2*P/N").evaluate({"P": 10**18, "N": 4}) == 5 * 10**17
