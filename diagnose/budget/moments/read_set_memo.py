"""Memoises functions of a FactBook by the facts they read, so that books that differ elsewhere share a result. A plan prices the same
moments thousands of times, and similar jobs repeat them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Generic, TypeVar

from diagnose.facts import Fact, FactBook, Value, Witness

#: What the function returns, and the roles that it is a function of beside the book.
T = TypeVar("T")
Roles = TypeVar("Roles", bound=Hashable)

MOST = 1024  # results that are kept; some 20 KB each


class ReadSetMemo(Generic[Roles, T]):
    """Memo of a pure function of a fact book and its roles. Emptied when it holds `MOST` results."""

    def __init__(self, draw: Callable[[FactBook, Roles], T]) -> None:
        self._draw = draw
        self.forget()

    def forget(self) -> None:
        self._roots: dict[Roles, _Node[T]] = {}
        self._count = 0

    def of(self, book: FactBook, roles: Roles) -> T:
        """The function's result, computed or remembered."""
        node = self._roots.get(roles)
        while node is not None:
            if node.question is None:
                return node.result
            node = node.next.get(_read(book, *node.question))
        return self._learned(book, roles)

    def _learned(self, book: FactBook, roles: Roles) -> T:
        readings: list[tuple[_Question, Hashable]] = []
        result = self._draw(_RecordingBook(book, readings), roles)
        if self._count >= MOST:
            self.forget()
        self._count += 1
        node = self._roots.setdefault(roles, _Node())
        for question, answer in readings:
            node.question = question
            node = node.next.setdefault(answer, _Node())
        node.result = result
        return result


#: How a book is asked, and for which name.
_Question = tuple[str, str]


class _Node(Generic[T]):
    """Decision tree node: the next fact to read and a child per answer, or the result."""

    __slots__ = ("next", "question", "result")

    def __init__(self) -> None:
        self.question: _Question | None = None
        self.next: dict[Hashable, _Node[T]] = {}
        self.result: T  # of a leaf only


def _read(book: FactBook, kind: str, name: str) -> Hashable:
    """What a book answers, in a form that tells apart what a function may tell apart: True is not 1."""
    if kind == "value":
        value = book.value(name)
        return value.__class__, value
    if kind == "fact":
        return _comparable(book.fact(name))
    if kind == "all":
        return tuple(map(_comparable, book.all(name)))
    return tuple(_comparable(fact) for fact in book) if kind == "each" else name in book


def _comparable(fact: Fact | None) -> Hashable:
    return None if fact is None else (fact.name, fact.value.__class__, fact.value, fact.origin)


class _RecordingBook(FactBook):
    """A fact book that records each read. Facts are handed out without witnesses, because those are not recorded."""

    def __init__(self, book: FactBook, readings: list[tuple[_Question, Hashable]]) -> None:
        self._book, self._readings = book, readings
        self._noted: set[_Question] = set()
        self._values: dict[str, Value] = {}

    def value(self, name: str) -> Value:
        """Inlined, because a third of the time of computing a ledger goes into reading values, mostly repeatedly."""
        values = self._values
        if name not in values:
            value = values[name] = self._book.value(name)
            self._readings.append((("value", name), (value.__class__, value)))
        return values[name]

    def fact(self, name: str) -> Fact | None:
        self._note("fact", name)
        fact = self._book.fact(name)
        return None if fact is None else _without_witness(fact)

    def all(self, name: str) -> list[Fact]:
        self._note("all", name)
        return list(map(_without_witness, self._book.all(name)))

    def changed(self, values: Mapping[str, Value]) -> FactBook:
        return _ChangedBook(self, values)

    def __contains__(self, name: str) -> bool:
        self._note("in", name)
        return name in self._book

    def __iter__(self) -> Iterator[Fact]:
        self._note("each", "")
        return map(_without_witness, self._book)

    def _note(self, kind: str, name: str) -> None:
        if (kind, name) not in self._noted:
            self._noted.add((kind, name))
            self._readings.append(((kind, name), _read(self._book, kind, name)))


class _ChangedBook(FactBook):
    """A recording book with some values overridden; reads of those are not recorded."""

    def __init__(self, book: FactBook, values: Mapping[str, Value]) -> None:
        self._book, self._values = book, values
        self._seen = dict(values)

    def value(self, name: str) -> Value:
        values_read = self._seen
        if name not in values_read:
            values_read[name] = self._book.value(name)
        return values_read[name]

    def fact(self, name: str) -> Fact | None:
        return Fact(name, self._values[name], "given", NOWHERE) if name in self._values else self._book.fact(name)

    def all(self, name: str) -> list[Fact]:
        return self._book.all(name)

    def changed(self, values: Mapping[str, Value]) -> FactBook:
        return _ChangedBook(self._book, {**self._values, **values})

    def __contains__(self, name: str) -> bool:
        return name in self._values or name in self._book

    def __iter__(self) -> Iterator[Fact]:
        return iter(self._book)


NOWHERE = Witness("")


def _without_witness(fact: Fact) -> Fact:
    return Fact(fact.name, fact.value, fact.origin, NOWHERE, fact.refines)
