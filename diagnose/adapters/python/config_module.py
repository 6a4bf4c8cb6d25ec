"""A configuration that is a module of Python (MMEngine, detectron2's lazy ones): what it assigns, by path. Nothing is run."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from diagnose.adapters.formats.config_value import Leaf
from diagnose.adapters.python.script_calls import callee_name, nodes_of, parse_script, scalar_text
from diagnose.adapters.python.script_names import ScriptNames
from diagnose.adapters.python.script_values import LeafCollector

#: Statements of a module that only names things. A script also calls something that works.
_PLAIN = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Assert, ast.Delete, ast.Pass)
_ASSIGNS = (ast.Assign, ast.AnnAssign, ast.AugAssign)
#: Methods by which such a module changes a list or a mapping that it has named.
_CHANGES = ("append", "extend", "insert", "update", "pop", "remove", "setdefault")


class ConfigModuleReader(LeafCollector):
    """Reads the assignments in their order: `train_dataloader = dict(batch_size=rows)` sets `train_dataloader.batch_size`, whose value
    stands where `rows` is given one; `rows`, which is nothing but that value, is no setting of its own. `type` of a call is the name of
    what is called."""

    def read(self) -> list[Leaf]:
        """The settings; none of a script that does more than to name values. Raises Unreadable for what is no Python or too large."""
        tree = parse_script(self.text)
        if not all(_only_names(node) for node in tree.body):
            return []
        self._names = ScriptNames(modules=ScriptNames.from_tree(tree).modules)
        bindings = self._names.bindings
        changes: list[tuple[str, ast.expr]] = []
        for path, value in _assignments(tree.body, bindings):
            if "." in path:
                changes.append((path, value))
        passed_on = set(_values(tree))
        for name, bound in bindings.items():
            if bound is not None and name not in passed_on:
                self._add_value(name, bound, None)
        for path, value in changes:
            self._add_value(path, value, None, override=True)
        return self.script.leaves

    def _add_value(self, key: str, node: ast.expr, keyword: ast.keyword | None, *, override: bool = False, option: str = "") -> None:
        """Add a value, its place being that of the literal, mapping or list which a name stands for."""
        self._spend(key)
        value = self._names.follow(node)
        if isinstance(value, ast.Call) and callee_name(value.func) != "dict" and _makes_part(value):
            start, end = self._span(value)
            self._add_leaf(Leaf(key, None, self.text[start:end], start, end, *self._place(start), "map"), override)
            self._add_name(f"{key}.type", _called(value), value.func)
            self._add_keywords(value, f"{key}.")
        elif isinstance(value, (ast.Name, ast.Attribute)) and scalar_text(value) is None:
            self._add_name(key, value, value, override)
        elif isinstance(value, ast.BinOp):  # of names: only where it is used may a number stand in its place
            super()._add_value(key, node, keyword, override=override, option=option)
        else:
            super()._add_value(key, value, keyword if value is node else None, override=override, option=option)
        if isinstance(value, (ast.List, ast.Tuple)):
            for number, part in enumerate(value.elts):
                if isinstance(self._names.follow(part), (ast.Call, ast.Dict)):
                    self._add_value(f"{key}.{number}", part, None, override=override)

    def _add_name(self, key: str, named: ast.expr, at: ast.expr, override: bool = False) -> None:
        """Add a class or a function as the text of its name; a name that the module binds to what nobody can tell says nothing."""
        start, end = self._span(at)
        is_unknown = isinstance(named, ast.Name) and named.id in self._names.bindings
        text = None if is_unknown else ast.unparse(named)
        self._add_leaf(
            Leaf(key, text, self.text[start:end], start, end, *self._place(start), "unsure" if text is None else "scalar"), override
        )


def _only_names(node: ast.stmt) -> bool:
    if isinstance(node, ast.Expr):
        value = node.value
        return isinstance(value, ast.Constant) or (isinstance(value, ast.Call) and callee_name(value.func) in _CHANGES)
    if isinstance(node, (ast.If, ast.With, ast.For)):
        return all(map(_only_names, (*node.body, *getattr(node, "orelse", ()))))
    return isinstance(node, (*_PLAIN, *_ASSIGNS))


def _assignments(body: Iterable[ast.stmt], bindings: dict[str, ast.expr | None]) -> Iterator[tuple[str, ast.expr]]:
    """Binds names to what they stand for at the end of the module (None: that depends); yields paths such as `train.amp.enabled` that it
    sets below a name."""
    for node in body:
        if isinstance(node, (ast.If, ast.For)):
            for inner in ast.walk(node):
                for target in _targets(inner) if isinstance(inner, _ASSIGNS) else ():
                    bindings[target.partition(".")[0]] = None
        elif isinstance(node, ast.With):
            yield from _assignments(node.body, bindings)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            before = bindings.get(node.target.id)
            changed = ast.BinOp(before, node.op, node.value) if before is not None else None
            bindings[node.target.id] = ast.copy_location(changed, node.value) if changed is not None else None
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            for target in _targets(node):
                if "." in target:
                    yield target, node.value
                else:
                    bindings[target] = node.value


def _values(tree: ast.Module) -> Iterator[str]:
    """Names that are the whole value of another setting."""
    for node in nodes_of(tree):
        values = (
            [word.value for word in node.keywords]
            if isinstance(node, ast.Call)
            else node.values
            if isinstance(node, ast.Dict)
            else node.elts
            if isinstance(node, (ast.List, ast.Tuple))
            else [node.value]
            if isinstance(node, ast.Assign)
            else []
        )
        yield from (value.id for value in values if isinstance(value, ast.Name))


def _targets(node: ast.AST) -> list[str]:
    """The names and paths that a statement assigns."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, (ast.AnnAssign, ast.AugAssign)) else []
    return [path for target in targets if (path := _path(target))]


def _path(target: ast.expr) -> str:
    if isinstance(target, ast.Name):
        return target.id
    inner, name = "", ""
    if isinstance(target, ast.Attribute):
        inner, name = _path(target.value), target.attr
    elif isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant) and isinstance(target.slice.value, str):
        inner, name = _path(target.value), target.slice.value
    return f"{inner}.{name}" if inner else ""


def _makes_part(call: ast.Call) -> bool:
    """Whether a call makes a part of the configuration: one of a class (`FSDPConfig(...)`), or of a lazy one (`L(build)(...)`)."""
    return isinstance(call.func, ast.Call) or callee_name(call.func)[:1].isupper()


def _called(call: ast.Call) -> ast.expr:
    return call.func.args[0] if isinstance(call.func, ast.Call) and call.func.args else call.func
