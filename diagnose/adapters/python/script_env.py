"""What a script writes to os.environ, and whether it comes too late: CUDA reads its variables once, when it starts."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from diagnose.adapters.formats.config_value import Leaf
from diagnose.adapters.python.script_calls import callee_name, nodes_of, starts_cuda

#: Variables that are read when CUDA starts in a process, and never again.
_CUDA_VARIABLES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "CUDA_VISIBLE_DEVICES")


def environ_writes(tree: ast.Module, leaf_of: Callable[[str, ast.expr], Leaf]) -> Iterator[tuple[Leaf, bool]]:
    """Each variable with its value, in the order written, and whether it is set before CUDA starts, as far as one can see.

    Only statements of the same function (or both outside of all) are known to run in the order written.
    """
    writes = [(name, value, node) for node in nodes_of(tree) for name, value in _assignments(node)]
    if not writes:
        return
    functions = dict(_enclosing_functions(tree))
    first_starts: dict[int, int] = {}
    for node in nodes_of(tree):
        if isinstance(node, ast.Call) and starts_cuda(node):
            scope = functions.get(id(node), 0)
            first_starts[scope] = min(node.lineno, first_starts.get(scope, node.lineno))
    for name, value, node in sorted(writes, key=lambda item: (item[1].lineno, item[1].col_offset)):
        start = first_starts.get(functions.get(id(node), 0))
        late = start is not None and start < value.lineno and name in _CUDA_VARIABLES
        yield leaf_of(name, value), not late


def _enclosing_functions(tree: ast.Module) -> Iterator[tuple[int, int]]:
    """Every node inside a function with the innermost function around it, both as ids."""
    for function in nodes_of(tree):  # breadth first, so that inner functions come last and win
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield from ((id(node), id(function)) for node in ast.walk(function) if node is not function)


def _assignments(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """os.environ["X"] = ..., os.environ.setdefault("X", ...), os.environ.update(...), os.environ |= ..., os.putenv("X", ...)."""
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        target = node.targets[0]
        if callee_name(target.value) == "environ" and isinstance(target.slice, ast.Constant) and isinstance(target.slice.value, str):
            yield target.slice.value, node.value
    elif isinstance(node, ast.AugAssign) and callee_name(node.target) == "environ":
        yield from _dict_pairs(node.value)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        owner, name = callee_name(node.func.value), node.func.attr
        if (owner, name) in (("environ", "setdefault"), ("os", "putenv")) and len(node.args) == 2:
            if isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str):
                yield node.args[0].value, node.args[1]
        elif (owner, name) == ("environ", "update"):
            for argument in node.args:
                yield from _dict_pairs(argument)
            yield from ((word.arg, word.value) for word in node.keywords if word.arg)


def _dict_pairs(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.value, value
    elif isinstance(node, ast.Call) and callee_name(node.func) == "dict":
        yield from ((word.arg, word.value) for word in node.keywords if word.arg)
