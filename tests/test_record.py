"""Records behave as frozen dataclasses do where we rely on it."""

from __future__ import annotations

import pickle
from dataclasses import field, fields, replace

import pytest

from diagnose.record import record


@record
class Point:
    """Two numbers and a list."""

    x: int
    y: int = 0
    seen: tuple[int, ...] = field(default=())

    @property
    def sum(self) -> int:
        return self.x + self.y


@record(kw_only=True)
class Named:
    label: str = ""
    number: int


@record
class Quiet:
    secret: str

    def __repr__(self) -> str:
        return "Quiet(...)"


def test_values_compare_and_hash_by_their_fields() -> None:
    assert Point(1, 2) == Point(1, 2) != Point(1, 3)
    assert len({Point(1), Point(1), Point(2)}) == 2
    assert Quiet("a") == Quiet("a")


def test_a_value_of_another_class_is_never_equal() -> None:
    other: object = Named(number=1)
    assert other != Point(1)
    assert Point(1) != other


def test_it_is_shown_by_its_fields_unless_it_says_otherwise() -> None:
    assert repr(Point(1, 2)) == "Point(x=1, y=2, seen=())"
    assert repr(Quiet("a")) == "Quiet(...)"


def test_it_has_slots_and_the_tools_of_dataclasses() -> None:
    assert replace(Point(1), y=5).sum == 6
    assert [one.name for one in fields(Point)] == ["x", "y", "seen"]
    with pytest.raises(AttributeError):
        Point(1).z = 3  # type: ignore[attr-defined]


def test_keyword_only_records_take_keywords() -> None:
    with pytest.raises(TypeError):
        Named("a")  # type: ignore[call-arg]


def test_it_travels_between_processes() -> None:
    """Triage sends diagnoses from its workers."""
    assert pickle.loads(pickle.dumps(Point(1, 2, (3,)))) == Point(1, 2, (3,))
