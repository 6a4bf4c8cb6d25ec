"""A datum walks down the list of docs/architecture.md and never back up."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

from checkout import ROOT
from collected import for_each

PACKAGE = ROOT / "diagnose"


@cache
def order() -> list[str]:
    """The packages and root modules, in the order that the page gives them."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    block = re.search(r"```order\n(.*?)\n```", page, re.DOTALL)
    assert block, "docs/architecture.md lists the packages in a block called order"
    return block[1].split()


@cache
def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name below `diagnose`."""
    files = (path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if not {"_shipped", "__pycache__"} & set(path.parts))
    return {".".join(path.with_suffix("").parts): PACKAGE / path for path in files if path.name != "__main__.py"}


def package_of(module: str) -> str:
    """The package that a module lies in, or a root module itself."""
    return module.removesuffix("__init__").rstrip(".") if module.endswith("__init__") else module.rpartition(".")[0] or module


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(modules()[module].read_bytes())


@cache
def imports_of(module: str) -> frozenset[str]:
    """The modules of diagnose that a module imports anywhere in it, type-only imports included."""
    return frozenset(_imports_of(module))


def _imports_of(module: str) -> Iterator[str]:
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative imports hide the direction"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")[1:] if name.startswith("diagnose") else []
            known = [".".join(parts[:length]) for length in range(len(parts), 0, -1)]
            yield from [path for path in known if path in modules() or f"{path}.__init__" in modules()][:1]


@for_each("package", order())
def test_a_package_only_looks_back(package: str) -> None:
    """A package that needs a later one would make the story circular."""
    place = {name: number for number, name in enumerate(order())}
    own = [module for module in modules() if package_of(module) == package]
    target = {module: package_of(module) if module in modules() else module for name in own for module in imports_of(name)}
    forward = {(name, module) for name in own for module in imports_of(name) if place[target[module]] > place[package]}
    assert not forward, f"{package} looks ahead: {sorted(forward)}"


def test_every_package_is_on_the_list() -> None:
    """A package that is not on the list would escape the test above; one that is only on the list is a broken promise."""
    assert {package_of(module) for module in modules()} - {""} == set(order())


def test_no_modules_import_each_other() -> None:
    """Modules that need each other are one module, or a third one is missing."""
    graph = {module: {name for name in imports_of(module) if name in modules() and name != module} for module in modules()}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the ring


def test_no_module_hides_behind_a_name() -> None:
    """`import diagnose.x.y as y` has to give the module: no module is named like something in it, nor like a name of its package."""
    hidden = []
    for module, path in modules().items():
        names = {node.name for node in tree(module).body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
        if path.name == "__init__.py":
            hidden += [f"{package_of(module)}.{name}" for name in names if f"{package_of(module)}.{name}".lstrip(".") in modules()]
        elif path.stem in names:
            hidden.append(module)
    assert not hidden


def test_module_names_are_unique() -> None:
    """A name that occurs twice has to be looked up twice."""
    counts = Counter(path.stem for path in modules().values())
    assert [name for name, count in counts.items() if count > 1 and name != "__init__"] == []


def test_packages_are_two_levels_deep() -> None:
    """diagnose/parse/text is as deep as it goes."""
    assert [module for module in modules() if module.removesuffix(".__init__").count(".") > 2] == []


HEAVY = ("typer", "rich", "pydantic", "lark", "yaml", "click", "jinja2")


def test_importing_a_package_imports_nothing_heavy() -> None:
    """Start-up time is made of imports: what costs more than a package does is imported where it is used."""
    packages = ["diagnose", *(f"diagnose.{name}" for name in order() if not name.startswith("surfaces"))]
    code = (
        "import importlib, sys\n"
        f"for package in {packages}:\n"
        "    importlib.import_module(package)\n"
        f"    heavy = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "    if heavy: sys.exit(f'{package} imports {heavy}')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
