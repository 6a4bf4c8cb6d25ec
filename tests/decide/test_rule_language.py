"""The language of rule lines: what it reads, what it refuses, and that printing gives back what was read."""

from __future__ import annotations

import json

import pytest
from collected import for_each
from hypothesis import given, settings
from hypothesis import strategies as st

from diagnose.decide import comparison as compare
from diagnose.decide.expression import Comparison, Figure, Name, Node, Product, Share, Sum, comparison_of, names, parse, to_data
from diagnose.errors import UserError
from diagnose.ternary import any_of
from diagnose.units import Version

FACTS = st.sampled_from(["log.requested", "log.free", "train.max_seq_len", "alloc.expandable_segments", "version.trl"])
FIGURES = st.one_of(
    st.builds(lambda n, unit: Figure("size", f"{n} {unit}"), st.integers(0, 999), st.sampled_from(["B", "KiB", "MiB", "GiB", "TiB"])),
    st.builds(lambda n: Figure("number", str(n)), st.integers(0, 10**6)),
    st.builds(lambda n: Figure("version", f"{n}.4.1"), st.integers(0, 9)),
    st.sampled_from([Figure("word", "enabled"), Figure("word", "flash-attn"), Figure("number", "0.25"), Figure("version", "0.7.0.post1")]),
)


def _grown(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    return st.one_of(
        st.builds(Share, st.sampled_from(["5", "12.5"]), inner),
        st.builds(lambda parts: Product(tuple(parts)), st.lists(inner, min_size=2, max_size=3)),
        st.builds(
            lambda first, rest: Sum(first, tuple(rest)),
            inner,
            st.lists(st.tuples(st.sampled_from(["+", "-"]), inner), min_size=1, max_size=3),
        ),
    )


NODES: st.SearchStrategy[Node] = st.recursive(st.one_of(st.builds(Name, FACTS), FIGURES), _grown, max_leaves=6)
COMPARISONS = st.builds(Comparison, NODES, st.sampled_from([">=", "<=", "==", "!=", ">", "<"]), NODES)


@settings(max_examples=120, deadline=None)
@given(COMPARISONS)
def test_printing_then_parsing_gives_the_same_tree(comparison: Comparison) -> None:
    assert parse(str(comparison)) == comparison


@settings(max_examples=60, deadline=None)
@given(COMPARISONS)
def test_a_compiled_tree_survives_json(comparison: Comparison) -> None:
    """Rules are shipped as JSON, so that running them needs no grammar."""
    assert comparison_of(json.loads(json.dumps(to_data(comparison)))) == comparison


@for_each(
    "line, printed",
    [
        ("log.requested>log.free", "log.requested > log.free"),
        ("10% of log.capacity <= log.free", "10% of log.capacity <= log.free"),
        ("log.free >= 512MiB", "log.free >= 512 MiB"),
        ("2*train.micro_batch_size < 8", "2 * train.micro_batch_size < 8"),
        ("log.free - (log.requested - 1 B) > 0 B", "log.free - (log.requested - 1 B) > 0 B"),
        ("10% of (log.free + log.requested) > 1.5 GiB", "10% of (log.free + log.requested) > 1.5 GiB"),
        ("version.openrlhf >= 0.7.0.post1", "version.openrlhf >= 0.7.0.post1"),
        ("version.trl < 1.6", "version.trl < 1.6"),
    ],
)
def test_every_form_of_the_handbook_reads(line: str, printed: str) -> None:
    assert str(parse(line)) == printed
    compare.kind_of(parse(line))


def test_decimal_units_are_refused_with_the_binary_one() -> None:
    with pytest.raises(UserError) as refused:
        parse("log.free > 3 GB")
    assert "GiB" in str(refused.value)


@for_each(
    "line", ["", "log.free", "log.free > ", "a.b > b.c > c.d", "log.free > 1 GiB and x.y > 2", "log.free > 'x'", "(" * 400, "x" * 9000]
)
def test_what_is_no_comparison_is_one_sentence(line: str) -> None:
    with pytest.raises(UserError):
        parse(line)


def test_names_come_in_reading_order() -> None:
    assert list(names(parse("log.requested <= log.free + 10% of log.capacity"))) == ["log.requested", "log.free", "log.capacity"]


@for_each(
    "line",
    [
        "log.free > 3",
        "log.free == enabled",
        "train.stage > 1 GiB",
        "version.trl > 1 GiB",
        "log.free * log.requested > 1 GiB",
        "log.free + 1 > 1 GiB",
        "model.shape == llama",
    ],
)
def test_kinds_that_do_not_meet_are_refused(line: str) -> None:
    """A size beside a count, or beside a word, is a mistake of the author."""
    with pytest.raises(UserError):
        compare.kind_of(parse(line))


def test_an_unknown_fact_is_refused_with_the_nearest() -> None:
    with pytest.raises(UserError) as refused:
        compare.kind_of(parse("log.requestd > log.free"))
    assert "log.requested" in str(refused.value)


def test_a_word_that_a_fact_can_never_be_is_refused() -> None:
    with pytest.raises(UserError):
        compare.check_words(parse("model.attention == flash"))
    with pytest.raises(UserError):
        compare.check_words(parse("alloc.expandable_segments == on"))
    compare.check_words(parse("alloc.expandable_segments == enabled"))


def test_one_of_several_is_read_printed_and_kept() -> None:
    """`in` takes words, numbers and releases."""
    for line in ("log.phase in (forward, loss)", "zero.stage in (1, 2)", "version.torch in (2.1, 2.5.1)"):
        comparison = parse(line)
        assert str(comparison) == line
        assert comparison_of(json.loads(json.dumps(to_data(comparison)))) == comparison
        assert list(names(comparison)) == [line.partition(" ")[0]]


@pytest.mark.parametrize(
    "line", ["log.phase in forward", "log.phase in (forward)", "log.phase in ()", "1 in (1, 2)", "log.free in (1 GiB, 2 GiB)"]
)
def test_in_asks_whether_a_fact_is_one_of_at_least_two_values(line: str) -> None:
    """One value is `==`, and a printed size is a range that is no list's member."""
    with pytest.raises(UserError):
        parse(line)


@pytest.mark.parametrize("phase", ["forward", "loss", "init", "unknown", None])
def test_one_of_several_is_as_true_as_any_of_their_comparisons(phase: str | None) -> None:
    """Unknown where the fact is: neither one of them nor none."""
    lines = [parse("log.phase == forward"), parse("log.phase == loss")]
    together = compare.holds(parse("log.phase in (forward, loss)"), lambda _: phase)
    assert together is any_of(compare.holds(line, lambda _: phase) for line in lines)
    assert (together is None) is (phase in (None, "unknown"))


def test_a_number_and_a_release_may_be_one_of_several() -> None:
    """They compare as numbers and releases do, not as text."""
    assert compare.holds(parse("zero.stage in (2, 3)"), lambda _: 3) is True
    assert compare.holds(parse("version.torch in (2.1, 2.5.1)"), lambda _: Version("2.1.0")) is True
    assert compare.holds(parse("version.torch in (2.1, 2.5.1)"), lambda _: Version("2.2")) is False


def test_a_word_among_several_that_a_fact_can_never_be_is_refused() -> None:
    """So are values of different kinds."""
    with pytest.raises(UserError):
        compare.check_words(parse("log.phase in (forward, forwards)"))
    with pytest.raises(UserError):
        compare.kind_of(parse("zero.stage in (2, forward)"))
