"""YAML to leaves, each value with its offsets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeGuard

from diagnose.adapters.formats.config_value import MAX_BYTES, MAX_DEPTH, MAX_LEAVES, Leaf, Places, Remark, Unreadable, drop_duplicates
from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.phrases import phrase
from diagnose.rule_files import yaml_loader

if TYPE_CHECKING:
    from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
#: Node properties before a value: an anchor, a tag.
_PROPERTIES = lazy_compile(r"(?:[&!][^\s,\[\]{}]*[ \t]+)+(?=[^\s#])")
_ALIAS = lazy_compile(r"[ \t]*:[ \t]*(\*[^\s,\[\]{}]+)")
#: Plain integers that YAML 1.1 does not read as decimals: octal, base 60, hexadecimal, binary, with underscores.
_NON_DECIMAL = lazy_compile(r"[-+]?(?:0[0-7_]+|0x[0-9a-fA-F_]+|0b[01_]+|[1-9][0-9_]*(?::[0-5]?[0-9])+|[1-9][0-9]*_[0-9_]*)")
_MAX_DIGITS = 24


class Reader:
    """Parser of one text. Aliases are followed within a budget, so that a billion-laughs document is refused."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.remarks: list[Remark] = []
        self._budget = MAX_LEAVES
        self._copy_budget = 16 * MAX_BYTES  # characters that leaves may quote: each alias quotes its anchor again
        self._end_cache: dict[int, int] = {}
        self._place = Places(text, "yaml")
        self._leaves: list[Leaf] | None = None

    def leaves(self) -> list[Leaf]:
        """Every key of the first mapping among the documents, in the order written, of duplicates the last, as PyYAML takes it.

        Raises Unreadable for what is not YAML, not a mapping, or too large once aliases are followed.
        """
        if self._leaves is None:
            self._leaves = self._read()
        return self._leaves

    def _read(self) -> list[Leaf]:
        documents = [node for node in compose_documents(self.text) if node is not None]
        document = next((node for node in documents if _is_mapping(node)), None)
        if document is None:
            raise Unreadable("not_a_mapping", phrase("adapters.not_a_mapping"), 1, 1)
        if len(documents) > 1:
            second = documents[documents.index(document) + 1] if documents[-1] is not document else documents[0]
            self._remark("several_documents", second)
        return drop_duplicates(self._mapping_leaves(document, "", 0), self.remarks)

    def _remark(self, code: str, node: Node, **values: object) -> None:
        self.remarks.append(Remark(code, phrase(f"adapters.{code}", **values), *self._place(node.start_mark.index)))

    def _mapping_leaves(self, node: MappingNode, path: str, depth: int) -> Iterator[Leaf]:
        self._copy_budget -= len(node.value)
        for name, value in node.value:
            if not _is_scalar(name):
                self._remark("odd_key", name)
                continue
            if name.tag.endswith(":merge") or name.value == "<<":
                yield from self._merge_leaves(node, value, path, depth)
                continue
            yield from self._value_leaves(f"{path}{name.value}", value, name, depth)

    def _merge_leaves(self, node: MappingNode, value: Node, path: str, depth: int) -> Iterator[Leaf]:
        self._charge(node, depth)
        self._copy_budget -= len(node.value) + len(value.value)
        own = {name.value for name, _ in node.value if _is_scalar(name)}
        for source in value.value if _is_sequence(value) else [value]:
            if _is_mapping(source):
                for leaf in self._mapping_leaves(source, path, depth + 1):
                    if leaf.key.removeprefix(path).partition(".")[0] not in own:
                        yield leaf

    def _value_leaves(self, key: str, node: Node, name: Node, depth: int) -> Iterator[Leaf]:
        self._charge(name, depth)
        start, end = node.start_mark.index, self._written_end(node)
        self._copy_budget -= end - start
        line, column = self._place(name.start_mark.index)
        if _is_scalar(node):
            start, end = self._scalar_span(name, start, end)
            null = not node.style and node.value in _NULL  # quoted text is never null
            text = None if null else self._scalar_text(key, node)
            yield Leaf(key, text, self.text[start:end], start, end, line, column, "null" if null else "scalar")
            return
        properties = _PROPERTIES.match(self.text, start, end)
        start = properties.end() if properties else start
        written = self.text[start:end]
        if _is_sequence(node):
            self._copy_budget -= len(node.value)
            scalars = tuple(item.value for item in node.value if _is_scalar(item))
            yield Leaf(key, None, written, start, end, line, column, "list", scalars)
            for index, item in enumerate(node.value):
                if not _is_scalar(item):
                    yield from self._value_leaves(f"{key}.{index}", item, item, depth + 1)
        elif _is_mapping(node):
            yield Leaf(key, None, written, start, end, line, column, "map")
            yield from self._mapping_leaves(node, f"{key}.", depth + 1)

    def _scalar_span(self, name: Node, start: int, end: int) -> tuple[int, int]:
        """Offsets of a scalar without its anchor or tag; of an alias those of the alias, since its anchor may serve other keys."""
        if start < name.start_mark.index:
            alias = _ALIAS.match(self.text, name.end_mark.index)
            if alias:
                return alias.start(1), alias.end(1)
        properties = _PROPERTIES.match(self.text, start, end)
        return (properties.end() if properties else start), end

    def _scalar_text(self, key: str, node: ScalarNode) -> str:
        """The text of a scalar; of an integer in another notation its decimal value, with a remark."""
        if node.style or len(node.value) > _MAX_DIGITS or not _NON_DECIMAL.fullmatch(node.value):
            return str(node.value)
        value = _parse_int(node.value)
        if value is None or str(value) == node.value:
            return str(node.value)
        if "_" not in node.value:
            self._remark("odd_number", node, name=key, written=node.value, value=value)
        return str(value)

    def _charge(self, place: Node, depth: int) -> None:
        """Count one key or merge against the budget. Raises Unreadable where it is exceeded."""
        self._budget -= 1
        if self._budget < 0 or self._copy_budget < 0 or depth > MAX_DEPTH:
            raise Unreadable("too_large", phrase("adapters.too_large"), *self._place(place.start_mark.index))

    def _written_end(self, node: Node) -> int:
        """The offset behind a value as written: the end mark of a block node stands behind the blanks that follow it."""
        end: int = node.end_mark.index
        if not _is_scalar(node) and not getattr(node, "flow_style", False):
            if id(node) not in self._end_cache:  # computed once per anchor, not once per alias
                parts = [part for pair in node.value for part in pair] if _is_mapping(node) else node.value
                ends = (self._written_end(part) for part in parts if part.start_mark.index >= node.start_mark.index)
                self._end_cache[id(node)] = max(ends, default=end)
            return self._end_cache[id(node)]
        if getattr(node, "style", None) in ("|", ">"):
            start: int = node.start_mark.index
            return start + len(self.text[start:end].rstrip())
        return end


def _parse_int(text: str) -> int | None:
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


def compose_documents(text: str) -> list[Node | None]:
    """The node trees of a text's documents, nothing constructed. Raises Unreadable for what is not YAML or is too large."""
    import yaml  # not loaded for logs without a config

    loader = yaml_loader()
    try:
        depth = 0
        for count, event in enumerate(yaml.parse(text, loader)):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH or count > 4 * MAX_LEAVES:
                mark = event.start_mark
                raise Unreadable("too_large", phrase("adapters.too_large"), mark.line + 1 if mark else 0, mark.column + 1 if mark else 0)
        return list(yaml.compose_all(text, loader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        if mark and _is_tab_indent(text, mark.index):
            raise Unreadable("not_yaml", phrase("adapters.yaml_tab"), line, column) from error
        reason = " ".join(part for part in (error.context, error.problem) if part)
        raise Unreadable(
            "not_yaml", phrase("adapters.not_yaml", reason=reason.replace("{", "(").replace("}", ")")), line, column
        ) from error
    except yaml.YAMLError as error:  # a character that YAML forbids
        raise Unreadable("not_yaml", phrase("adapters.not_yaml", reason=str(error).splitlines()[0])) from error


def _is_tab_indent(text: str, pos: int) -> bool:
    """Whether the line up to a position is blank and holds a tab, which YAML forbids as indentation."""
    line = text[text.rfind("\n", 0, pos) + 1 : pos + 1]
    return "\t" in line and not line.strip()


def _is_scalar(node: Node) -> TypeGuard[ScalarNode]:
    return getattr(node, "id", "") == "scalar"


def _is_sequence(node: Node) -> TypeGuard[SequenceNode]:
    return getattr(node, "id", "") == "sequence"


def _is_mapping(node: Node) -> TypeGuard[MappingNode]:
    return getattr(node, "id", "") == "mapping"
