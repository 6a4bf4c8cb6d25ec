"""A training script as far as its calls say it: keyword arguments of the trainer's classes, in order. Nothing is run."""

from __future__ import annotations

import ast
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field

from diagnose.adapters.leaf import MAX_DEPTH, MAX_LEAVES, MAX_SCRIPT, Leaf, Places, Unreadable
from diagnose.phrases import phrase

#: Classes whose keyword arguments keep their class's name; those of a trainer's own configuration are spelled bare.
NAMED = frozenset({"LoraConfig", "BitsAndBytesConfig", "DataLoader"})
_TRAINER_SUFFIX = "Trainer"
_PLAIN_TRAINERS = frozenset({"Trainer", "Seq2SeqTrainer"})

#: Bits of the longest number that means anything.
LONGEST = 1024


@dataclass(slots=True)
class Script:
    """What a script shows. `classes` are the trainer classes that it calls, with their places; `env` what it writes to os.environ."""

    leaves: list[Leaf] = field(default_factory=list)
    classes: dict[str, tuple[int, int]] = field(default_factory=dict)
    env: list[Leaf] = field(default_factory=list)
    cuda_before_shard: bool | None = None
    args_after_model: bool | None = None
    cuda_at: tuple[int, int] = (0, 0)
    model_at: tuple[int, int] = (0, 0)
    literals: dict[str, object] = field(default_factory=dict)  # dict literals given as deepspeed=, fsdp_config=


class Reader:
    """Reads a script's calls in source order; names bound once to a literal are followed."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._bytes = [len(line.encode()) == len(line) for line in text.split("\n")]
        self._lines = text.split("\n")
        self._offsets = [0]
        for line in self._lines:
            self._offsets.append(self._offsets[-1] + len(line) + 1)
        self._bound: dict[str, ast.expr | None] = {}
        self._modules: dict[str, str] = {}
        self._place = Places(text)
        self.script = Script()
        self._columns: dict[int, list[int]] = {}  # of lines that are not ASCII: the character at each byte
        self._keys: set[str] = set()
        self._left = MAX_LEAVES

    def read(self, args_classes: frozenset[str]) -> Script:
        """The script's settings. Raises Unreadable where it is not Python."""
        tree = parsed(self.text)
        for node in ast.walk(tree):
            self._bind(node)
            if isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value.bit_length() > LONGEST:
                node.value = math.inf  # it has more digits than Python prints
        calls = sorted(
            (_late(node) for node in ast.walk(tree) if isinstance(node, ast.Call)),
            key=lambda call: (call.end_lineno or 0, call.end_col_offset or 0),
        )
        models: set[str] | None = None
        loaded = moved = argued = trained = None
        for call in calls:
            name = called(call.func)
            if name == "from_pretrained" and _loads_model(call.func):
                loaded = loaded or call
                self._model(call)
            elif name in NAMED:
                self._keywords(call, f"{name}.")
                self._whole(call, name)
            elif name in args_classes and not name.endswith(_TRAINER_SUFFIX):
                argued = argued or call
                self.script.classes.setdefault(name, self._at(call))
                self._keywords(call, "")
                self._whole(call, f"{name}()", call_inside=True)
            elif name.endswith(_TRAINER_SUFFIX) and (
                name in args_classes or (name in _PLAIN_TRAINERS and self._from_transformers(call.func))
            ):
                trained = trained or call
                self.script.classes.setdefault(name, self._at(call))
                self._keywords(call, f"{name}.")
                self._trainer_model(call)
            elif name == "prepare" and isinstance(call.func, ast.Attribute) and "accelerator" in ast.unparse(call.func.value):
                trained = trained or call
            elif moved is None and _moves(call):
                models = set(_model_names(tree)) if models is None else models
                moved = call if _holds_model(call.func, models) else None
        self._environment(tree)
        self._order(loaded, moved, argued, trained)
        return self.script

    def _order(self, loaded: ast.Call | None, moved: ast.Call | None, argued: ast.Call | None, trained: ast.Call | None) -> None:
        """Loading before the arguments exist defeats sharding at load; moving before the trainer exists fills the card."""
        if loaded is None:
            return
        self.script.model_at = self._at(loaded)
        if trained is not None:
            before = moved is not None and moved.lineno < trained.lineno
            self.script.cuda_before_shard = before
            if moved is not None and before:
                self.script.cuda_at = self._place(self._offset(moved.end_lineno or 0, moved.end_col_offset or 0) - 1)
        if argued is not None and isinstance(argued, ast.Call):
            self.script.args_after_model = argued.lineno > loaded.lineno

    def _bind(self, node: ast.AST) -> None:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for name in node.names:
                self._modules[name.asname or name.name] = name.name if isinstance(node, ast.Import) else node.module or ""
            return
        if isinstance(node, ast.Assign):
            pairs: list[tuple[ast.expr, ast.expr]] = [(target, node.value) for target in node.targets]
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            pairs = [(node.target, node.value)]
        else:
            return
        for target, value in pairs:
            if isinstance(target, ast.Name):
                self._bound[target.id] = None if target.id in self._bound else value  # bound twice: nobody knows which

    def _from_transformers(self, func: ast.expr) -> bool:
        """Other libraries have a Trainer as well."""
        owner = func.value.id if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) else called(func)
        return self._modules.get(owner, "transformers").startswith("transformers")

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

    def _keywords(self, call: ast.Call, prefix: str) -> None:
        for keyword in call.keywords:
            if keyword.arg is None:
                self._spread(keyword.value, prefix)
            else:
                self._leaf(f"{prefix}{keyword.arg}", keyword.value, keyword)

    def _spread(self, value: ast.expr, prefix: str) -> None:
        """`**settings` where settings is a dict literal."""
        value = self._followed(value)
        if isinstance(value, ast.Dict):
            for name, inner in zip(value.keys, value.values, strict=True):
                if isinstance(name, ast.Constant) and isinstance(name.value, str):
                    self._leaf(f"{prefix}{name.value}", inner, None)
        elif isinstance(value, ast.Call) and called(value.func) == "dict":
            self._keywords(value, prefix)

    def _followed(self, node: ast.expr) -> ast.expr:
        seen = 0
        while isinstance(node, ast.Name) and seen < 8:
            bound = self._bound.get(node.id)
            if bound is None:
                break
            node, seen = bound, seen + 1
        return node

    def _leaf(self, key: str, node: ast.expr, keyword: ast.keyword | None) -> None:
        self._left -= 1
        if self._left < 0 or key.count(".") > MAX_DEPTH:  # names that hold each other unfold without end
            raise Unreadable("too_large", phrase("adapters.too_large"))
        start, end = self._span(node)
        value = self._followed(node)
        line, column = (
            self._at(value) if value is not node else self._place(self._offset(keyword.lineno, keyword.col_offset) if keyword else start)
        )
        written = self.text[start:end]
        text = scalar(value)
        if isinstance(value, ast.Constant) and value.value is None:
            self._add(Leaf(key, None, written, start, end, line, column, "null"))
        elif text is not None:
            self._add(Leaf(key, text, written, start, end, line, column))
        elif isinstance(value, (ast.List, ast.Tuple, ast.Set)):
            items = tuple(item for item in (scalar(part) for part in value.elts) if item is not None)
            self._add(Leaf(key, None, written, start, end, line, column, "list", items))
        elif isinstance(value, ast.Dict) or (isinstance(value, ast.Call) and called(value.func) == "dict"):
            self._add(Leaf(key, None, written, start, end, line, column, "map"))
            if (literal := _literal(value)) is not None:
                self.script.literals[key] = literal
            self._spread(value, f"{key}.")
        else:
            self._add(Leaf(key, None, written, start, end, line, column, "unsure"))

    def _add(self, leaf: Leaf) -> None:
        if leaf.key not in self._keys:  # of two models the first is the one trained
            self._keys.add(leaf.key)
            self.script.leaves.append(leaf)

    def _whole(self, call: ast.Call, key: str, *, call_inside: bool = False) -> None:
        """The call itself: where a keyword can be added."""
        start, end = self._span(call)
        line, column = self._place(start)
        if call_inside:
            start, end = self._span(call.func)[1] + 1, end - 1
        self._add(Leaf(key, "true", self.text[start:end], start, end, line, column, "map"))

    def _model(self, call: ast.Call) -> None:
        if call.args:
            self._leaf("from_pretrained.model", call.args[0], None)
        for keyword in call.keywords:
            if keyword.arg == "pretrained_model_name_or_path":
                self._leaf("from_pretrained.model", keyword.value, keyword)
        self._keywords(call, "from_pretrained.")

    def _trainer_model(self, call: ast.Call) -> None:
        """A trainer given a model's name loads it itself."""
        given = next((keyword.value for keyword in call.keywords if keyword.arg == "model"), call.args[0] if call.args else None)
        if given is not None and isinstance(self._followed(given), ast.Constant):
            self._leaf("Trainer.model", given, None)

    def _environment(self, tree: ast.AST) -> None:
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript)):
                continue
            target = node.targets[0]
            if called(target.value) == "environ" and isinstance(target.slice, ast.Constant) and isinstance(target.slice.value, str):
                start, end = self._span(node.value)
                text = scalar(self._followed(node.value))
                self.script.env.append(
                    Leaf(
                        target.slice.value,
                        text,
                        self.text[start:end],
                        start,
                        end,
                        *self._place(start),
                        "scalar" if text is not None else "unsure",
                    )
                )


def parsed(text: str) -> ast.Module:
    """The script's tree. Raises Unreadable with the place of its first fault."""
    if len(text) > MAX_SCRIPT:
        raise Unreadable("too_large", phrase("adapters.too_large"))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        raise Unreadable(
            "not_python",
            phrase("adapters.not_python", reason=(error.msg or "").replace("{", "(").replace("}", ")")),
            error.lineno or 0,
            error.offset or 0,
        ) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise Unreadable("not_python", phrase("adapters.not_python", reason=type(error).__name__)) from error


def _late(call: ast.Call) -> ast.Call:
    """`dict(type=X, a=1)`, as configurations of the mmengine family write a call to be made later: X(a=1) in its place."""
    made = next((word.value for word in call.keywords if word.arg == "type"), None)
    if called(call.func) != "dict" or not isinstance(made, (ast.Name, ast.Attribute)):
        return call
    return ast.copy_location(ast.Call(made, [], [word for word in call.keywords if word.arg != "type"]), call)


def called(func: ast.expr) -> str:
    """The last name of what is called: `trl.SFTConfig` is SFTConfig."""
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def scalar(node: ast.expr) -> str | None:
    """A literal as text; `torch.bfloat16` is bfloat16; simple arithmetic of numbers is done; None for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (str, int, float, bool)):
        return str(node.value)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "torch":
        return node.attr
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = scalar(node.operand)
        return f"-{inner}" if inner is not None else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Add, ast.Sub)):
        return _sum(node)
    return None


def _sum(node: ast.BinOp) -> str | None:
    left, right = scalar(node.left), scalar(node.right)
    if left is None or right is None or not (left.isdecimal() and right.isdecimal()) or len(left) + len(right) > 24:
        return None
    a, b = int(left), int(right)
    return str(a * b if isinstance(node.op, ast.Mult) else a + b if isinstance(node.op, ast.Add) else a - b)


def _literal(node: ast.expr) -> object:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _loads_model(func: ast.expr) -> bool:
    owner = ast.unparse(func.value) if isinstance(func, ast.Attribute) else ""
    last = owner.rpartition(".")[2]
    return "Model" in last and not last.endswith(("Tokenizer", "Processor")) and last != "PeftModel"


def _moves(call: ast.Call) -> bool:
    """`.cuda()` or `.to("cuda")`, `.to(device)`."""
    name = called(call.func)
    if name == "cuda":
        return isinstance(call.func, ast.Attribute) and not call.args
    if name != "to" or not call.args:
        return False
    target = call.args[0]
    text = scalar(target) or ""
    return text.startswith("cuda") or (isinstance(target, ast.Name) and target.id in ("device", "rank", "local_rank", "device_map"))


def _holds_model(func: ast.expr, models: set[str]) -> bool:
    """Is what `.to` is called on a model that was loaded: the call itself, or a name bound to it?"""
    owner = func.value if isinstance(func, ast.Attribute) else None
    if isinstance(owner, ast.Call):
        return any(
            isinstance(node, ast.Call) and called(node.func) == "from_pretrained" and _loads_model(node.func) for node in ast.walk(owner)
        )
    return isinstance(owner, ast.Name) and owner.id in models


def _model_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            inside = [call for call in ast.walk(node.value) if isinstance(call, ast.Call)]
            if any(called(call.func) == "from_pretrained" and _loads_model(call.func) for call in inside):
                yield node.targets[0].id
