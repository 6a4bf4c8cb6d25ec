"""The two small languages of tables: spans of releases, and names with the words that they may have."""

from __future__ import annotations

import pytest

from diagnose.release_spans import EVERY, ReleaseSpan, from_data, releases
from diagnose.ternary import Truth
from diagnose.units import Version
from diagnose.word_conditions import UNSET, conditions, hold, is_one_of


@pytest.mark.parametrize(
    ("span", "release", "truth"),
    [
        (">=4.53 <4.56", "4.53.0", True),
        (">=4.53 <4.56", "4.56", False),
        (">=4.53 <4.56", "4.52.4", False),
        ("<=2.8", "2.8", True),
        ("<=2.8", "2.8.1", False),
        ("<2.3", None, None),
        ("", "0.1", True),
    ],
)
def test_a_release_lies_in_a_span_or_not_and_an_unknown_one_may(span: str, release: str | None, truth: Truth) -> None:
    """`>=` and `<=` belong to the span, `<` does not."""
    assert releases(span).holds(None if release is None else Version(release)) is truth


@pytest.mark.parametrize(
    ("span", "possible", "truth"),
    [
        (">=1 <2", EVERY, None),
        ("", EVERY, True),
        (">=1", from_data("1.5", None), True),
        (">=1", from_data(None, "0.9"), False),
        (">=1 <=2", from_data("2.1", None), False),
        (">=1 <=2", from_data("1.5", "2.5"), None),
        ("<2", ReleaseSpan(before=Version("2")), True),
        (">=2", ReleaseSpan(before=Version("2")), False),
        ("<2", from_data(None, "2"), None),
    ],
)
def test_of_several_possible_releases_a_span_covers_all_none_or_some(span: str, possible: ReleaseSpan, truth: Truth) -> None:
    """A configuration whose keys leave a range of releases open is judged by all of them."""
    assert releases(span).covers(possible) is truth


@pytest.mark.parametrize("text", ["4.53", ">=", "==2", ">=1 >=2", "< 2"])
def test_no_other_text_is_a_span(text: str) -> None:
    """A table with another spelling is wrong, not open to every release."""
    with pytest.raises(ValueError, match="not a"):
        releases(text)


@pytest.mark.parametrize(
    ("said", "words", "truth"),
    [
        ("full", ("full", "freeze"), True),
        ("Full", ("full",), True),
        ("lora", ("full", "freeze"), False),
        ("lora", ("!full",), True),
        ("full", ("!full",), False),
        ("run_sft.py", ("*_sft*",), True),
        ("unset", ("*",), False),
        (UNSET, ("unset",), True),
        (UNSET, ("set",), False),
        ("x", ("set",), True),
        (("a", "b"), ("b",), True),
        ((), ("b",), None),
        ((), ("set",), True),
        (None, ("b",), None),
        (True, ("enabled",), True),
        (True, ("false",), False),
        (3, ("3",), True),
        (Version("2.3"), ("<2", ">=2.2"), True),
        (Version("2.1"), ("<2", ">=2.2"), False),
    ],
)
def test_words_that_a_name_may_have(said: object, words: tuple[str, ...], truth: Truth) -> None:
    """What is unknown is neither one of them nor none."""
    assert is_one_of(said, words) is truth


def test_one_no_settles_conditions_and_one_unknown_leaves_them_open() -> None:
    """Conditions are all asked for at once; YAML's own switches are words."""
    wanted = conditions({"a": True, "b": [1, 2]})
    assert hold(wanted, lambda name: {"a": "true", "b": "2"}[name]) is True
    assert hold(wanted, lambda name: {"b": 3}.get(name)) is False
    assert hold(wanted, lambda name: {"b": 2}.get(name)) is None
    assert hold({}, lambda _: None) is True
