"""Shapes of arrays in a script, and what indices, methods and operators make of them. Nothing is run."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from math import prod

#: Sides from here on are no sizes.
MOST_SIDE = 1 << 40
_TYPES = {"16": 2, "32": 4, "64": 8, "int8": 1, "uint8": 1, "bool": 1, "float": 4, "double": 8, "half": 2, "long": 8, "int": 4}
_TYPE = re.compile(r"(?:^|\.)'?(?:b?u?(?:float|int|complex))?(int8|uint8|bool|half|double|long|16|32|64|float|int)'?$")


@dataclass(frozen=True, slots=True)
class Array:
    """An array: its sides, and the bytes of an element."""

    shape: tuple[int, ...]
    width: int


@dataclass(frozen=True, slots=True)
class Layer:
    """A convolution of `dimensions` with its sides."""

    dimensions: int
    inputs: int
    outputs: int
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    width: int


def arithmetic(sign: ast.operator, left: int, right: int) -> int | None:
    if isinstance(sign, ast.Pow):
        return left**right if 0 <= right <= 64 and abs(left) <= 1024 and left**right < MOST_SIDE else None
    if isinstance(sign, (ast.FloorDiv, ast.Div)):
        return left // right if right else None
    whole = {ast.Add: left + right, ast.Sub: left - right, ast.Mult: left * right}.get(type(sign))
    return whole if whole is not None and abs(whole) < MOST_SIDE else None


def broadcast(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a sum; empty where both do not fit."""
    length = max(len(left), len(right))
    pairs = zip((1,) * (length - len(left)) + left, (1,) * (length - len(right)) + right, strict=True)
    sides = [max(pair) if min(pair) == 1 or pair[0] == pair[1] else 0 for pair in pairs]
    return tuple(sides) if all(sides) else ()


def indexed(array: Array, indices: list[ast.expr]) -> Array | None:
    """What an index of None, of numbers and of whole sides leaves of an array; None for any other."""
    shape, rest = list[int](), list(array.shape)
    for index in indices:
        if isinstance(index, ast.Constant) and index.value is None:
            shape.append(1)
        elif rest and isinstance(index, ast.Slice) and index.lower is index.upper is None:
            shape.append(rest.pop(0))
        elif rest and isinstance(index, ast.Constant) and isinstance(index.value, int):
            rest.pop(0)
        else:
            return None
    return Array((*shape, *rest), array.width)


def reshaped(name: str, shape: tuple[int, ...], arguments: list[object]) -> tuple[int, ...]:
    """The shape after a method that moves, adds or repeats sides; empty for any other, and where the script does not tell."""
    numbers = arguments[0] if arguments and isinstance(arguments[0], tuple) else tuple(each for each in arguments if isinstance(each, int))
    count = len(shape)
    if name == "unsqueeze" and len(numbers) == 1 and -count - 1 <= numbers[0] <= count:
        at = numbers[0] % (count + 1)
        return (*shape[:at], 1, *shape[at:])
    if name in ("t", "mT") and count == 2:
        return shape[::-1]
    if name == "transpose" and len(numbers) == 2 and all(-count <= number < count for number in numbers):
        moved = list(shape)
        moved[numbers[0]], moved[numbers[1]] = moved[numbers[1]], moved[numbers[0]]
        return tuple(moved)
    if name == "permute" and count and sorted(number % count for number in numbers) == list(range(count)):
        return tuple(shape[number] for number in numbers)
    if name in ("view", "reshape") and numbers and numbers.count(-1) <= 1 and 0 not in numbers:
        known = prod(number for number in numbers if number != -1)
        return tuple(prod(shape) // known if number == -1 else number for number in numbers)
    if name == "repeat" and len(numbers) >= count:
        sides = (1,) * (len(numbers) - count) + shape
        return tuple(number * side for number, side in zip(numbers, sides, strict=True))
    return ()


def convolution_of(dimensions: int, words: dict[str, object], arguments: list[object]) -> Layer | None:
    names = ("in_channels", "out_channels", "kernel_size", "stride", "padding")
    given = dict(zip(names, arguments, strict=False)) | words
    sides = {name: _each(given.get(name, 0 if name == "padding" else 1), dimensions) for name in names[2:]}
    inputs, outputs = given.get("in_channels"), given.get("out_channels")
    if not isinstance(inputs, int) or not isinstance(outputs, int) or any(len(side) != dimensions for side in sides.values()):
        return None
    if min(*sides["kernel_size"], *sides["stride"]) < 1:
        return None
    return Layer(dimensions, inputs, outputs, sides["kernel_size"], sides["stride"], sides["padding"], 4)


def _each(value: object, dimensions: int) -> tuple[int, ...]:
    return (value,) * dimensions if isinstance(value, int) else value if isinstance(value, tuple) else ()


def width_named(call: ast.Call) -> int:
    """Bytes of the element type that one of the arguments names; 0 where none does."""
    for argument in (*call.args, *(word.value for word in call.keywords)):
        text = ast.unparse(argument)
        named = _TYPE.search(text)
        if named is not None and isinstance(argument, (ast.Attribute, ast.Constant, ast.Name)) and not text.isdigit():
            return _TYPES[named[1]]
    return 0
