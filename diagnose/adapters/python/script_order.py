"""Which of two calls of a script runs first, as far as that is known without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from diagnose.adapters.python.script_calls import callee_name

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
#: Functions that call each other, from the one around a call up to the top of the script.
_MAX_CHAIN = 8


class CallOrder:
    """The functions of a script and the calls of each. The body of a function runs where it is called, not where it is written."""

    def __init__(self, tree: ast.Module) -> None:
        self._scopes: dict[int, ast.AST] = {}
        self._call_sites: dict[str, list[ast.Call]] = {}
        self._callable_names: dict[int, str] = {}
        self._method_owners: dict[int, ast.ClassDef] = {}
        self.top = id(tree)
        pending: list[tuple[ast.AST, ast.AST, str]] = [(tree, tree, "")]
        while pending:
            node, scope, owner = pending.pop()
            self._scopes[id(node)] = scope
            if isinstance(node, ast.Call):
                self._call_sites.setdefault(callee_name(node.func), []).append(node)
            if isinstance(node, ast.ClassDef):
                self._method_owners.update((id(child), node) for child in node.body if isinstance(child, _FUNCTIONS))
            if isinstance(node, _FUNCTIONS):
                self._callable_names[id(node)] = owner if node.name == "__init__" else node.name  # called by the name of its class
                scope = node
            owner = node.name if isinstance(node, ast.ClassDef) else owner
            pending += [(child, scope, owner) for child in ast.iter_child_nodes(node)]

    def scope(self, node: ast.expr) -> int:
        """The id of the function that a name belongs to; `top` for the script itself."""
        return id(self._scopes.get(id(node)))

    def in_init(self, call: ast.expr, base: str) -> bool | None:
        """Whether a call stands in __init__ of a class that derives from `base`; None: in no method of such a class."""
        function = self._scopes.get(id(call))
        owner = self._method_owners.get(id(function))
        if not isinstance(function, _FUNCTIONS) or owner is None or base not in {callee_name(parent) for parent in owner.bases}:
            return None
        return function.name == "__init__"

    def runs_before(self, first: ast.expr, second: ast.expr) -> bool | None:
        """Whether the first call runs before the second; None where no common caller is known."""
        positions = {id(scope): position for scope, position in self._call_chain(second)}
        return next((position < positions[id(scope)] for scope, position in self._call_chain(first) if id(scope) in positions), None)

    def _call_chain(self, node: ast.expr) -> Iterator[tuple[ast.AST, tuple[int, int]]]:
        """The function around a call and the position in it, then its caller, and so on, while each is called in one place only."""
        for _ in range(_MAX_CHAIN):
            scope = self._scopes.get(id(node))
            if scope is None:
                return
            yield scope, (node.end_lineno or node.lineno, node.end_col_offset or 0)
            sites = self._call_sites.get(self._callable_names.get(id(scope), ""), [])
            if len(sites) != 1 or not isinstance(scope, _FUNCTIONS):
                return
            node = sites[0]
