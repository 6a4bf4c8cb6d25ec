"""Records behave as frozen dataclasses do where we rely on it."""

from __future__ import annotations

import dataclasses
import pickle
from functools import cached_property

import pytest

from diagnose.record import field, fields, is_record, record, replace


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


@record(frozen=False)
class Draft:
    lines: list[str] = field(default_factory=list)


@record(frozen=False, eq=False)
class Itself:
    name: str


@record(frozen=False, slots=False)
class Remembering:
    number: int

    @cached_property
    def double(self) -> int:
        return 2 * self.number


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


def test_it_has_slots_and_tools_like_those_of_dataclasses() -> None:
    assert replace(Point(1), y=5).sum == 6
    assert [one.name for one in fields(Point)] == ["x", "y", "seen"]
    assert is_record(Point(1))
    assert not is_record(1)
    with pytest.raises(AttributeError):
        Point(1).z = 3  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        replace(Point(1), z=3)  # type: ignore[call-arg]


def test_dataclasses_takes_it_for_one_of_its_own() -> None:
    """Who uses the package from Python need not know how its values are made."""
    assert dataclasses.replace(Point(1), y=5) == Point(1, 5)
    assert dataclasses.asdict(Named(number=3)) == {"label": "", "number": 3}
    assert [one.default_factory for one in dataclasses.fields(Draft)] == [list]
    assert [one.default for one in dataclasses.fields(Point)] == [dataclasses.MISSING, 0, ()]


def test_a_field_of_dataclasses_is_understood() -> None:
    """The type checker cannot tell the two apart."""

    @record
    class Mixed:
        first: int = dataclasses.field(default=1)
        rest: list[int] = dataclasses.field(default_factory=list)

    assert Mixed() == Mixed(1, [])


def test_values_do_not_share_what_a_factory_makes() -> None:
    assert Draft().lines is not Draft().lines
    with pytest.raises(ValueError, match="share"):

        @record
        class Shared:
            lines: list[str] = []


def test_without_equality_each_is_only_itself() -> None:
    one = Itself("a")
    assert one == one != Itself("a")
    assert len({one, Itself("a")}) == 2


def test_without_slots_it_can_remember() -> None:
    assert Remembering(2).double == 4


def test_keyword_only_records_take_keywords() -> None:
    with pytest.raises(TypeError):
        Named("a")  # type: ignore[call-arg]


def test_it_travels_between_processes() -> None:
    """Triage sends diagnoses from its workers."""
    assert pickle.loads(pickle.dumps(Point(1, 2, (3,)))) == Point(1, 2, (3,))
