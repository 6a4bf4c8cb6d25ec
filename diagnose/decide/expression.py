"""One comparison of a rule: its text, its tree, and back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal, TypeAlias

from diagnose import rule_files
from diagnose.errors import user_error
from diagnose.records import NamedTuple

Operator = Literal[">=", "<=", "==", "!=", ">", "<", "in"]
Sign = Literal["+", "-"]

#: A comparison is one line of a rule file; longer text is an accident, and LALR stacks should stay shallow.
LONGEST = 500


class Name(NamedTuple):
    """A fact, by its dotted name."""

    name: str

    def __str__(self) -> str:
        return self.name


class Figure(NamedTuple):
    """A constant as written: `kind` is size, number, version or word."""

    kind: Literal["size", "number", "version", "word"]
    text: str

    def __str__(self) -> str:
        return self.text


class Share(NamedTuple):
    """A percentage of another expression."""

    percent: str
    whole: Node

    def __str__(self) -> str:
        return f"{self.percent}% of {_inside(self.whole)}"


class Sum(NamedTuple):
    """The first part, then every other with its sign."""

    first: Node
    rest: tuple[tuple[Sign, Node], ...]

    def __str__(self) -> str:
        parts = [f"{sign} {f'({part})' if isinstance(part, Sum) else part}" for sign, part in self.rest]
        return " ".join([_inside(self.first) if isinstance(self.first, Sum) else str(self.first), *parts])


class Product(NamedTuple):
    """Expressions multiplied."""

    parts: tuple[Node, ...]

    def __str__(self) -> str:
        return " * ".join(_inside(part) for part in self.parts)


class Choices(NamedTuple):
    """The values of which a fact is one: the right side of `in`."""

    parts: tuple[Figure, ...]

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.parts))})"


Node: TypeAlias = "Name | Figure | Share | Sum | Product | Choices"


@dataclass
class Comparison:
    """`left operator right`; printing it and parsing that gives it back."""

    left: Node
    operator: Operator
    right: Node

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        return f"{self.left} {self.operator} {self.right}"

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The facts that it reads, from left to right."""
        return (*names(self.left), *names(self.right))

    @property
    def count(self) -> int:
        """How many comparisons the line stands for: `in` for one with each of its values."""
        return len(self.right.parts) if isinstance(self.right, Choices) else 1


def _inside(node: Node) -> str:
    """A part of a product or the whole of a share: what binds less tightly stands in brackets."""
    return f"({node})" if isinstance(node, (Sum, Product)) else str(node)


def names(node: Node | Comparison) -> Iterator[str]:
    """The facts that an expression reads, from left to right."""
    if isinstance(node, Comparison):
        yield from node.names
    elif isinstance(node, Name):
        yield node.name
    elif isinstance(node, Share):
        yield from names(node.whole)
    elif isinstance(node, Sum):
        yield from names(node.first)
        for _, part in node.rest:
            yield from names(part)
    elif isinstance(node, (Product, Choices)):
        for part in node.parts:
            yield from names(part)


def parse(text: str) -> Comparison:
    """The comparison that a line of a rule writes. Raises UserError for anything else."""
    tree = _tree(text, "comparison")
    if tree.data == "membership":
        fact, *choices = tree.children
        return Comparison(Name(fact.text), "in", Choices(tuple(Figure(choice.data, choice.children[0].text) for choice in choices)))
    left, operator, right = tree.children
    return Comparison(_node(left), operator.text, _node(right))


def parse_sum(text: str) -> Node:
    """The bytes that `accounts_for` writes: an expression without a comparison."""
    left, _, _ = _tree(f"{text} >= 0 B", "sum").children
    return _node(left)


@cache
def _tree(text: str, start: str) -> Any:
    """The tree of a comparison. (Any: its grammar says what stands where.)"""
    from diagnose.lalr import Unread

    if len(text) > LONGEST:
        raise user_error("not_an_expression", text[:60], text=f"{text[:60]} ...", wanted=start)
    try:
        return rule_files.parser("rule_expr").parse(text)
    except Unread as error:
        raise user_error("not_an_expression", f"column {error.column}", text=text, wanted=start) from error


def _node(tree: Any) -> Node:
    kind, parts = tree.data, tree.children
    if kind == "fact":
        return Name(parts[0].text)
    if kind == "size":
        return _size(parts[0].text, parts[1].text)
    if kind in ("number", "version", "word"):
        return Figure(kind, parts[0].text)
    if kind == "share":
        return Share(parts[0].text, _node(parts[1]))
    if kind == "sum":
        return Sum(_node(parts[0]), tuple((parts[i].text, _node(parts[i + 1])) for i in range(1, len(parts), 2)))
    return Product(tuple(_node(part) for part in parts[::2]))


def _size(digits: str, unit: str) -> Figure:
    if unit != "B" and "i" not in unit:
        raise user_error("decimal_unit", hint="binary_unit", unit=unit, binary=f"{unit[0]}iB")
    return Figure("size", f"{digits} {unit}")


# -- as data: what a compiled rule file holds, so that running a rule needs no grammar


def to_data(node: Node | Comparison) -> list[Any]:
    """The tree as lists and strings."""
    if isinstance(node, Comparison):
        return ["compare", to_data(node.left), node.operator, to_data(node.right)]
    if isinstance(node, Name):
        return ["fact", node.name]
    if isinstance(node, Figure):
        return [node.kind, node.text]
    if isinstance(node, Share):
        return ["share", node.percent, to_data(node.whole)]
    if isinstance(node, Sum):
        return ["sum", to_data(node.first), *([sign, to_data(part)] for sign, part in node.rest)]
    return ["choices" if isinstance(node, Choices) else "product", *(to_data(part) for part in node.parts)]


def comparison_of(data: list[Any]) -> Comparison:
    """The comparison that `to_data` wrote."""
    return Comparison(node_of(data[1]), data[2], node_of(data[3]))


def node_of(data: list[Any]) -> Node:
    """The expression that `to_data` wrote."""
    kind = data[0]
    if kind == "fact":
        return Name(data[1])
    if kind == "share":
        return Share(data[1], node_of(data[2]))
    if kind == "sum":
        return Sum(node_of(data[1]), tuple((sign, node_of(part)) for sign, part in data[2:]))
    if kind == "product":
        return Product(tuple(node_of(part) for part in data[1:]))
    if kind == "choices":
        return Choices(tuple(Figure(*part) for part in data[1:]))
    return Figure(kind, data[1])
