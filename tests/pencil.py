"""Arithmetic as a reader would do it, to recompute what a ledger prints."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from math import ceil


def power_of_two(number: float) -> int:
    power = 1
    while power < number:
        power *= 2
    return power


FUNCTIONS: dict[str, Callable[..., float]] = {"min": min, "max": max, "ceil": ceil, "pow2": power_of_two}

OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}


def arithmetic(text: str) -> float:
    """A reader's pencil: numbers, + - * / //, min, max, ceil, and nothing of the code under test."""

    def value(node: ast.expr) -> float:
        match node:
            case ast.Constant(value=int() | float() as number):
                return number
            case ast.BinOp() if type(node.op) in OPERATORS:
                return OPERATORS[type(node.op)](value(node.left), value(node.right))
            case ast.Call(func=ast.Name(id=str() as name)) if name in FUNCTIONS:
                return FUNCTIONS[name](*map(value, node.args))
        raise ValueError(f"not arithmetic: {text}")

    return value(ast.parse(text, mode="eval").body)
