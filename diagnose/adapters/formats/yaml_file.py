"""YAML text to leaves, with the exact place of every value."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeGuard

from diagnose.adapters.formats.config_value import MAX_BYTES, MAX_DEPTH, MAX_LEAVES, Leaf, Places, Remark, Unreadable, last_of_each
from diagnose.phrases import phrase

if TYPE_CHECKING:
    from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
#: What stands before a value and is not the value: an anchor, a tag.
_PROPERTIES = re.compile(r"(?:[&!][^\s,\[\]{}]*[ \t]+)+(?=[^\s#])")
_ALIAS = re.compile(r"[ \t]*:[ \t]*(\*[^\s,\[\]{}]+)")
#: Plain numbers that YAML 1.1 reads otherwise than they look: octal, in sixties, hexadecimal, binary, with underscores.
_ODD = re.compile(r"[-+]?(?:0[0-7_]+|0x[0-9a-fA-F_]+|0b[01_]+|[1-9][0-9_]*(?::[0-5]?[0-9])+|[1-9][0-9]*_[0-9_]*)")
_LONGEST = 24


class Reader:
    """One pass over a composed document; aliases are followed, within a budget that a bomb exhausts."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.remarks: list[Remark] = []
        self._left = MAX_LEAVES
        self._copied = 16 * MAX_BYTES  # what leaves may quote in all: an alias quotes its anchor again
        self._ends: dict[int, int] = {}
        self._place = Places(text)  # YAML breaks lines at signs that no editor counts

    def leaves(self) -> list[Leaf]:
        """Every key of the first document that has any, in the order written; of duplicate keys the last, as PyYAML takes it.

        Raises Unreadable for what is not YAML, not a mapping, or too large once aliases are followed.
        """
        nodes = [node for node in composed(self.text) if node is not None]
        node = next((node for node in nodes if _is_mapping(node)), None)
        if node is None:
            raise Unreadable("not_a_mapping", phrase("adapters.not_a_mapping"), 1, 1)
        if len(nodes) > 1:
            second = nodes[nodes.index(node) + 1] if nodes[-1] is not node else nodes[0]
            self._remark("several_documents", second)
        return last_of_each(self._mapping(node, "", 0), self.remarks)

    def _remark(self, code: str, node: Node, **values: object) -> None:
        self.remarks.append(Remark(code, phrase(f"adapters.{code}", **values), *self._place(node.start_mark.index)))

    def _mapping(self, node: MappingNode, path: str, depth: int) -> Iterator[Leaf]:
        self._copied -= len(node.value)
        for name, value in node.value:
            if not _is_scalar(name):
                self._remark("odd_key", name)
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
        line, column = self._place(name.start_mark.index)
        if _is_scalar(node):
            start, end = self._scalar_at(name, start, end)
            null = not node.style and node.value in _NULL  # quoted text is never null
            text = None if null else self._number(key, node)
            yield Leaf(key, text, self.text[start:end], start, end, line, column, "null" if null else "scalar")
            return
        properties = _PROPERTIES.match(self.text, start, end)
        start = properties.end() if properties else start
        written = self.text[start:end]
        if _is_sequence(node):
            self._copied -= len(node.value)
            scalars = tuple(item.value for item in node.value if _is_scalar(item))
            yield Leaf(key, None, written, start, end, line, column, "list", scalars)
            for index, item in enumerate(node.value):
                if not _is_scalar(item):
                    yield from self._value(f"{key}.{index}", item, item, depth + 1)
        elif _is_mapping(node):
            yield Leaf(key, None, written, start, end, line, column, "map")
            yield from self._mapping(node, f"{key}.", depth + 1)

    def _scalar_at(self, name: Node, start: int, end: int) -> tuple[int, int]:
        """The value as written, without its anchor or tag; of an alias the alias, for what it names may serve others."""
        if start < name.start_mark.index:
            alias = _ALIAS.match(self.text, name.end_mark.index)
            if alias:
                return alias.start(1), alias.end(1)
        properties = _PROPERTIES.match(self.text, start, end)
        return (properties.end() if properties else start), end

    def _number(self, key: str, node: ScalarNode) -> str:
        """The text; of a number in an odd notation what YAML makes of it."""
        if node.style or len(node.value) > _LONGEST or not _ODD.fullmatch(node.value):
            return str(node.value)
        value = _odd(node.value)
        if value is None or str(value) == node.value:
            return str(node.value)
        if "_" not in node.value:
            self._remark("odd_number", node, name=key, written=node.value, value=value)
        return str(value)

    def _count(self, place: Node, depth: int) -> None:
        """One key, or one merge, more. Raises Unreadable for more than a config has."""
        self._left -= 1
        if self._left < 0 or self._copied < 0 or depth > MAX_DEPTH:
            raise Unreadable("too_large", phrase("adapters.too_large"), *self._place(place.start_mark.index))

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


def _odd(text: str) -> int | None:
    """A whole number as YAML 1.1 reads it."""
    sign, digits = (-1, text[1:]) if text[0] == "-" else (1, text.lstrip("+"))
    digits = digits.replace("_", "")
    try:
        if ":" in digits:
            value = 0
            for part in digits.split(":"):
                value = 60 * value + int(part)
            return sign * value
        base = {"0x": 16, "0b": 2}.get(digits[:2], 8 if digits[0] == "0" and len(digits) > 1 else 10)
        return sign * int(digits, base)
    except (ValueError, IndexError):
        return None


def composed(text: str) -> list[Node | None]:
    """The documents of a text, nothing constructed. Raises Unreadable for what is not YAML or is too large."""
    import yaml

    try:
        depth = 0
        for count, event in enumerate(yaml.parse(text, yaml.CSafeLoader)):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH or count > 4 * MAX_LEAVES:
                mark = event.start_mark
                raise Unreadable("too_large", phrase("adapters.too_large"), mark.line + 1 if mark else 0, mark.column + 1 if mark else 0)
        return list(yaml.compose_all(text, yaml.CSafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        if mark and _tab_at(text, mark.index):
            raise Unreadable("not_yaml", phrase("adapters.yaml_tab"), line, column) from error
        reason = " ".join(part for part in (error.context, error.problem) if part)
        raise Unreadable(
            "not_yaml", phrase("adapters.not_yaml", reason=reason.replace("{", "(").replace("}", ")")), line, column
        ) from error
    except yaml.YAMLError as error:  # a character that YAML forbids
        raise Unreadable("not_yaml", phrase("adapters.not_yaml", reason=str(error).splitlines()[0])) from error


def _tab_at(text: str, at: int) -> bool:
    """Does the line there begin with a tab?"""
    line = text[text.rfind("\n", 0, at) + 1 : at + 1]
    return "\t" in line and not line.strip()


def _is_scalar(node: Node) -> TypeGuard[ScalarNode]:
    return getattr(node, "id", "") == "scalar"


def _is_sequence(node: Node) -> TypeGuard[SequenceNode]:
    return getattr(node, "id", "") == "sequence"


def _is_mapping(node: Node) -> TypeGuard[MappingNode]:
    return getattr(node, "id", "") == "mapping"
