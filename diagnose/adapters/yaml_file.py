"""YAML text to leaves, with the exact place of every value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeGuard

from diagnose.adapters.leaf import MAX_BYTES, MAX_DEPTH, MAX_LEAVES, Leaf, Remark, Unreadable, last_of_each
from diagnose.phrases import phrase

if TYPE_CHECKING:
    from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

_NULL = frozenset({"", "~", "null", "Null", "NULL"})


class Reader:
    """One pass over a composed document; aliases are followed, within a budget that a bomb exhausts."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.remarks: list[Remark] = []
        self._left = MAX_LEAVES
        self._copied = 16 * MAX_BYTES  # what leaves may quote in all: an alias quotes its anchor again
        self._ends: dict[int, int] = {}

    def leaves(self) -> list[Leaf]:
        """Every key of the first document, in the order written; of duplicate keys the last, as PyYAML takes it.

        Raises Unreadable for what is not YAML, not a mapping, or too large once aliases are followed.
        """
        node = _compose(self.text)
        if node is None or not _is_mapping(node):
            raise Unreadable("not_a_mapping", phrase("adapters.not_a_mapping"), 1, 1)
        return last_of_each(self._mapping(node, "", 0), self.remarks)

    def _mapping(self, node: MappingNode, path: str, depth: int) -> Iterator[Leaf]:
        self._copied -= len(node.value)
        for name, value in node.value:
            if not _is_scalar(name):
                continue
            if name.tag.endswith(":merge") or name.value == "<<":
                yield from self._merged(node, value, path, depth)
                continue
            yield from self._value(f"{path}{name.value}", value, name, depth)

    def _merged(self, node: MappingNode, value: Node, path: str, depth: int) -> Iterator[Leaf]:
        self._count(node, depth)
        self._copied -= len(node.value) + len(value.value)
        own = {name.value for name, _ in node.value if _is_scalar(name)}
        for source in value.value if _is_sequence(value) else [value]:
            if _is_mapping(source):
                for leaf in self._mapping(source, path, depth + 1):
                    if leaf.key.removeprefix(path).partition(".")[0] not in own:
                        yield leaf

    def _value(self, key: str, node: Node, name: Node, depth: int) -> Iterator[Leaf]:
        self._count(name, depth)
        start, end = node.start_mark.index, self._end(node)
        self._copied -= end - start
        line, column = name.start_mark.line + 1, name.start_mark.column + 1
        written = self.text[start:end]
        if _is_scalar(node):
            null = not node.style and node.value in _NULL  # quoted text is never null
            yield Leaf(key, None if null else node.value, written, start, end, line, column, "null" if null else "scalar")
        elif _is_sequence(node):
            self._copied -= len(node.value)
            scalars = tuple(item.value for item in node.value if _is_scalar(item))
            yield Leaf(key, None, written, start, end, line, column, "list", scalars)
            for index, item in enumerate(node.value):
                if not _is_scalar(item):
                    yield from self._value(f"{key}.{index}", item, item, depth + 1)
        elif _is_mapping(node):
            yield Leaf(key, None, written, start, end, line, column, "map")
            yield from self._mapping(node, f"{key}.", depth + 1)

    def _count(self, place: Node, depth: int) -> None:
        """One key, or one merge, more. Raises Unreadable for more than a config has."""
        self._left -= 1
        if self._left < 0 or self._copied < 0 or depth > MAX_DEPTH:
            raise Unreadable("too_large", phrase("adapters.too_large"), place.start_mark.line + 1, place.start_mark.column + 1)

    def _end(self, node: Node) -> int:
        """The end of what was written: the end mark of a block stands after the blanks that follow it."""
        end: int = node.end_mark.index
        if not _is_scalar(node) and not getattr(node, "flow_style", False):
            if id(node) not in self._ends:  # an anchor is met again at each of its aliases
                inner = [part for pair in node.value for part in pair] if _is_mapping(node) else node.value
                ends = (self._end(part) for part in inner if part.start_mark.index >= node.start_mark.index)
                self._ends[id(node)] = max(ends, default=end)
            return self._ends[id(node)]
        if getattr(node, "style", None) in ("|", ">"):
            start: int = node.start_mark.index
            return start + len(self.text[start:end].rstrip())
        return end


def _compose(text: str) -> Node | None:
    import yaml

    try:
        depth = 0
        for count, event in enumerate(yaml.parse(text, yaml.CSafeLoader)):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH or count > 4 * MAX_LEAVES:
                mark = event.start_mark
                raise Unreadable("too_large", phrase("adapters.too_large"), mark.line + 1 if mark else 0, mark.column + 1 if mark else 0)
        return next(iter(yaml.compose_all(text, yaml.CSafeLoader)), None)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        reason = " ".join(part for part in (error.context, error.problem) if part)
        raise Unreadable(
            "not_yaml", phrase("adapters.not_yaml", reason=reason.replace("{", "(").replace("}", ")")), line, column
        ) from error
    except yaml.YAMLError as error:  # a character that YAML forbids
        raise Unreadable("not_yaml", phrase("adapters.not_yaml", reason=str(error).splitlines()[0])) from error


def _is_scalar(node: Node) -> TypeGuard[ScalarNode]:
    return getattr(node, "id", "") == "scalar"


def _is_sequence(node: Node) -> TypeGuard[SequenceNode]:
    return getattr(node, "id", "") == "sequence"


def _is_mapping(node: Node) -> TypeGuard[MappingNode]:
    return getattr(node, "id", "") == "mapping"
