"""Which of two calls of a script runs first, as far as that can be told without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from diagnose.adapters.python.script_calls import called

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
#: Functions that call each other, from the one that holds a call up to the one that starts the script.
_DEEPEST = 8


class Order:
    """The functions of a script, and where each is called from. A function runs where it is called, not where it is written."""

    def __init__(self, tree: ast.Module) -> None:
        self._scopes: dict[int, ast.AST] = {}
        self._sites: dict[str, list[ast.Call]] = {}
        self._names: dict[int, str] = {}
        self._owners: dict[int, ast.ClassDef] = {}  # of methods
        self.top = id(tree)
        pending: list[tuple[ast.AST, ast.AST, str]] = [(tree, tree, "")]
        while pending:
            node, scope, owner = pending.pop()
            self._scopes[id(node)] = scope
            if isinstance(node, ast.Call):
                self._sites.setdefault(called(node.func), []).append(node)
            if isinstance(node, ast.ClassDef):
                self._owners.update((id(child), node) for child in node.body if isinstance(child, _FUNCTIONS))
            if isinstance(node, _FUNCTIONS):
                self._names[id(node)] = owner if node.name == "__init__" else node.name  # an object is made by its class's name
                scope = node
            owner = node.name if isinstance(node, ast.ClassDef) else owner
            pending += [(child, scope, owner) for child in ast.iter_child_nodes(node)]

    def scope(self, node: ast.expr) -> int:
        """The function that a name belongs to, as a number; the script's own is `top`."""
        return id(self._scopes.get(id(node)))

    def in_init(self, call: ast.expr, base: str) -> bool | None:
        """Does the call stand in __init__ of a class that derives from `base`? None: in no method of such a class."""
        function = self._scopes.get(id(call))
        owner = self._owners.get(id(function))
        if not isinstance(function, _FUNCTIONS) or owner is None or base not in {called(each) for each in owner.bases}:
            return None
        return function.name == "__init__"

    def before(self, first: ast.expr, second: ast.expr) -> bool | None:
        """Does the first run before the second? None where no function that both are called from can be told."""
        theirs = {id(scope): at for scope, at in self._chain(second)}
        return next((at < theirs[id(scope)] for scope, at in self._chain(first) if id(scope) in theirs), None)

    def _chain(self, node: ast.expr) -> Iterator[tuple[ast.AST, tuple[int, int]]]:
        """The function that holds the call and where in it, then the one that calls that function, while it is called in one place only."""
        for _ in range(_DEEPEST):
            scope = self._scopes.get(id(node))
            if scope is None:
                return
            yield scope, (node.end_lineno or node.lineno, node.end_col_offset or 0)
            sites = self._sites.get(self._names.get(id(scope), ""), [])
            if len(sites) != 1 or not isinstance(scope, _FUNCTIONS):
                return
            node = sites[0]
