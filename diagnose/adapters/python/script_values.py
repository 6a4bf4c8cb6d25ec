"""The values that a script's calls set, as leaves with their places."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from diagnose.adapters.formats.config_value import MAX_DEPTH, MAX_LEAVES, Leaf, Places, Unreadable
from diagnose.adapters.python.script_calls import callee_name, literal_value, scalar_text
from diagnose.adapters.python.script_names import Resolution, ScriptNames
from diagnose.phrases import phrase


@dataclass(slots=True)
class Script:
    """What a script says.

    `classes` are the trainer classes that it calls, with their places; `env` what it writes to os.environ before CUDA starts,
    `too_late` what it writes there afterwards. `partial`: settings come from elsewhere as well, such as a mapping that is not in
    the script; `asks`: a parser of the command line fills its settings.
    """

    leaves: list[Leaf] = field(default_factory=list)
    classes: dict[str, tuple[int, int]] = field(default_factory=dict)
    env: list[Leaf] = field(default_factory=list)
    too_late: list[Leaf] = field(default_factory=list)
    cuda_before_shard: bool | None = None
    args_after_model: bool | None = None
    model_in_init: bool | None = None
    generates_at: tuple[int, int] | None = None  # of a script that generates and trains nothing
    cuda_at: tuple[int, int] = (0, 0)
    cuda_by: str = ""  # how it is moved: to, cuda, device_map
    model_at: tuple[int, int] = (0, 0)
    literals: dict[str, object] = field(default_factory=dict)  # dict literals given as deepspeed=, fsdp_config=
    partial: bool = False
    asks: bool = False


class NodePlaces:
    """Maps the places of `ast` to offsets: lines end as Python ends them, columns are counted in UTF-8 bytes. Of a script that was cut off,
    the brackets that close it stand at its end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._places = Places(text, "python")
        self._last = self._places(len(text))[0]
        self._columns: dict[int, list[int] | None] = {}  # by line: the column of each byte; None: each byte is a character

    def __call__(self, line: int, byte: int) -> int:
        if line > self._last:
            return len(self._text)
        if line not in self._columns:
            text = self._places.line(self._text, line)
            self._columns[line] = None if text.isascii() else [column for column, char in enumerate(text) for _ in char.encode()]
        columns = self._columns[line]
        if columns is not None:
            byte = columns[byte] if byte < len(columns) else len(columns) and columns[-1] + 1
        return min(self._places.offset(line, byte + 1), len(self._text))

    def span(self, node: ast.expr | ast.keyword) -> tuple[int, int]:
        """Where a node begins and ends."""
        start = self(node.lineno, node.col_offset)
        return start, self(node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)


class LeafCollector:
    """Collects what a script sets as leaves; names bound once to a literal are followed."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._names = ScriptNames()
        self._place = Places(text, "python")
        self._offset = NodePlaces(text)
        self.script = Script()
        self._positions: dict[str, int] = {}
        self._budget = MAX_LEAVES

    # -- places

    def _place_of(self, node: ast.expr) -> tuple[int, int]:
        return self._place(self._offset(node.lineno, node.col_offset))

    def _span(self, node: ast.expr) -> tuple[int, int]:
        return self._offset.span(node)

    # -- leaves

    def _add_keywords(self, call: ast.Call, prefix: str) -> None:
        for keyword in call.keywords:
            if keyword.arg is None:
                self._add_mapping(keyword.value, prefix)
            else:
                self._add_value(f"{prefix}{keyword.arg}", keyword.value, keyword)

    def _add_mapping(self, value: ast.expr, prefix: str) -> None:
        """`**settings`: the items of a dict literal; any other mapping makes the settings partial."""
        name = value.id if isinstance(value, ast.Name) else ""
        value = self._names.follow(value)
        if isinstance(value, ast.Dict):
            for key, inner in zip(value.keys, value.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    self._add_value(f"{prefix}{key.value}", inner, None)
                elif key is None:
                    self._add_mapping(inner, prefix)
        elif isinstance(value, ast.Call) and callee_name(value.func) == "dict":
            self._add_keywords(value, prefix)
        elif not prefix:
            self.script.partial = True
        self.script.partial = self.script.partial or (not prefix and name in self._names.mutated)

    def _add_value(self, key: str, node: ast.expr, keyword: ast.keyword | None, *, override: bool = False, option: str = "") -> None:
        self._spend(key)
        start, end = self._span(node)
        resolution = self._names.resolve(node)
        value, option = resolution.node, resolution.option or option
        line, column = (
            self._place_of(value)
            if value is not node
            else self._place(self._offset(keyword.lineno, keyword.col_offset) if keyword else start)
        )
        leaf = Leaf(key, None, self.text[start:end], start, end, line, column, "unsure", option=option)
        text = scalar_text(value if not isinstance(value, ast.BinOp) else self._with_numbers(value))
        if isinstance(value, ast.Constant) and value.value is None:
            self._add_leaf(leaf._replace(shape="null"), override)
        elif text is not None:
            self._add_leaf(leaf._replace(text=text, shape="scalar"), override)
        elif isinstance(value, (ast.List, ast.Tuple, ast.Set)):
            items = tuple(item for item in (scalar_text(part) for part in value.elts) if item is not None)
            self._add_leaf(leaf._replace(shape="list", items=items), override)
        elif isinstance(value, ast.Dict) or (isinstance(value, ast.Call) and callee_name(value.func) == "dict"):
            self._add_leaf(leaf._replace(shape="map"), override)
            if (mapping := literal_value(value)) is not None:
                self.script.literals[key] = mapping
            self._add_mapping(value, f"{key}.")
        else:
            self._add_leaf(leaf, override)

    def _spend(self, key: str) -> None:
        """Count one more setting. Raises Unreadable for too many: dicts that refer to each other expand without end."""
        self._budget -= 1
        if self._budget < 0 or key.count(".") > MAX_DEPTH:
            raise Unreadable("too_large", phrase("adapters.too_large"))

    def _with_numbers(self, node: ast.BinOp) -> ast.BinOp:
        """An operation with what its names stand for: `rows * 2` of a script that says `rows = 4`."""
        return ast.copy_location(ast.BinOp(self._names.follow(node.left), node.op, self._names.follow(node.right)), node)

    def _add_leaf(self, leaf: Leaf, override: bool = False) -> None:
        """Add a leaf. Of equal keys the first stays, since the first of several models is the one trained, unless `override` is set."""
        if leaf.key not in self._positions:
            self._positions[leaf.key] = len(self.script.leaves)
            self.script.leaves.append(leaf)
        elif override:
            self.script.leaves[self._positions[leaf.key]] = leaf

    def _mark_unsure(self, key: str) -> None:
        """Make the value of a key unknown, because the script may set it otherwise as well."""
        position = self._positions[key]
        self.script.leaves[position] = self.script.leaves[position]._replace(text=None, shape="unsure", items=())

    def _add_call(
        self, call: ast.Call, key: str, *, call_inside: bool = False, switch: Resolution | None = None, text: str = "true"
    ) -> None:
        """Add the call itself, to which an edit can add a keyword. `switch` is the script's own boolean that it depends on."""
        start, end = self._span(call)
        line, column = self._place(start)
        if call_inside:
            start, end = min(self._span(call.func)[1] + 1, end - 1), end - 1
        text, option = (scalar_text(switch.node) or text, switch.option) if switch is not None else (text, "")
        self._add_leaf(Leaf(key, text, self.text[start:end], start, end, line, column, "map", option=option))

    def _environ_leaf(self, key: str, node: ast.expr) -> Leaf:
        """The leaf of a value that goes to os.environ."""
        start, end = self._span(node)
        text = scalar_text(self._names.follow(node))
        return Leaf(key, text, self.text[start:end], start, end, *self._place(start), "scalar" if text is not None else "unsure")
