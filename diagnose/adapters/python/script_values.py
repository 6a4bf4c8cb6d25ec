"""Where a script's calls and values stand, and what they say as leaves."""

from __future__ import annotations

import ast

from diagnose.adapters.formats.config_value import MAX_DEPTH, MAX_LEAVES, Leaf, Places, Unreadable
from diagnose.adapters.python.script_calls import called, literal, scalar
from diagnose.adapters.python.script_names import Found, Names
from diagnose.phrases import phrase
from diagnose.record import field, record, replace


@record(frozen=False)
class Script:
    """What a script shows. `classes` are the trainer classes that it calls, with their places; `env` what it writes to os.environ
    while that is still read, `too_late` what it writes there afterwards. `partial`: settings come from elsewhere as well, such as
    a mapping that is not in the script; `asks`: a parser of the command line fills its settings."""

    leaves: list[Leaf] = field(default_factory=list)
    classes: dict[str, tuple[int, int]] = field(default_factory=dict)
    env: list[Leaf] = field(default_factory=list)
    too_late: list[Leaf] = field(default_factory=list)
    cuda_before_shard: bool | None = None
    args_after_model: bool | None = None
    model_in_init: bool | None = None
    generates_at: tuple[int, int] | None = None  # of a script that generates and learns nothing
    cuda_at: tuple[int, int] = (0, 0)
    cuda_by: str = ""  # what moves it: to, cuda, device_map
    model_at: tuple[int, int] = (0, 0)
    literals: dict[str, object] = field(default_factory=dict)  # dict literals given as deepspeed=, fsdp_config=
    partial: bool = False
    asks: bool = False


class Leaves:
    """Puts down what a script sets, each with its place; names bound once to a literal are followed."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._lines = text.split("\n")
        self._bytes = [len(line.encode()) == len(line) for line in self._lines]
        self._offsets = [0]
        for line in self._lines:
            self._offsets.append(self._offsets[-1] + len(line) + 1)
        self._names = Names()
        self._place = Places(text)
        self.script = Script()
        self._columns: dict[int, list[int]] = {}  # of lines that are not ASCII: the character at each byte
        self._keys: dict[str, int] = {}
        self._left = MAX_LEAVES

    # -- places

    def _offset(self, line: int, byte: int) -> int:
        """ast counts columns in UTF-8 bytes."""
        if self._bytes[line - 1]:
            return self._offsets[line - 1] + byte
        if line not in self._columns:
            text = self._lines[line - 1]
            self._columns[line] = [at for at, sign in enumerate(text) for _ in sign.encode()] + [len(text)]
        columns = self._columns[line]
        return self._offsets[line - 1] + columns[min(byte, len(columns) - 1)]

    def _at(self, node: ast.expr) -> tuple[int, int]:
        return self._place(self._offset(node.lineno, node.col_offset))

    def _span(self, node: ast.expr) -> tuple[int, int]:
        return self._offset(node.lineno, node.col_offset), self._offset(
            node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
        )

    # -- settings

    def _keywords(self, call: ast.Call, prefix: str) -> None:
        for keyword in call.keywords:
            if keyword.arg is None:
                self._spread(keyword.value, prefix)
            else:
                self._leaf(f"{prefix}{keyword.arg}", keyword.value, keyword)

    def _spread(self, value: ast.expr, prefix: str) -> None:
        """`**settings` where settings is a dict literal; any other mapping may hold every key."""
        name = value.id if isinstance(value, ast.Name) else ""
        value = self._names.followed(value)
        if isinstance(value, ast.Dict):
            for key, inner in zip(value.keys, value.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    self._leaf(f"{prefix}{key.value}", inner, None)
                elif key is None:
                    self._spread(inner, prefix)
        elif isinstance(value, ast.Call) and called(value.func) == "dict":
            self._keywords(value, prefix)
        elif not prefix:
            self.script.partial = True
        self.script.partial = self.script.partial or (not prefix and name in self._names.refilled)

    def _leaf(self, key: str, node: ast.expr, keyword: ast.keyword | None, *, again: bool = False, option: str = "") -> None:
        self._left -= 1
        if self._left < 0 or key.count(".") > MAX_DEPTH:  # names that hold each other unfold without end
            raise Unreadable("too_large", phrase("adapters.too_large"))
        start, end = self._span(node)
        found = self._names.found(node)
        value, option = found.node, found.option or option
        line, column = (
            self._at(value) if value is not node else self._place(self._offset(keyword.lineno, keyword.col_offset) if keyword else start)
        )
        leaf = Leaf(key, None, self.text[start:end], start, end, line, column, "unsure", option=option)
        text = scalar(value)
        if isinstance(value, ast.Constant) and value.value is None:
            self._add(replace(leaf, shape="null"), again)
        elif text is not None:
            self._add(replace(leaf, text=text, shape="scalar"), again)
        elif isinstance(value, (ast.List, ast.Tuple, ast.Set)):
            items = tuple(item for item in (scalar(part) for part in value.elts) if item is not None)
            self._add(replace(leaf, shape="list", items=items), again)
        elif isinstance(value, ast.Dict) or (isinstance(value, ast.Call) and called(value.func) == "dict"):
            self._add(replace(leaf, shape="map"), again)
            if (held := literal(value)) is not None:
                self.script.literals[key] = held
            self._spread(value, f"{key}.")
        else:
            self._add(leaf, again)

    def _add(self, leaf: Leaf, again: bool = False) -> None:
        """Of two models the first is the one trained; what a script sets again (`again`) is what holds."""
        if leaf.key not in self._keys:
            self._keys[leaf.key] = len(self.script.leaves)
            self.script.leaves.append(leaf)
        elif again:
            self.script.leaves[self._keys[leaf.key]] = leaf

    def _open(self, key: str) -> None:
        """What the script may set otherwise as well is unknown."""
        at = self._keys[key]
        self.script.leaves[at] = replace(self.script.leaves[at], text=None, shape="unsure", items=())

    def _whole(self, call: ast.Call, key: str, *, call_inside: bool = False, switch: Found | None = None) -> None:
        """The call itself: where a keyword can be added. `switch`: what of the script's own it hangs on."""
        start, end = self._span(call)
        line, column = self._place(start)
        if call_inside:
            start, end = self._span(call.func)[1] + 1, end - 1
        text, option = (scalar(switch.node) or "true", switch.option) if switch is not None else ("true", "")
        self._add(Leaf(key, text, self.text[start:end], start, end, line, column, "map", option=option))

    def _constant(self, key: str, node: ast.expr) -> Leaf:
        """A value that goes to os.environ."""
        start, end = self._span(node)
        text = scalar(self._names.followed(node))
        return Leaf(key, text, self.text[start:end], start, end, *self._place(start), "scalar" if text is not None else "unsure")
