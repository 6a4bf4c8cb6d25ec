"""Resolves OmegaConf interpolations (`${...}`) in merged files and overrides.

Only the given files count: an environment variable has the value that a command sets, else the default in the text. An unknown
resolver makes its key unsure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from diagnose.adapters.formats.config_value import MAX_LEAVES, Leaf, name_of
from diagnose.adapters.schema.table_types import Table
from diagnose.adapters.translate.config_part import Part
from diagnose.parse.text.lazy_re import lazy_compile

#: Limits: depth of references, characters of a value, lookups per framework.
_MAX_DEPTH = 16
_MAX_TEXT = 4096
_MAX_LOOKUPS = 20_000

_WHOLE = lazy_compile(r"\$\{([^${}:]{1,300})\}")
_INDEX = lazy_compile(r"\[([^\[\]]*)\]")
_NUMBER = lazy_compile(r"[+-]?\d{1,15}(?:\.\d{1,15})?(?:[eE][+-]?\d{1,2})?")
_ARITHMETIC: Mapping[str, Callable[[float, float], float]] = {
    "product": lambda a, b: a * b,
    "sum": lambda a, b: a + b,
    "difference": lambda a, b: a - b,
    "quotient": lambda a, b: a / b,
    "largest": max,
    "smallest": min,
}


class _Unknown(Exception):
    """A reference that cannot be resolved."""


def interpolate(parts: Sequence[Part]) -> list[Part]:
    """The parts with references resolved, each with its framework's merged configuration."""
    merged: dict[str, dict[str, Leaf]] = {}
    for part in parts:
        if part.table.interpolates:
            own = merged.setdefault(part.table.name, {})
            for leaf in part.leaves:
                own.setdefault(name_of(leaf.key), leaf)
    env = {leaf.key: leaf for part in parts if part.table.variables for leaf in part.leaves}
    readers = {part.table.name: _Resolver(merged[part.table.name], env, part.table) for part in parts if part.table.name in merged}
    resolved = {name: {key: reader.leaf(leaf) for key, leaf in merged[name].items()} for name, reader in readers.items()}
    return [
        replace(part, leaves=tuple(readers[name].leaves(part.leaves)), merged=resolved[name])
        if (name := part.table.name) in merged
        else part
        for part in parts
    ]


def referenced_key(written: str) -> str:
    """The key that a text consists of a reference to (`${a.b}`); empty for other text and relative references."""
    match = _WHOLE.fullmatch(written.strip().strip("\"'"))
    return _dotted(match[1].strip()) if match and not match[1].strip().startswith(".") else ""


def _dotted(path: str) -> str:
    return _INDEX.sub(lambda match: f".{match[1]}", path).lstrip(".") if "[" in path else path


class _Resolver:
    """Resolves references of one framework within a budget, which stops cycles and exponential growth."""

    def __init__(self, merged: Mapping[str, Leaf], env: Mapping[str, Leaf], table: Table) -> None:
        self._held, self._env, self._known, self._resolvers = merged, env, table.known, table.resolvers or {}
        self._left = _MAX_LOOKUPS
        self._copied = MAX_LEAVES
        self._children: dict[str, list[Leaf]] | None = None

    def leaves(self, leaves: Sequence[Leaf]) -> Iterator[Leaf]:
        for leaf in leaves:
            yield self.leaf(leaf)
            if leaf.shape == "scalar" and (target := referenced_key(leaf.text or "")):
                yield from self._block(leaf, target)

    def leaf(self, leaf: Leaf) -> Leaf:
        """The leaf with its references resolved; unsure if that is impossible."""
        if leaf.shape == "list" and any("${" in item for item in leaf.items):
            items = [self._said(item, leaf) for item in leaf.items]
            if any(item is None for item in items):
                return leaf._replace(shape="unsure", items=())
            return leaf._replace(items=tuple(item for item in items if item is not None))
        if leaf.shape == "scalar" and leaf.text == "???":  # OmegaConf's mark for a mandatory value set elsewhere
            return leaf._replace(text=None, shape="unsure")
        if leaf.shape != "scalar" or "${" not in (leaf.text or ""):
            return leaf
        try:
            value = self._text(leaf.text or "", name_of(leaf.key), 0)
        except _Unknown:
            return leaf._replace(text=None, shape="unsure")
        if isinstance(value, Leaf):
            return value._replace(key=leaf.key, written=leaf.written, start=leaf.start, end=leaf.end, line=leaf.line, column=leaf.column)
        return leaf._replace(text=value, shape="null" if value is None else "scalar")

    def _said(self, item: str, leaf: Leaf) -> str | None:
        try:
            value = self._text(item, name_of(leaf.key), 0)
        except _Unknown:
            return None
        return value if isinstance(value, str) else None

    def _block(self, leaf: Leaf, target: str) -> Iterator[Leaf]:
        """Copies of the keys of a referenced block, below the referring key."""
        if self._children is None:
            self._children = {}
            for child in self._held.values():
                name = name_of(child.key)
                while (name := name.rpartition(".")[0]) and len(self._children) < MAX_LEAVES:
                    self._children.setdefault(name, []).append(child)
        for child in self._children.get(target, ()):
            self._copied -= 1
            key = f"{name_of(leaf.key)}{name_of(child.key).removeprefix(target)}"
            if self._copied > 0 and key not in self._held:
                yield self.leaf(child)._replace(key=key)

    # -- text

    def _text(self, text: str, key: str, depth: int) -> str | Leaf | None:
        """Resolve the references in a text; a single reference keeps its type (null, list)."""
        self._left -= 1
        if depth > _MAX_DEPTH or self._left < 0 or len(text) > _MAX_TEXT:
            raise _Unknown
        parts = list(_pieces(text))
        if len(parts) == 1 and parts[0][1]:
            return self._reference(parts[0][0], key, depth)
        result = ""
        for piece, is_reference in parts:
            value = self._reference(piece, key, depth) if is_reference else piece
            if isinstance(value, Leaf) or len(result) > _MAX_TEXT:
                raise _Unknown
            result += "None" if value is None else value
        return result

    def _reference(self, inside: str, key: str, depth: int) -> str | Leaf | None:
        name, colon, arguments_text = _split_at_colon(inside)
        if not colon:
            path = self._text(inside, key, depth + 1)
            if not isinstance(path, str):
                raise _Unknown
            return self._node(_absolute(path.strip(), key), depth)
        arguments = [_unquoted(argument.strip()) for argument in _arguments(arguments_text)]
        if name == "oc.env":
            return self._variable(arguments, key, depth)
        if name == "oc.select":
            return self._selected(arguments, key, depth)
        if name == "oc.decode" and len(arguments) == 1:
            value = self._text(arguments[0], key, depth + 1)
            return None if value in ("null", None) else value
        kind = self._resolvers.get(name)
        if kind is not None and kind in _ARITHMETIC:
            return self._sum(kind, [self._text(argument, key, depth + 1) for argument in arguments])
        raise _Unknown

    def _node(self, path: str, depth: int) -> str | Leaf | None:
        """The value of a key, its own references resolved."""
        leaf = self._held.get(path)
        if leaf is None or leaf.shape in ("unsure", "map"):
            raise _Unknown
        if leaf.shape == "null":
            return None
        if leaf.shape == "list":
            return self.leaf(leaf)
        return self._text(leaf.text or "", path, depth + 1)

    def _selected(self, arguments: Sequence[str], key: str, depth: int) -> str | Leaf | None:
        path = self._text(arguments[0], key, depth + 1) if arguments else None
        if not isinstance(path, str):
            raise _Unknown
        path = _absolute(path, key)
        if path in self._held:
            return self._node(path, depth)
        if len(arguments) < 2 or path in self._known:
            raise _Unknown  # the framework's own configuration may set it
        value = self._text(arguments[1], key, depth + 1)
        return None if value == "null" else value

    def _variable(self, arguments: Sequence[str], key: str, depth: int) -> str | Leaf | None:
        name = self._text(arguments[0], key, depth + 1) if arguments else None
        leaf = self._env.get(name) if isinstance(name, str) else None
        if leaf is not None:
            if leaf.text is None:
                raise _Unknown
            return leaf.text
        if len(arguments) < 2:
            raise _Unknown
        value = self._text(arguments[1], key, depth + 1)
        return None if value == "null" else value

    @staticmethod
    def _sum(kind: str, values: Sequence[str | Leaf | None]) -> str:
        numbers = [float(value) for value in values if isinstance(value, str) and _NUMBER.fullmatch(value)]
        if len(numbers) != len(values) or len(numbers) != 2 or (kind == "quotient" and not numbers[1]):
            raise _Unknown
        result = _ARITHMETIC[kind](numbers[0], numbers[1])
        return str(int(result)) if result.is_integer() else repr(result)


def _pieces(text: str) -> Iterator[tuple[str, bool]]:
    """Split a text into plain pieces and, with True, the insides of `${...}`. Raises _Unknown for an unclosed one."""
    at = start = 0
    while (at := text.find("${", at)) >= 0:
        if at and text[at - 1] == "\\":
            at += 2
            continue
        end, level = at + 2, 1
        while end < len(text) and level:
            level += (text[end] == "{") - (text[end] == "}")
            end += 1
        if level:
            raise _Unknown
        if at > start:
            yield text[start:at], False
        yield text[at + 2 : end - 1], True
        at = start = end
    if start < len(text) or not text:
        yield text[start:], False


def _split_at_colon(inside: str) -> tuple[str, str, str]:
    """A resolver's name, a colon and its arguments; for a plain reference the latter two are empty."""
    level = 0
    for at, char in enumerate(inside):
        level += (char == "{") - (char == "}")
        if char == ":" and not level:
            return inside[:at].strip(), ":", inside[at + 1 :]
    return inside, "", ""


def _arguments(text: str) -> Iterator[str]:
    level = start = 0
    for at, char in enumerate(text):
        level += (char in "{[(") - (char in "}])")
        if char == "," and not level:
            yield text[start:at]
            start = at + 1
    yield text[start:]


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] in "'\"" and text[-1] == text[0] else text


def _absolute(path: str, key: str) -> str:
    """Resolve a relative path: `.name` is a sibling of the key, `..name` of its block."""
    dots = len(path) - len(path.lstrip("."))
    if not dots:
        return _dotted(path)
    block = key.split(".")[:-dots]
    return ".".join([*block, _dotted(path[dots:])])
