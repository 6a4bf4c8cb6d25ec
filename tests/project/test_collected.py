"""A test for many values runs every one of them, and says which fail."""

from __future__ import annotations

import pytest
from collected import for_each


def test_every_failure_is_told_and_the_rest_is_checked() -> None:
    seen = []

    @for_each("left", [1, 2])
    @for_each("right, name", [(1, "one"), pytest.param(2, "two", id="TWO")])
    def equal(left: int, right: int, name: str) -> None:
        seen.append((left, name))
        assert left == right, "differs"

    with pytest.raises(AssertionError, match=r"2 of 4 values fail") as failed:
        equal()
    assert seen == [(1, "one"), (1, "two"), (2, "one"), (2, "two")]
    assert "[1; TWO]" in str(failed.value) and "[2; 1, 'one']" in str(failed.value) and "differs" in str(failed.value)


@pytest.mark.parametrize("values", [[], ["skipped"]])
def test_where_nothing_is_checked_it_fails(values: list[str]) -> None:
    @for_each("value", values)
    def skips(value: str) -> None:
        pytest.skip(value)

    with pytest.raises(AssertionError, match="no value was checked"):
        skips()


@for_each("value", "ab")
def test_fixtures_reach_it(value: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert tmp_path_factory.mktemp(value).is_dir()
