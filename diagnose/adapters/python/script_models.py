"""Which of the models that a script loads is the one trained, and whether the script moves it to the card itself."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from diagnose.adapters.python.script_calls import callee_name, loads_model, moves_to_card, nodes_of, scalar_text
from diagnose.adapters.python.script_order import CallOrder

#: Methods that make a model: of the weights under a name, or of a shape alone.
LOADERS = ("from_pretrained", "from_config")
#: Assignments that are followed from the trainer back to a load.
_MAX_CHAIN = 8


class ModelLoads:
    """The calls that load the trained model: one in each branch that loads it; all loads where it is unknown which is trained."""

    def __init__(self, tree: ast.Module, calls: Sequence[ast.Call], order: CallOrder) -> None:
        self._order = order
        self._bindings: dict[tuple[int, str], list[ast.expr]] = {}
        self.loads = [call for call in calls if callee_name(call.func) in LOADERS and loads_model(call.func)]
        if not self.loads:
            return
        self._collect_bindings(tree)
        if len(self.loads) > 1:
            expressions = (expression for call in calls if (expression := _trained_expression(call)) is not None)
            self.loads = next((loads for expression in expressions if (loads := self._loads_behind(expression))), self.loads)
        ids = {id(call) for call in self.loads}
        self._model_names = {
            name for name, values in self._bindings.items() if any(id(node) in ids for value in values for node in ast.walk(value))
        }

    def is_moved(self, call: ast.Call) -> bool:
        """Whether a call moves the model to the card: the load itself, or a name bound to it."""
        if not self.loads or not moves_to_card(call) or not isinstance(call.func, ast.Attribute):
            return False
        owner = call.func.value
        if isinstance(owner, ast.Call):
            ids = {id(load) for load in self.loads}
            return any(id(node) in ids for node in ast.walk(owner))
        return isinstance(owner, (ast.Name, ast.Attribute)) and self._scoped_name(owner) in self._model_names

    def _collect_bindings(self, tree: ast.Module) -> None:
        """Every value that is assigned to a name of a function or to an attribute (`self.model`)."""
        for node in nodes_of(tree):
            for target in node.targets if isinstance(node, ast.Assign) else ():
                for part in target.elts if isinstance(target, ast.Tuple) else [target]:
                    if isinstance(part, (ast.Name, ast.Attribute)) and isinstance(node, ast.Assign):
                        scope = self._order.scope(part) if isinstance(part, ast.Name) else 0
                        self._bindings.setdefault((scope, ast.unparse(part)), []).append(node.value)

    def _scoped_name(self, node: ast.Name | ast.Attribute) -> tuple[int, str]:
        """A name with its function's scope, else with that of the script; attributes have one scope for all."""
        name = ast.unparse(node)
        scopes = (self._order.scope(node), self._order.top) if isinstance(node, ast.Name) else (0,)
        return next(((scope, name) for scope in scopes if (scope, name) in self._bindings), (-1, name))

    def _loads_behind(self, expression: ast.expr) -> list[ast.Call]:
        """The loads that an expression leads to through its names: `get_peft_model(base, config)` leads to the load of base."""
        ids = {id(call) for call in self.loads}
        visited: set[tuple[int, str]] = set()
        reached: set[int] = set()
        current = [expression]
        for _ in range(_MAX_CHAIN):
            following: list[ast.expr] = []
            for node in (node for part in current for node in ast.walk(part)):
                if id(node) in ids:
                    reached.add(id(node))
                elif isinstance(node, (ast.Name, ast.Attribute)):
                    name = self._scoped_name(node)
                    if name in self._bindings and name not in visited:
                        visited.add(name)
                        following += self._bindings[name]
            current = following
        return [call for call in self.loads if id(call) in reached]


def _trained_expression(call: ast.Call) -> ast.expr | None:
    """What a trainer, or Accelerate's prepare, is given to train."""
    name = callee_name(call.func)
    if name == "prepare":
        owner = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        return call.args[0] if call.args and "accelerator" in owner else None
    if not name.endswith("Trainer"):
        return None
    return next((word.value for word in call.keywords if word.arg == "model"), call.args[0] if call.args else None)


def maps_to_one_card(call: ast.Call) -> bool:
    """Whether `device_map` puts the whole model on one card. A map that spreads it does not."""
    value = next((word.value for word in call.keywords if word.arg == "device_map"), None)
    if isinstance(value, ast.Dict):
        whole = [device for key, device in zip(value.keys, value.values, strict=True) if key is not None and scalar_text(key) == ""]
        return len(value.keys) == 1 and bool(whole) and scalar_text(whole[0]) not in ("cpu", "meta", "disk")
    return value is not None and (scalar_text(value) or "").startswith("cuda")
