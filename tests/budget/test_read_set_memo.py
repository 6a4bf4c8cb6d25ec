"""What is remembered of a function of a book is what it would return: whatever the book says, however often it is asked."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from diagnose.budget.moments import read_set_memo
from diagnose.budget.moments.read_set_memo import ReadSetMemo
from diagnose.facts import Fact, FactBook, Origin, Value, Witness

NAMES = ("train.micro_batch_size", "zero.stage", "train.precision", "log.phase")
VALUES: st.SearchStrategy[Any] = st.sampled_from([0, 1, True, False, None, "bf16", "fp32"])
ORIGINS: st.SearchStrategy[Origin] = st.sampled_from(["log", "config", "default"])
BOOKS = st.lists(st.builds(Fact, st.sampled_from(NAMES), VALUES, ORIGINS, st.builds(Witness, st.sampled_from(["a", "b"]))), max_size=6)


def drawn(book: FactBook, role: str) -> tuple[object, ...]:
    """A function that asks in every way there is, and asks other things after other answers."""
    said: list[object] = [role, book.value(NAMES[0])]
    if book.count(NAMES[0]):
        said += [repr(book.value(NAMES[1])), NAMES[2] in book]
    else:
        fact = book.fact(NAMES[1])
        said += [None if fact is None else (repr(fact.value), fact.origin)]
    if book.word(NAMES[2]) == "bf16":
        other = book.changed({NAMES[0]: 4, NAMES[3]: None})
        said += [other.count(NAMES[0]), NAMES[3] in other, repr(other.value(NAMES[1])), len(other.all(NAMES[2]))]
        said += [fact.origin for fact in (other.fact(NAMES[0]),) if fact is not None]
    if book.value(NAMES[3]) is not None:
        said += [sum(fact.name == NAMES[3] for fact in book)]
    return tuple(said)


@given(st.lists(st.tuples(BOOKS, st.sampled_from(["train", "critic"])), max_size=12))
def test_what_is_remembered_is_what_would_be_drawn(asked: list[tuple[list[Fact], str]]) -> None:
    memory = ReadSetMemo(drawn)
    for facts, role in asked:
        book = FactBook(facts)
        assert list(map(repr, memory.of(book, role))) == list(map(repr, drawn(book, role)))


def test_what_nobody_asks_for_makes_no_difference() -> None:
    """Jobs that differ where the function does not look share its result: it is drawn once."""
    times: list[str] = []

    def stage(book: FactBook, role: str) -> object:
        times.append(role)
        return book.value("zero.stage")

    memory = ReadSetMemo(stage)
    for micro in range(5):
        book = FactBook([Fact("zero.stage", 3, "config", Witness(f"{micro}")), Fact("train.micro_batch_size", micro, "log", Witness(""))])
        assert memory.of(book, "train") == 3
    assert times == ["train"]


def test_too_many_results_are_forgotten(monkeypatch: Any) -> None:
    monkeypatch.setattr(read_set_memo, "MOST", 3)
    memory: ReadSetMemo[str, Value] = ReadSetMemo(lambda book, role: book.value("zero.stage"))
    for stage in (1, 2, 3, 4, 5, 1, 2):
        assert memory.of(FactBook([Fact("zero.stage", stage, "config", Witness(""))]), "train") == stage
    assert memory._count <= 3
