"""Evaluate a comparison against a book of facts (true, false or unknown), and check that both sides are of one kind."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import lru_cache, reduce
from typing import TYPE_CHECKING, TypeAlias, TypeGuard

from diagnose.decide.expression import Choices, Comparison, Figure, Name, Node, Product, Share
from diagnose.errors import user_error
from diagnose.facts import Value, declared, typed
from diagnose.phrases import Text
from diagnose.ternary import Truth, any_of, not_
from diagnose.units import Size, Version, size_of

if TYPE_CHECKING:
    from fractions import Fraction

#: A count or a ratio, exactly. (Few comparisons need a Fraction, which takes a hundredth of a diagnosis to import: functions import it.)
Number: TypeAlias = "int | Fraction"
#: What an expression yields. Switches are bool.
Operand: TypeAlias = "Size | Number | str | bool | Version"
#: How a name is looked up; None is unknown.
Lookup: TypeAlias = Callable[[str], Value]


def holds(comparison: Comparison, lookup: Lookup) -> Truth:
    """Whether the comparison is true of these facts; None where a fact is missing or two ranges overlap. The compiled form is cached on the
    comparison, because every job asks all rules."""
    evaluate: Callable[[Lookup], Truth] | None = comparison.__dict__.get("asked")  # every job asks all rules
    if evaluate is None:
        evaluate = comparison.__dict__["asked"] = _asked(comparison)
    return evaluate(lookup)


def _asked(comparison: Comparison) -> Callable[[Lookup], Truth]:
    """Compile a comparison to a function of the lookup. Most compare one fact with a constant, which is evaluated once."""
    kind, sign = kind_of(comparison), comparison.operator
    left, right = comparison.left, comparison.right
    if isinstance(right, Choices):
        if isinstance(left, Name) and kind == "word":
            return _is(left.name, frozenset(part.text for part in right.parts), True)
        alternatives = [_asked(choice) for choice in choices(comparison)]
        return lambda lookup: any_of(alternative(lookup) for alternative in alternatives)
    has_fraction = kind == "number" and isinstance(right, Figure) and not right.text.isdecimal()
    constant = _constant(right, kind) if isinstance(right, Figure) and not has_fraction else None
    if not isinstance(left, Name) or constant is None:
        return lambda lookup: (
            None if (operand := value(left, lookup, kind)) is None else _compared(operand, sign, value(right, lookup, kind))
        )
    if isinstance(constant, (str, bool)) and sign in ("==", "!="):
        return _is(left.name, frozenset({constant}), sign == "==")
    if type(constant) is int:
        return _counted(left.name, sign, constant)
    return lambda lookup: _compared(_known(lookup(left.name)), sign, constant)


def choices(comparison: Comparison) -> list[Comparison]:
    """The equalities that `in` stands for, of which one has to hold; any other comparison alone."""
    right = comparison.right
    return [Comparison(comparison.left, "==", part) for part in right.parts] if isinstance(right, Choices) else [comparison]


def _is(name: str, constants: frozenset[str | bool], expected: bool) -> Callable[[Lookup], Truth]:
    def asked(lookup: Lookup) -> Truth:
        fact_value = lookup(name)
        if fact_value is None or fact_value == "unknown":
            return None
        operand = _known(fact_value)
        return None if operand is None else (operand in constants) is expected

    return asked


#: Orders of two numbers.
_ORDERS = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def _counted(name: str, sign: str, constant: int) -> Callable[[Lookup], Truth]:
    order = _ORDERS[sign]

    def asked(lookup: Lookup) -> Truth:
        fact_value = lookup(name)
        if fact_value is None:
            return None
        return bool(order(fact_value, constant)) if fact_value.__class__ is int else _compared(_known(fact_value), sign, constant)

    return asked


def _compared(left: Operand | None, sign: str, right: Operand | None) -> Truth:
    if left is None or right is None:
        return None
    if isinstance(left, Size) and isinstance(right, Size):
        return _sizes(left, sign, right)
    return _exactly(left, sign, right)


def _exactly(left: Operand, sign: str, right: Operand) -> Truth:
    """Compare two values without ranges. Words and switches have no order: None for anything but == and !=."""
    if sign in ("==", "!="):
        return (left == right) is (sign == "==")
    if (is_number(left) and is_number(right)) or (isinstance(left, Version) and isinstance(right, Version)):
        is_less = left < right  # type: ignore[operator]  # both are of the one class or of the other
        return {"<": is_less, "<=": is_less or left == right, ">": not is_less and left != right, ">=": not is_less}[sign]
    return None


def _sizes(left: Size, sign: str, right: Size) -> Truth:
    """Compare two ranges; None where they overlap so that either answer is possible."""
    if sign in ("==", "!="):
        same: Truth = False if left.high < right.low or right.high < left.low else None
        if left.exact and right.exact and left.low == right.low:
            same = True
        return same if sign == "==" else not_(same)
    if sign in ("<", "<="):
        return _sizes(right, ">" if sign == "<" else ">=", left)
    if sign == ">=":
        return True if left.low >= right.high else False if left.high < right.low else None
    return True if left.low > right.high else False if left.high <= right.low else None


def value(node: Node, lookup: Lookup, kind: str = "size") -> Operand | None:
    """What the expression yields, None where a fact in it is unknown. `kind` says what a bare figure or word means."""
    if isinstance(node, Name):
        return _known(lookup(node.name))
    if isinstance(node, Figure):
        return _constant(node, kind)
    if isinstance(node, Share):
        return _part(value(node.whole, lookup, kind), *_share(node.percent))
    if isinstance(node, Product):
        return reduce(_times, (value(part, lookup, kind) for part in node.parts))
    if isinstance(node, Choices):
        return None  # several values are none
    operand = value(node.first, lookup, kind)
    for sign, part in node.rest:
        operand = _plus(operand, value(part, lookup, kind), sign)
    return operand


def _known(fact_value: Value) -> Operand | None:
    """A fact as an operand. The word `unknown` is how some readers write that they do not know."""
    if isinstance(fact_value, (bool, Size, Version)):
        return fact_value
    if isinstance(fact_value, str):
        return None if fact_value == "unknown" else fact_value
    if isinstance(fact_value, Text):
        return fact_value.en
    return _number(fact_value) if isinstance(fact_value, (int, float)) else None


def is_number(operand: Operand | None) -> TypeGuard[Number]:
    """Whether it is a count or a ratio."""
    return operand is not None and not isinstance(operand, (Size, str, bool, Version))


def _number(figure: float | str) -> Number:
    """A number, or the text of one, exactly."""
    if isinstance(figure, int):
        return figure
    if isinstance(figure, str) and figure.isdecimal():
        return int(figure)
    from fractions import Fraction

    exact = Fraction(figure)
    return exact.numerator if exact.denominator == 1 else exact


@lru_cache(maxsize=256)
def _share(percent: str) -> tuple[int, int]:
    """A percentage as a ratio of whole numbers."""
    whole, _, fraction = percent.partition(".")
    return int(whole + fraction), 100 * 10 ** len(fraction)


def _part(whole: Operand | None, times: int, parts: int) -> Operand | None:
    """`times / parts` of a size or number."""
    if isinstance(whole, Size):
        return whole.scaled(times, parts)
    if not is_number(whole):
        return None
    from fractions import Fraction

    return whole * Fraction(times, parts)


@lru_cache(maxsize=4096)
def _constant(figure: Figure, kind: str) -> Operand | None:
    if kind == "version":
        return Version(figure.text)
    if figure.kind == "size":
        return size_exactly(figure.text)
    if kind == "switch" and figure.kind == "word":
        return figure.text == "enabled"
    return figure.text if figure.kind == "word" else _number(figure.text)


def size_exactly(text: str) -> Size | None:
    """A size written in a rule is meant exactly; only printed figures are rounded."""
    size = size_of(text)
    return None if size is None else Size.exactly(size.bytes)


def _times(left: Operand | None, right: Operand | None) -> Operand | None:
    if left is None or right is None:
        return None
    if is_number(left) and isinstance(right, Size):
        return right.times(left)
    if isinstance(left, Size) and is_number(right):
        return left.times(right)
    return left * right if is_number(left) and is_number(right) else None


def _plus(left: Operand | None, right: Operand | None, sign: str) -> Operand | None:
    if isinstance(left, Size) and isinstance(right, Size):
        return left + right if sign == "+" else left - right
    if is_number(left) and is_number(right):
        return left + right if sign == "+" else left - right
    return None


# -- kinds: what may be compared with what; a rule that mixes them is refused before it runs

_FAMILY = {"size": "size", "count": "number", "ratio": "number", "word": "word", "text": "word", "switch": "switch", "version": "version"}


def kind_of(comparison: Comparison) -> str:
    """The kind both sides share: size, number, word, switch or version. Raises UserError where they do not agree."""
    cached: str | None = comparison.__dict__.get("kind")  # every job asks all rules
    if cached is None:
        cached = comparison.__dict__["kind"] = _shared(comparison)
    return cached


def _shared(comparison: Comparison) -> str:
    if isinstance(comparison.right, Choices):
        return reduce(lambda a, b: _same_kind(a, b, comparison), map(_shared, choices(comparison)))
    left, right = _kind(comparison.left), _kind(comparison.right)
    for first, second in ((left, right), (right, left)):
        if first == second:
            return first
        if (first == "version" and second == "number") or (first == "switch" and second == "word"):
            return first
    raise user_error("kinds_differ", left=left, right=right, text=str(comparison))


def _same_kind(left: str, right: str, comparison: Comparison) -> str:
    if left != right:
        raise user_error("kinds_differ", left=left, right=right, text=str(comparison))
    return left


def _kind(node: Node) -> str:
    if isinstance(node, Name):
        entry = declared(node.name)
        if entry is None:
            typed(node.name, "")  # raises, with the nearest name
        return _FAMILY.get(entry.kind, entry.kind) if entry else ""
    if isinstance(node, Figure):
        return node.kind
    if isinstance(node, Share):
        return _numeric(_kind(node.whole), "number", node)
    if isinstance(node, Product):
        return reduce(lambda a, b: _numeric(a, b, node), (_kind(part) for part in node.parts), "number")
    if isinstance(node, Choices):
        return _kind(node.parts[0])
    kinds = [_kind(node.first), *(_kind(part) for _, part in node.rest)]
    return reduce(lambda a, b: _same(a, b, node), kinds)


def _numeric(left: str, right: str, node: Node) -> str:
    if {left, right} <= {"size", "number"} and "number" in (left, right):
        return left if right == "number" else right
    raise user_error("kinds_mixed", left=left, right=right, text=str(node))


def _same(left: str, right: str, node: Node) -> str:
    if left == right and left in ("size", "number"):
        return left
    raise user_error("kinds_mixed", left=left, right=right, text=str(node))


def check_words(comparison: Comparison) -> None:
    """Raises UserError where a fact is compared with a word that it can never be."""
    if isinstance(comparison.right, Choices):
        for choice in choices(comparison):
            check_words(choice)
        return
    for first, second in ((comparison.left, comparison.right), (comparison.right, comparison.left)):
        if not isinstance(first, Name) or not isinstance(second, Figure) or second.kind != "word":
            continue
        entry = declared(first.name)
        words = ("enabled", "disabled") if entry and entry.kind == "switch" else entry.words if entry else ()
        if words and second.text not in words:
            raise user_error("no_such_word", hint="known_words", word=second.text, name=first.name, words=", ".join(words))


def unknown_in(comparison: Comparison, lookup: Lookup) -> str | None:
    """The first fact of a comparison that is not known; where all are, the first one (its range is too wide)."""
    fact_names = comparison.names
    if len(fact_names) == 1:
        return fact_names[0]
    return next((name for name in fact_names if _known(lookup(name)) is None), fact_names[0] if fact_names else None)
