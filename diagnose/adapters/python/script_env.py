"""What a script writes to os.environ, and whether anybody still reads it: CUDA reads its variables once, when it starts."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from diagnose.adapters.formats.config_value import Leaf
from diagnose.adapters.python.script_calls import called, starts_cuda

#: Variables that are read when CUDA starts in a process, and never again.
_READ_ONCE = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "CUDA_VISIBLE_DEVICES")


def environment(tree: ast.Module, leaf_of: Callable[[str, ast.expr], Leaf]) -> Iterator[tuple[Leaf, bool]]:
    """Each variable with its value, in the order written, and whether it comes before CUDA starts as far as one can see.

    Only what stands in the same function (or beside it, outside of all) is known to run in the order written.
    """
    home = dict(_homes(tree))
    started: dict[int, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and starts_cuda(node):
            scope = home.get(id(node), 0)
            started[scope] = min(node.lineno, started.get(scope, node.lineno))
    found = [(name, value, node) for node in ast.walk(tree) for name, value in _written(node)]
    for name, value, node in sorted(found, key=lambda item: (item[1].lineno, item[1].col_offset)):
        first = started.get(home.get(id(node), 0))
        late = first is not None and first < value.lineno and name in _READ_ONCE
        yield leaf_of(name, value), not late


def _homes(tree: ast.Module) -> Iterator[tuple[int, int]]:
    """Every node with the function that it stands in (0: none); of functions within functions the innermost."""
    for function in ast.walk(tree):  # from the outside in
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield from ((id(node), id(function)) for node in ast.walk(function) if node is not function)


def _written(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """os.environ["X"] = ..., os.environ.setdefault("X", ...), os.environ.update(...), os.environ |= ..., os.putenv("X", ...)."""
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        target = node.targets[0]
        if called(target.value) == "environ" and isinstance(target.slice, ast.Constant) and isinstance(target.slice.value, str):
            yield target.slice.value, node.value
    elif isinstance(node, ast.AugAssign) and called(node.target) == "environ":
        yield from _pairs(node.value)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        owner, name = called(node.func.value), node.func.attr
        if (owner, name) in (("environ", "setdefault"), ("os", "putenv")) and len(node.args) == 2:
            if isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str):
                yield node.args[0].value, node.args[1]
        elif (owner, name) == ("environ", "update"):
            for argument in node.args:
                yield from _pairs(argument)
            yield from ((word.arg, word.value) for word in node.keywords if word.arg)


def _pairs(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.value, value
    elif isinstance(node, ast.Call) and called(node.func) == "dict":
        yield from ((word.arg, word.value) for word in node.keywords if word.arg)
