"""What surrounds a node of a script's tree: loops, training, evaluation without a graph; and whether a value keeps a graph or the card."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from diagnose.adapters.python.script_calls import callee_name, nodes_of

_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_NO_GRAPH = re.compile(r"\b(?:no_grad|inference_mode|set_grad_enabled\(False)|volatile=True")
_EVALUATES = re.compile(r"(?i)(?:^|_)(?:eval|evaluate|evaluation|valid|validate|validation|test|infer|inference|predict|demo|score)(?:_|$)")
#: Calls by which people compute a loss, by which a model is made from its weights, and calls of models.
_LOSS = re.compile(r"(?i)(?:^|[._])\w{0,40}(?:loss|losses|criterion|criteria|crit|entropy|mse|nll)(?:_?(?:fn|func|function))?$")
_BUILT = re.compile(
    r"(?:Model\w*|Net\w*|Transformer\w*|Encoder\w*|Decoder\w*|AutoencoderK\w*|For[A-Z]\w+)\.from_(?:pretrained|config|single_file)$"
)
_MODEL = re.compile(r"(?i)(?:^|[._])\w{0,40}(?:model|net|network|backbone|unet|generator|encoder|decoder)\w{0,3}(?:\.module)?$")
_MODEL_CALLS = frozenset({"forward", "inference", "infer", "encode", "decode", "extract_features"})
#: What turns a tensor into numbers, what lets go of its graph alone, and what takes it off the card.
_NUMBERS = frozenset({"item", "tolist", "float", "int", "str", "len", "format", "shape", "size", "numel", "bool", "numpy", "is_available"})
_DETACHED = frozenset({"detach", "detach_", "data"})
_OFF_CARD = frozenset({"cpu"})
#: Calls whose result holds the tensors of their arguments.
_PASSING = frozenset({"stack", "cat", "append", "list", "tuple", "mean", "sum", "softmax", "sigmoid", "cpu", "sqrt", "clone", "dict"})
_DEPTH = 6
#: Steps of work on one script, under half a second; what was found until then holds. Of 190 scripts the largest (37 kB) takes 42,000.
MOST_WORK = 100_000


class TooMuchCode(Exception):
    """A script whose patterns would take too long to find."""


class CodeContext:
    """Questions about the nodes of one tree."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.nodes = list(nodes_of(tree))
        self._left = MOST_WORK
        self._parents: dict[int, ast.AST] = {}
        self._statements: dict[int, ast.stmt | None] = {}
        self._functions: dict[int, ast.AST] = {}
        self._inside: dict[int, dict[type, list[ast.AST]]] = {}
        for node in self.nodes:  # an outer node comes before what it holds
            own = node if isinstance(node, ast.stmt) else self._statements.get(id(node))
            function = node if isinstance(node, _FUNCTIONS) else self._functions.get(id(node), tree)
            for child in ast.iter_child_nodes(node):
                self._parents[id(child)], self._functions[id(child)] = node, function
                self._statements[id(child)] = child if isinstance(child, ast.stmt) else own
        self._assigned: dict[tuple[int, str], list[tuple[int, ast.expr]]] = {}
        for node in self.nodes:
            for target, value in _assignments(node):
                self._assigned.setdefault(self._name(target), []).append((target.lineno, value))
        self._is_fragment = not any(
            isinstance(node, (*_FUNCTIONS, *_LOOPS, ast.ClassDef, ast.Import, ast.ImportFrom)) for node in self.nodes
        )
        loops = (node for node in self.nodes if isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)))
        self._given_by_loops = {name for node in loops for name in _names_given(node)}
        self._given = {name for node in self.nodes for name in _names_given(node)}
        self.trained = {self._name(loss) for node in self.nodes if isinstance(node, ast.Call) for loss in _trained_by(node)}
        self._add_summands()

    def _add_summands(self) -> None:
        """What a trained loss is the sum of is trained with it."""
        for name in list(self.trained):
            for _, value in self._assigned.get(name, ()):
                parts = (part for part in ast.walk(value) if isinstance(part, ast.Name) and _LOSS.search(part.id))
                self.trained |= {self._name(part) for part in parts if self._name(part) in self._assigned}

    def _name(self, node: ast.expr) -> tuple[int, str]:
        """A name with the function that it belongs to; an attribute belongs to all."""
        return (id(self.function(node)) if isinstance(node, ast.Name) else 0), ast.unparse(node)

    # -- places

    def outer(self, node: ast.AST, past_functions: bool = False) -> Iterator[ast.AST]:
        """The nodes around a node, innermost first, up to the function that it stands in."""
        current = self._parents.get(id(node))
        while current is not None:
            yield current
            if isinstance(current, _FUNCTIONS) and not past_functions:
                return
            current = self._parents.get(id(current))

    def spend(self, steps: int) -> None:
        """Count steps of work. Raises TooMuchCode where a script asks for more of them than any person's does."""
        self._left -= steps
        if self._left < 0:
            raise TooMuchCode

    def statement(self, node: ast.AST) -> ast.stmt | None:
        return self._statements.get(id(node))

    def function(self, node: ast.AST) -> ast.AST:
        """The function that a node stands in, else the whole script."""
        return self._functions.get(id(node), self.tree)

    def inside(self, outer: ast.AST) -> dict[type, list[ast.AST]]:
        """The nodes of a loop, a function or the script, itself among them, by their type."""
        found = self._inside.get(id(outer))
        if found is None:
            found = self._inside[id(outer)] = {}
            nodes = self.nodes if outer is self.tree else [*ast.walk(outer)]
            self.spend(len(nodes))
            for node in nodes:
                found.setdefault(type(node), []).append(node)
        return found

    def _calls(self, outer: ast.AST) -> list[ast.Call]:
        return [node for node in self.inside(outer).get(ast.Call, ()) if isinstance(node, ast.Call)]

    def loops(self, node: ast.AST) -> list[ast.AST]:
        """The loops around a node within its function; what a loop's head holds runs once."""
        found: list[ast.AST] = []
        inner: ast.AST = node
        for outer in self.outer(node):
            if isinstance(outer, _LOOPS) and not (isinstance(outer, (ast.For, ast.AsyncFor)) and inner is outer.iter):
                found.append(outer)
            inner = outer
        return found

    def is_in(self, place: str, node: ast.AST) -> bool:
        """Whether a node stands in a place of the table's words: loop, training, evaluation, no_grad, function, class."""
        return bool(getattr(self, f"_in_{place}")(node))

    def _in_loop(self, node: ast.AST) -> bool:
        return bool(self.loops(node))

    def _in_training(self, node: ast.AST) -> bool:
        """In a loop that trains, in a function that makes one training step, or in lines cut out of either."""
        places = (outer for outer in (*self.loops(node), self.function(node)) if outer is not self.tree or self._is_fragment)
        return any(self._trains(outer) for outer in places)

    def _trains(self, outer: ast.AST) -> bool:
        """Whether a backward pass runs in a node."""
        calls = self._calls(outer)
        self.spend(len(calls))
        return any(callee_name(call.func) in ("backward", "manual_backward", "scale_loss") for call in calls)

    def _in_evaluation(self, node: ast.AST) -> bool:
        """In a function named for it, or behind `model.eval()` with no `model.train()` between."""
        function = self.function(node)
        if isinstance(function, _FUNCTIONS) and _EVALUATES.search(function.name):
            return True
        line, mode = getattr(node, "lineno", 0), ""
        calls = self._calls(function)
        self.spend(len(calls))
        for call in sorted(calls, key=lambda call: call.lineno):
            if call.lineno > line:
                break
            if isinstance(call.func, ast.Attribute) and call.func.attr in ("eval", "train") and not _is_keras(call):
                mode = call.func.attr
                mode = "train" if mode == "eval" and call.args else mode
        return mode == "eval"

    def _in_no_grad(self, node: ast.AST) -> bool:
        """Under torch.no_grad or inference_mode, as a block, a decorator or a switch further up in the function."""
        for outer in self.outer(node, past_functions=True):
            if isinstance(outer, (ast.With, ast.AsyncWith)) and any(
                _NO_GRAPH.search(ast.unparse(item.context_expr)) for item in outer.items
            ):
                return True
            if isinstance(outer, _FUNCTIONS) and any(_NO_GRAPH.search(ast.unparse(item)) for item in outer.decorator_list):
                return True
        line = getattr(node, "lineno", 0)
        calls = self._calls(self.tree)
        self.spend(len(calls))
        switches = (call for call in calls if callee_name(call.func) == "set_grad_enabled" and call.lineno <= line)
        last = max(switches, key=lambda call: call.lineno, default=None)
        return last is not None and _NO_GRAPH.search(ast.unparse(last)) is not None

    def _in_handler(self, node: ast.AST) -> bool:
        """In an `except` that takes any failure of an import without raising it again."""
        handler = next((outer for outer in self.outer(node) if isinstance(outer, ast.ExceptHandler)), None)
        if handler is None or any(isinstance(part, ast.Raise) for part in ast.walk(handler)):
            return False
        return handler.type is None or re.search(r"ImportError|ModuleNotFound|Exception", ast.unparse(handler.type)) is not None

    def _in_function(self, node: ast.AST) -> bool:
        return self.function(node) is not self.tree

    # -- values

    def is_a(self, kind: str, node: ast.expr) -> bool:
        """Whether an expression is of a kind of the table's words: graph, output, trained, fresh, attribute."""
        return bool(getattr(self, f"_is_{kind}")(node))

    def _is_trained(self, node: ast.expr) -> bool:
        return self._name(node) in self.trained

    def _is_graph(self, node: ast.expr) -> bool:
        """Whether a loss with its graph is in the value."""
        return not self.is_in("no_grad", node) and any(
            self._carries_loss(part, node.lineno, 0) for part in _kept_parts(node, _NUMBERS | _DETACHED)
        )

    def _carries_loss(self, node: ast.expr, line: int, depth: int) -> bool:
        if isinstance(node, ast.Call):
            return _LOSS.search(ast.unparse(node.func)) is not None and bool(node.args)
        text = ast.unparse(node)
        if isinstance(node, ast.Attribute) and node.attr == "loss" and not _is_self(node):
            return True
        bound = self._last_value(node, line)
        if bound is None or depth > _DEPTH:
            is_loss = isinstance(node, ast.Name) and _LOSS.search(text) is not None and text not in self._given
            return isinstance(node, (ast.Name, ast.Attribute)) and (self._name(node) in self.trained or is_loss)
        if self.is_in("no_grad", bound):
            return False
        if any(self._carries_loss(part, bound.lineno, depth + 1) for part in _kept_parts(bound, _NUMBERS | _DETACHED)):
            return True
        return self._name(node) in self.trained and any(isinstance(part, ast.Call) for part in _kept_parts(bound, _NUMBERS | _DETACHED))

    def _is_output(self, node: ast.expr) -> bool:
        """Whether what a model returned is in the value, with its graph or on the card; what it computes inside of `forward` it needs."""
        function = self.function(node)
        if isinstance(function, _FUNCTIONS) and function.name in ("forward", "__call__", "call"):
            return False
        bound = [self._last_value(part, node.lineno) for part in ast.walk(node) if isinstance(part, ast.Name)]
        has_no_graph = any(self.is_in("no_grad", value) for value in (node, *bound) if value is not None)
        freed = _NUMBERS | (_OFF_CARD if has_no_graph else _DETACHED)
        return any(self._comes_from_model(part, node.lineno, freed, 0) for part in _kept_parts(node, freed))

    def _comes_from_model(self, node: ast.expr, line: int, freed: frozenset[str], depth: int) -> bool:
        if isinstance(node, ast.Call):
            name = callee_name(node.func)
            by_model = _MODEL.search(ast.unparse(node.func)) is not None and not name[:1].isupper()
            if isinstance(node.func, ast.Name) and node.func.id in self._given_by_loops:  # one model of several
                return False
            return bool(node.args or node.keywords) and (by_model or (name in _MODEL_CALLS and isinstance(node.func, ast.Attribute)))
        if not isinstance(node, (ast.Name, ast.Attribute)) or depth > _DEPTH:
            return False
        bound = self._last_value(node, line)
        return bound is not None and any(self._comes_from_model(part, bound.lineno, freed, depth + 1) for part in _kept_parts(bound, freed))

    def _is_attribute(self, node: ast.expr) -> bool:
        return _is_self(node)

    def _is_module(self, node: ast.expr) -> bool:
        """Whether a name is a model: by its name or by what it was made from."""
        if not isinstance(node, (ast.Name, ast.Attribute)):
            return False
        made = self._last_value(node, getattr(node, "lineno", 0))
        built = isinstance(made, ast.Call) and _BUILT.search(ast.unparse(made.func)) is not None
        return built or _MODEL.search(ast.unparse(node)) is not None

    def _last_value(self, node: ast.expr, line: int) -> ast.expr | None:
        """What was assigned to a name last above a line, else first below it (a loop comes round)."""
        values = self._assigned.get(self._name(node), [])
        self.spend(len(values))
        above = [value for at, value in values if at < line]
        return above[-1] if above else values[0][1] if values and values[0][0] > line else None


def _assignments(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The names that a statement binds, each with its value; those of `a, b = f(x)` with the whole."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
            values = (
                node.value.elts if isinstance(node.value, ast.Tuple) and len(node.value.elts) == len(parts) else [node.value] * len(parts)
            )
            yield from zip(parts, values, strict=True)
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        yield node.target, node.value


def _names_given(node: ast.AST) -> Iterator[str]:
    """The names that get their value elsewhere: parameters, targets of loops and of `with`, imports."""
    if isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
        yield from (part.id for part in ast.walk(node.target) if isinstance(part, ast.Name))
    elif isinstance(node, ast.alias):
        yield (node.asname or node.name).rpartition(".")[2]


def _trained_by(call: ast.Call) -> Iterator[ast.expr]:
    """The losses that a call runs backward."""
    name = callee_name(call.func)
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    if name in ("backward", "manual_backward") and call.args and not isinstance(owner, ast.Call):
        yield call.args[0]
    if name in ("backward", "scale", "scale_loss"):
        inner = owner if name == "backward" else call.args[0] if call.args else None
        if isinstance(inner, (ast.Name, ast.Attribute)):
            yield inner
        elif isinstance(inner, (ast.BinOp, ast.Call)):
            yield from (part for part in ast.walk(inner) if isinstance(part, ast.Name) and _LOSS.search(part.id))


def _kept_parts(node: ast.expr, freed: frozenset[str]) -> Iterator[ast.expr]:
    """The parts of a value whose tensors it keeps: not those behind a call or an attribute that lets go of them."""
    name = callee_name(node.func if isinstance(node, ast.Call) else node)
    if isinstance(node, (ast.Call, ast.Attribute)) and name in freed:
        return
    if isinstance(node, (ast.Call, ast.Attribute, ast.Name)):
        yield node
    for part in _inner_values(node, name):
        yield from _kept_parts(part, freed)


def _inner_values(node: ast.expr, name: str) -> list[ast.expr]:
    """The expressions whose tensors are in the value of an expression. `name`: what it calls."""
    if isinstance(node, ast.Call):
        owner = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        return [*owner, *(node.args if name in _PASSING else ())]
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, (ast.Tuple, ast.List)):
        return list(node.elts)
    if isinstance(node, ast.Dict):
        return list(node.values)
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    return [node.value] if isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)) else []


def _is_keras(call: ast.Call) -> bool:
    return callee_name(call.func) == "eval" and bool(call.args)


def _is_self(node: ast.expr) -> bool:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return isinstance(node, ast.Name) and node.id == "self"
