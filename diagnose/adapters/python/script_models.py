"""Which of the models that a script loads is the one trained, and whether the script puts it on the card itself."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from diagnose.adapters.python.script_calls import called, loads_model, moves, scalar
from diagnose.adapters.python.script_order import Order

#: Names of names that are followed from the trainer back to a load.
_LONGEST_CHAIN = 8


class Models:
    """The loads of the model that the trainer is given: one for each branch that loads it, all of them where that cannot be told."""

    def __init__(self, tree: ast.Module, calls: Sequence[ast.Call], order: Order) -> None:
        self._order = order
        self._bound: dict[tuple[int, str], list[ast.expr]] = {}
        self.loads = [call for call in calls if called(call.func) == "from_pretrained" and loads_model(call.func)]
        if not self.loads:
            return
        self._bind(tree)
        if len(self.loads) > 1:
            given = (expression for call in calls if (expression := _given(call)) is not None)
            self.loads = next((mine for expression in given if (mine := self._reached(expression))), self.loads)
        ids = {id(call) for call in self.loads}
        self._held = {name for name, values in self._bound.items() if any(id(node) in ids for value in values for node in ast.walk(value))}

    def is_moved(self, call: ast.Call) -> bool:
        """Is the model moved to the card: the load itself, or a name that holds it?"""
        if not self.loads or not moves(call) or not isinstance(call.func, ast.Attribute):
            return False
        owner = call.func.value
        if isinstance(owner, ast.Call):
            ids = {id(one) for one in self.loads}
            return any(id(node) in ids for node in ast.walk(owner))
        return isinstance(owner, (ast.Name, ast.Attribute)) and self._name(owner) in self._held

    def _bind(self, tree: ast.Module) -> None:
        """Every value that a name of a function, or an attribute (`self.model`), is given."""
        for node in ast.walk(tree):
            for target in node.targets if isinstance(node, ast.Assign) else ():
                for part in target.elts if isinstance(target, ast.Tuple) else [target]:
                    if isinstance(part, (ast.Name, ast.Attribute)) and isinstance(node, ast.Assign):
                        scope = self._order.scope(part) if isinstance(part, ast.Name) else 0
                        self._bound.setdefault((scope, ast.unparse(part)), []).append(node.value)

    def _name(self, node: ast.Name | ast.Attribute) -> tuple[int, str]:
        """A name of the function that it stands in, else one of the script's own; an attribute is the same everywhere."""
        name = ast.unparse(node)
        scopes = (self._order.scope(node), self._order.top) if isinstance(node, ast.Name) else (0,)
        return next(((scope, name) for scope in scopes if (scope, name) in self._bound), (-1, name))

    def _reached(self, given: ast.expr) -> list[ast.Call]:
        """The loads that an expression leads to, through the names in it: `get_peft_model(base, config)` leads to what base is."""
        ids = {id(call) for call in self.loads}
        seen: set[tuple[int, str]] = set()
        mine: set[int] = set()
        current = [given]
        for _ in range(_LONGEST_CHAIN):
            following: list[ast.expr] = []
            for node in (node for expression in current for node in ast.walk(expression)):
                if id(node) in ids:
                    mine.add(id(node))
                elif isinstance(node, (ast.Name, ast.Attribute)) and (name := self._name(node)) in self._bound and name not in seen:
                    seen.add(name)
                    following += self._bound[name]
            current = following
        return [call for call in self.loads if id(call) in mine]


def _given(call: ast.Call) -> ast.expr | None:
    """What a trainer, or Accelerate's prepare, is given to train."""
    name = called(call.func)
    if name == "prepare":
        owner = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        return call.args[0] if call.args and "accelerator" in owner else None
    if not name.endswith("Trainer"):
        return None
    return next((word.value for word in call.keywords if word.arg == "model"), call.args[0] if call.args else None)


def mapped(call: ast.Call) -> bool:
    """Does `device_map` put the whole model on one card? A map that spreads it is something else."""
    value = next((word.value for word in call.keywords if word.arg == "device_map"), None)
    if isinstance(value, ast.Dict):
        whole = [inner for key, inner in zip(value.keys, value.values, strict=True) if key is not None and scalar(key) == ""]
        return len(value.keys) == 1 and bool(whole) and scalar(whole[0]) not in ("cpu", "meta", "disk")
    return value is not None and (scalar(value) or "").startswith("cuda")
