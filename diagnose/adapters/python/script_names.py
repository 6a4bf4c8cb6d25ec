"""What the names of a script stand for: literals, fields of dataclasses, arguments of its own with their defaults. Nothing is run."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from diagnose.adapters.python.script_calls import called, scalar
from diagnose.record import field, record

#: Parsers that fill dataclasses from a command line or a file.
PARSERS = frozenset({"HfArgumentParser", "TrlParser", "H4ArgumentParser"})
_PARSE = frozenset({"parse_args_into_dataclasses", "parse_args_and_config", "parse_json_file", "parse_yaml_file", "parse_dict", "parse"})
#: Libraries that make a function's parameters the options of a command.
_COMMANDS = frozenset({"Fire", "run"})
_LONGEST_CHAIN = 8


@record(frozen=False)
class Found:
    """What an expression stands for. `option`: the script's own argument that it comes from; the value is then its default."""

    node: ast.expr
    option: str = ""


@record(frozen=False)
class Changed:
    """`name.attribute = value`, and whether it stands in a branch or a loop."""

    name: str
    attribute: str
    value: ast.expr
    sure: bool


@record(frozen=False)
class Names:
    """Read once from a whole tree; a name that is bound in more than one place stands for nothing."""

    bound: dict[str, ast.expr | None] = field(default_factory=dict)
    modules: dict[str, str] = field(default_factory=dict)
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    options: dict[str, ast.expr | None] = field(default_factory=dict)  # of argparse: its defaults (None: it must be given)
    parameters: dict[str, ast.expr] = field(default_factory=dict)  # of the function that the command line calls
    parsed: dict[str, str] = field(default_factory=dict)  # names that a parser fills: the class of each
    assigned: set[str] = field(default_factory=set)
    changed: list[Changed] = field(default_factory=list)
    reset: set[tuple[str, str]] = field(default_factory=set)
    refilled: set[str] = field(default_factory=set)  # mappings that get more keys later
    tests: dict[int, ast.expr] = field(default_factory=dict)  # of calls that are made only under a condition: the innermost

    @classmethod
    def of(cls, tree: ast.Module) -> Names:
        names = cls()
        branches = {id(inner) for node in ast.walk(tree) if isinstance(node, _BRANCHES) for inner in ast.walk(node)}
        for node in ast.walk(tree):
            names._learn(node, id(node) in branches)
        for node in ast.walk(tree):
            if isinstance(node, ast.If):
                inner = (each for part in node.body for each in ast.walk(part) if isinstance(each, ast.Call))
                names.tests.update((id(each), node.test) for each in inner)
            if isinstance(node, ast.Call) and called(node.func) in _COMMANDS and _is_command(node, names):
                names._command(tree, {called(arg) for arg in node.args})
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign):
                names._parse(node)
        return names

    # -- learning

    def _learn(self, node: ast.AST, branch: bool) -> None:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for name in node.names:
                self.modules[name.asname or name.name] = name.name if isinstance(node, ast.Import) else node.module or ""
        elif isinstance(node, ast.ClassDef):
            self.classes[node.name] = node
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                self._assigned(target, node.value, branch)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self._assigned(node.target, node.value, branch)
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension, ast.AugAssign, ast.NamedExpr)):
            self._unknown(node.target)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            self._unknown(node.optional_vars)
        elif isinstance(node, ast.arg):
            self.bound[node.arg] = None
        elif isinstance(node, ast.Call):
            self._called(node)

    def _assigned(self, target: ast.expr, value: ast.expr, branch: bool) -> None:
        if isinstance(target, ast.Name):
            self.assigned.add(target.id)
            self.bound[target.id] = None if target.id in self.bound else value  # bound twice: nobody knows which
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            self.changed.append(Changed(target.value.id, target.attr, value, not branch))
            self.reset.add((target.value.id, target.attr))
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            self.refilled.add(target.value.id)
        else:
            self._unknown(target)

    def _unknown(self, target: ast.expr) -> None:
        for node in ast.walk(target):
            if isinstance(node, ast.Name):
                self.bound[node.id] = None

    def _called(self, call: ast.Call) -> None:
        name = called(call.func)
        if name == "add_argument":
            self._option(call)
        elif name in ("update", "pop", "setdefault") and isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
            self.refilled.add(call.func.value.id)

    def _option(self, call: ast.Call) -> None:
        """An argument that the script declares itself."""
        words = {word.arg: word.value for word in call.keywords}
        flags = [text for text in map(scalar, call.args) if text]
        given = scalar(words["dest"]) if "dest" in words else None
        name = given or next((flag for flag in flags if flag.startswith("--")), flags[0] if flags else "")
        action = scalar(words["action"]) if "action" in words else None
        default = words.get("default")
        if default is None:  # a switch, or nothing
            default = ast.Constant(action == "store_false" if action in ("store_true", "store_false") else None)
            ast.copy_location(default, call)
        name = name.lstrip("-").replace("-", "_")
        asked = "required" in words or not any(flag.startswith("-") for flag in flags)
        self.options[name] = None if name in self.options or asked else default

    def _command(self, tree: ast.Module, wanted: set[str]) -> None:
        """Parameters of a function that is called as a command, with their defaults: its options."""
        for node in tree.body:
            if not isinstance(node, ast.FunctionDef) or node.name not in wanted:
                continue
            plain = node.args.posonlyargs + node.args.args
            pairs = [*zip(plain[len(plain) - len(node.args.defaults) :], node.args.defaults, strict=True)]
            pairs += [(arg, value) for arg, value in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if value is not None]
            for arg, value in pairs:
                if arg.arg not in self.assigned:
                    self.parameters[arg.arg] = value

    def _parse(self, node: ast.Assign) -> None:
        """`model_args, training_args = parser.parse_args_into_dataclasses()`: which name is which class."""
        value: ast.expr = node.value
        first: object = None
        if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant):
            first = value.slice.value
            value = value.value
        if not isinstance(value, ast.Call) or called(value.func) not in _PARSE or not isinstance(value.func, ast.Attribute):
            return
        kinds = self.filled(value.func.value)
        targets = node.targets[0].elts if isinstance(node.targets[0], (ast.Tuple, ast.List)) else [node.targets[0]]
        if isinstance(first, int):
            kinds = kinds[first : first + 1]
        for target, kind in zip(targets, kinds, strict=False):
            if isinstance(target, ast.Name):
                self.parsed[target.id] = kind

    def filled(self, parser: ast.expr) -> list[str]:
        """The classes that a parser fills, in its order."""
        parser = self.followed(parser)
        if not isinstance(parser, ast.Call) or called(parser.func) not in PARSERS:
            return []
        given = next((word.value for word in parser.keywords if word.arg == "dataclass_types"), parser.args[0] if parser.args else None)
        given = self.followed(given) if given is not None else None
        parts = given.elts if isinstance(given, (ast.Tuple, ast.List)) else [given] if given is not None else []
        return [called(part) for part in parts]

    # -- asking

    def switch(self, call: ast.Call) -> Found | None:
        """The switch that a call hangs on, with its default; None where it is made whatever happens, or under another condition."""
        test = self.tests.get(id(call))
        found = self.found(test) if isinstance(test, (ast.Name, ast.Attribute)) else None
        return found if found is not None and isinstance(found.node, ast.Constant) and isinstance(found.node.value, bool) else None

    def followed(self, node: ast.expr) -> ast.expr:
        """The expression that a name stands for."""
        return self.found(node).node

    def found(self, node: ast.expr) -> Found:
        """The expression, and the option whose default it is."""
        option = ""
        for _ in range(_LONGEST_CHAIN):
            step = self._step(node)
            if step is None:
                break
            option = step.option or option
            if step.node is node:
                break
            node = step.node
        return Found(node, option)

    def _step(self, node: ast.expr) -> Found | None:
        if isinstance(node, ast.Name):
            if node.id in self.parameters:
                return Found(self.parameters[node.id], node.id)
            bound = self.bound.get(node.id)
            return Found(bound) if bound is not None else None
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return self._field(node, node.value.id, node.attr)
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and isinstance(node.slice, ast.Constant):
            held, wanted = self.bound.get(node.value.id), node.slice.value
            if isinstance(held, ast.Dict) and node.value.id not in self.refilled:
                pairs = zip(held.keys, held.values, strict=True)
                return next((Found(value) for key, value in pairs if isinstance(key, ast.Constant) and key.value == wanted), None)
        return None

    def _field(self, node: ast.expr, name: str, attribute: str) -> Found | None:
        """`args.x`: an option of argparse, a field of a dataclass, an attribute of a class; itself where it has no default."""
        if (name, attribute) in self.reset:
            return None
        if name in self.parsed:
            default = self.default_of(self.parsed[name], attribute)
            return Found(default if default is not None else node, attribute)
        if name in self.classes:
            default = self.default_of(name, attribute)
            return Found(default) if default is not None else None
        bound = self.bound.get(name)
        if not isinstance(bound, ast.Call):
            return None
        if called(bound.func) in ("parse_args", "parse_known_args"):
            default = self.options.get(attribute)
            return Found(default if default is not None else node, attribute)
        given = next((word.value for word in bound.keywords if word.arg == attribute), None)
        default = given if given is not None else self.default_of(called(bound.func), attribute)
        return Found(default) if default is not None and called(bound.func) in self.classes else None

    def default_of(self, kind: str, attribute: str) -> ast.expr | None:
        """The default of a class's field, its own or inherited within the script."""
        return next((value for name, value in self.fields(kind) if name == attribute), None)

    def fields(self, kind: str, depth: int = 0) -> Iterator[tuple[str, ast.expr]]:
        """Fields of a class of the script with their defaults, its own first."""
        made = self.classes.get(kind)
        if made is None or depth > _LONGEST_CHAIN:
            return
        for node in made.body:
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0] if isinstance(node, ast.Assign) else None
            value = node.value if isinstance(node, (ast.AnnAssign, ast.Assign)) else None
            if isinstance(target, ast.Name) and value is not None and (plain := _default(value)) is not None:
                yield target.id, plain
        for base in made.bases:
            yield from self.fields(called(base), depth + 1)

    def methods(self, name: str) -> list[ast.FunctionDef]:
        """Methods of this name that the script's own classes have."""
        return [node for made in self.classes.values() for node in made.body if isinstance(node, ast.FunctionDef) and node.name == name]

    def bases(self, kind: str, depth: int = 0) -> Iterator[str]:
        """A class and what it derives from, as far as the script says; `transformers.TrainingArguments` by its last name."""
        yield kind
        made = self.classes.get(kind)
        for base in made.bases if made is not None and depth < _LONGEST_CHAIN else ():
            if called(base) != kind:
                yield from self.bases(called(base), depth + 1)


_BRANCHES = (ast.If, ast.For, ast.While, ast.Try, ast.Match)


def _default(value: ast.expr) -> ast.expr | None:
    """`field(default=4, metadata=...)` is 4; a factory is unknown."""
    if not isinstance(value, ast.Call) or called(value.func) not in ("field", "Field"):
        return value
    return next((word.value for word in value.keywords if word.arg == "default"), None)


def _is_command(call: ast.Call, names: Names) -> bool:
    """fire.Fire(main), typer.run(main)."""
    owner = call.func.value.id if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) else called(call.func)
    return names.modules.get(owner, owner).partition(".")[0] in ("fire", "typer")
