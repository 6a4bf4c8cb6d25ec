"""A training script as far as its calls say it: keyword arguments of the trainer's classes, in order. Nothing is run."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence

from diagnose.adapters.leaf import MAX_DEPTH, MAX_LEAVES, Leaf, Places, Unreadable
from diagnose.adapters.script_calls import called, late, literal, loads_model, parsed, scalar
from diagnose.adapters.script_env import environment
from diagnose.adapters.script_models import Models, mapped
from diagnose.adapters.script_names import PARSERS, Names
from diagnose.adapters.script_order import Order
from diagnose.phrases import phrase
from diagnose.record import field, record, replace

#: Calls whose keyword arguments keep their name; those of a trainer's own configuration are spelled bare.
NAMED = frozenset({"LoraConfig", "BitsAndBytesConfig", "DataLoader", "get_peft_model", "prepare_model_for_kbit_training"})
NAMED |= {"DeepSpeedPlugin", "FullyShardedDataParallelPlugin", "gradient_checkpointing_enable"}
NAMED |= {"DeepSpeedStrategy", "FSDPStrategy", "DDPStrategy", "ModelParallelStrategy", "BitsandbytesPrecision"}
_TRAINER_SUFFIX = "Trainer"
_FILES = frozenset({"parse_yaml_file", "parse_json_file"})
_PLAIN_TRAINERS = frozenset({"Trainer", "Seq2SeqTrainer"})
#: Bits of the longest number that means anything.
LONGEST = 1024


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
    cuda_at: tuple[int, int] = (0, 0)
    cuda_by: str = ""  # what moves it: to, cuda, device_map
    model_at: tuple[int, int] = (0, 0)
    literals: dict[str, object] = field(default_factory=dict)  # dict literals given as deepspeed=, fsdp_config=
    partial: bool = False
    asks: bool = False


class Reader:
    """Reads a script's calls in source order; names bound once to a literal are followed."""

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

    def read(self, args_classes: frozenset[str]) -> Script:
        """The script's settings. Raises Unreadable where it is not Python."""
        tree = parsed(self.text)
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value.bit_length() > LONGEST:
                node.value = math.inf  # it has more digits than Python prints
        self._names = Names.of(tree)
        calls = sorted(
            (late(node) for node in ast.walk(tree) if isinstance(node, ast.Call)),
            key=lambda call: (call.end_lineno or 0, call.end_col_offset or 0),
        )
        order = Order(tree)
        models = Models(tree, calls, order)
        moved = next((call for call in models.loads if mapped(call)), None)
        argued = trained = None
        for call in calls:
            name = called(call.func)
            if name == "from_pretrained" and loads_model(call.func):
                self._loads(call, models.loads, args_classes)
            elif name in NAMED:
                self._keywords(call, f"{name}.")
                self._whole(call, name)
            elif name in PARSERS | _FILES:
                self._filled(call, args_classes)
            elif not name.endswith(_TRAINER_SUFFIX) and (kind := self._kind(name, args_classes)):
                argued = argued or call
                self.script.classes.setdefault(kind, self._at(call))
                self._keywords(call, "")
                self._whole(call, f"{name}()", call_inside=True)
                self._inherited(name, kind, asked=False)
            elif self._trains(call, name, args_classes):
                trained = trained or call
            elif moved is None and models.is_moved(call):
                moved = call
        self._set_later(args_classes)
        for leaf, effective in environment(tree, self._constant):
            (self.script.env if effective else self.script.too_late).append(leaf)
        if models.loads:
            self._order(order, models.loads[0], moved, argued, trained)
        return self.script

    def _trains(self, call: ast.Call, name: str, args_classes: frozenset[str]) -> bool:
        """A trainer, or Accelerate's prepare: what may shard the model."""
        if name == "prepare" and isinstance(call.func, ast.Attribute):
            return "accelerator" in ast.unparse(call.func.value)
        kind = self._kind(name, args_classes | _PLAIN_TRAINERS) if name.endswith(_TRAINER_SUFFIX) else ""
        if not kind or (kind in _PLAIN_TRAINERS and kind not in args_classes and not self._from_transformers(call.func)):
            return False
        self.script.classes.setdefault(kind, self._at(call))
        self._keywords(call, f"{name}.")
        self._trainer_model(call)
        return True

    def _kind(self, name: str, classes: frozenset[str]) -> str:
        """The known class that a name is, itself or by derivation within the script; empty: none."""
        return next((base for base in self._names.bases(name) if base in classes), "")

    def _order(self, order: Order, loaded: ast.Call, moved: ast.Call | None, argued: ast.Call | None, trained: ast.Call | None) -> None:
        """Loading before the arguments exist defeats sharding at load; moving before the trainer exists fills the card."""
        self.script.model_at = self._at(loaded)
        self.script.model_in_init = order.in_init(loaded, "LightningModule")
        if trained is not None:
            self.script.cuda_before_shard = moved is not None and order.before(moved, trained)
            if moved is not None and self.script.cuda_before_shard:
                self.script.cuda_by = called(moved.func) if called(moved.func) in ("to", "cuda") else "device_map"
                self.script.cuda_at = self._place(self._offset(moved.end_lineno or 0, moved.end_col_offset or 0) - 1)
        if argued is not None:
            self.script.args_after_model = order.before(loaded, argued)

    def _from_transformers(self, func: ast.expr) -> bool:
        """Other libraries have a Trainer as well."""
        owner = func.value.id if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) else called(func)
        return self._names.modules.get(owner, "transformers").startswith("transformers")

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

    def _whole(self, call: ast.Call, key: str, *, call_inside: bool = False) -> None:
        """The call itself: where a keyword can be added."""
        start, end = self._span(call)
        line, column = self._place(start)
        if call_inside:
            start, end = self._span(call.func)[1] + 1, end - 1
        self._add(Leaf(key, "true", self.text[start:end], start, end, line, column, "map"))

    def _loads(self, call: ast.Call, models: Sequence[ast.Call], args_classes: frozenset[str]) -> None:
        """A model that is loaded: its arguments where it is the one trained; a loader of the framework's own names the framework."""
        if any(call is one for one in models):
            self._model(call)
        if isinstance(call.func, ast.Attribute) and (owner := called(call.func.value)) in args_classes:
            self.script.classes.setdefault(owner, self._at(call))

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
        if given is not None and isinstance(self._names.followed(given), ast.Constant):
            self._leaf("Trainer.model", given, None)

    def _filled(self, call: ast.Call, args_classes: frozenset[str]) -> None:
        """A parser that fills the trainer's classes: what the script presets, and that the rest is asked of the command line, or of
        a file that it names."""
        if called(call.func) in _FILES:
            self._file(call)
        for name in self._names.filled(call):
            kind = self._kind(name, args_classes)
            if kind:
                self.script.classes.setdefault(kind, self._at(call))
                self.script.asks = True
            self._inherited(name, kind, asked=True)

    def _file(self, call: ast.Call) -> None:
        """`parser.parse_yaml_file("args.yaml")`: the settings stand in another file."""
        given = call.args[:1] or [word.value for word in call.keywords if word.arg in ("yaml_file", "json_file")]
        if given and isinstance(self._names.followed(given[0]), ast.Constant):
            self._leaf("config", given[0], None)

    def _inherited(self, name: str, kind: str, *, asked: bool) -> None:
        """Fields that the script's own class derived from the trainer's presets."""
        for attribute, value in self._names.fields(name) if kind else ():
            self._leaf(attribute, value, None, option=attribute if asked else "")

    def _set_later(self, args_classes: frozenset[str]) -> None:
        """`args.bf16 = True` after `args = TrainingArguments(...)`."""
        for change in self._names.changed:
            held = self._names.bound.get(change.name)
            name = self._names.parsed.get(change.name) or (called(held.func) if isinstance(held, ast.Call) else "")
            if not name or not self._kind(name, args_classes) or name.endswith(_TRAINER_SUFFIX):
                continue
            self._leaf(change.attribute, change.value, None, again=True)
            if not change.sure:
                at = self._keys[change.attribute]
                self.script.leaves[at] = replace(self.script.leaves[at], text=None, shape="unsure", items=())

    def _constant(self, key: str, node: ast.expr) -> Leaf:
        """A value that goes to os.environ."""
        start, end = self._span(node)
        text = scalar(self._names.followed(node))
        return Leaf(key, text, self.text[start:end], start, end, *self._place(start), "scalar" if text is not None else "unsure")
