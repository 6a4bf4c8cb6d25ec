"""A training script as far as its calls say it: keyword arguments of the trainer's classes, in order. Nothing is run."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from diagnose.adapters.formats.config_value import Leaf
from diagnose.adapters.python.script_calls import EMBEDDERS, NAMED, called, cuts, generating, late, loads_model, parsed, scalar
from diagnose.adapters.python.script_env import environment
from diagnose.adapters.python.script_models import Models, mapped
from diagnose.adapters.python.script_names import PARSERS, Names
from diagnose.adapters.python.script_order import Order
from diagnose.adapters.python.script_values import Leaves, Script

_TRAINER_SUFFIX = "Trainer"
_FILES = frozenset({"parse_yaml_file", "parse_json_file"})
_PLAIN_TRAINERS = frozenset({"Trainer", "Seq2SeqTrainer"})


class Reader(Leaves):
    """Reads a script's calls in source order."""

    def read(self, args_classes: frozenset[str]) -> Script:
        """The script's settings. Raises Unreadable where it is not Python."""
        tree = parsed(self.text)
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
            if name == "from_pretrained":
                self._loads(call, models.loads, args_classes)
            elif name in EMBEDDERS and not models.loads:
                self._embedder(call, EMBEDDERS[name])
            elif name in NAMED:
                self._named(call, name)
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
        self._own_code(calls)
        self._set_later(args_classes)
        for leaf, effective in environment(tree, self._constant):
            (self.script.env if effective else self.script.too_late).append(leaf)
        made = generating(calls, self._names.modules)
        if made is not None:
            self.script.generates_at = self._at(made)
            self._pipeline(made)
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

    # -- settings

    def _named(self, call: ast.Call, name: str) -> None:
        """A call that says something by itself, unless the script switches it off (`if args.use_lora:`)."""
        switch = self._names.switch(call)
        if switch is not None and not switch.option and scalar(switch.node) == "False":
            return
        self._keywords(call, f"{name}.")
        self._whole(call, name, switch=switch)

    def _loads(self, call: ast.Call, models: Sequence[ast.Call], args_classes: frozenset[str]) -> None:
        """A model that is loaded: its arguments where it is the one trained; a loader of the framework's own names the framework.
        Of a tokenizer the limit that it is given."""
        if not loads_model(call.func):
            for limit in (word for word in call.keywords if word.arg == "model_max_length"):
                self._leaf("tokenizer.model_max_length", limit.value, limit)
            return
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
        if isinstance(call.func, ast.Attribute):
            (start, end), owner = self._span(call.func.value), called(call.func.value)
            self._add(Leaf("from_pretrained", owner, self.text[start:end], start, end, *self._place(start), "scalar"))

    def _embedder(self, call: ast.Call, loader: str) -> None:
        """A model of sentence-transformers, which loads what it is named with a loader of transformers."""
        given = call.args[:1] or [word.value for word in call.keywords if word.arg == "model_name_or_path"]
        if given and isinstance(self._names.followed(given[0]), ast.Constant):
            self._leaf("from_pretrained.model", given[0], None)
            start, end = self._span(call.func)
            self._add(Leaf("from_pretrained", loader, self.text[start:end], start, end, *self._place(start), "scalar"))

    def _pipeline(self, call: ast.Call) -> None:
        """What a pipeline of transformers loads by itself, and how many rows it passes at a time."""
        if called(call.func) == "pipeline":
            self._keywords(call, "pipeline.")

    def _own_code(self, calls: Sequence[ast.Call]) -> None:
        """The length to which the script cuts its texts, unknown where its calls differ (a tokenizer's own limit says nothing), and
        whether it has a loss of its own or freezes parameters itself."""
        found = [limit for call in calls if (limit := cuts(call)) and not ast.unparse(limit.value).endswith(".model_max_length")]
        for limit in found[:1]:
            self._leaf("tokenizer.max_length", limit.value, limit)
        if len({scalar(self._names.followed(limit.value)) for limit in found}) > 1:
            self._open("tokenizer.max_length")
        for own in self._names.methods("compute_loss")[:1]:
            self._add(Leaf("compute_loss", "true", own.name, 0, 0, *self._place(self._offset(own.lineno, own.col_offset)), "scalar"))
        for frozen in [change.value for change in self._names.changed if change.attribute == "requires_grad"][:1]:
            self._leaf("requires_grad", frozen, None)
        for frozen in [call for call in calls if called(call.func) == "requires_grad_"][:1]:
            self._whole(frozen, "requires_grad")

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
            if name in EMBEDDERS and change.attribute == "max_seq_length" and change.sure:
                self._leaf("tokenizer.max_length", change.value, None)
            if not name or not self._kind(name, args_classes) or name.endswith(_TRAINER_SUFFIX):
                continue
            self._leaf(change.attribute, change.value, None, again=True)
            if not change.sure:
                self._open(change.attribute)
