"""Checks the traits of frameworks: each exists and has a value of its type."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path

from diagnose import rule_files
from diagnose.phrases import phrase
from diagnose.traits import Traits, misread
from diagnose.vet.fault import Fault


def check(folder: Path) -> Iterator[Fault]:
    """Every fault in the traits of a folder's frameworks/*.yaml."""
    for file in sorted((folder / "frameworks").glob("*.yaml")):
        for path, kind in misread(rule_files.read_yaml(file).get("traits", {})):
            trait = ".".join(path) or "traits"
            near = difflib.get_close_matches(path[-1], Traits.__annotations__, 1) if kind == "unknown" else []
            key = "unknown_trait_near" if near else f"{kind}_trait" if kind in ("unknown", "missing") else "trait_kind"
            yield Fault(str(file), _line(file, ("traits", *path)), phrase(f"vet.{key}", trait=trait, near="".join(near), kind=kind))


def _line(file: Path, path: tuple[str, ...]) -> int:
    """The line of a key, or of the nearest enclosing one."""
    import yaml

    node, line = yaml.compose(file.read_bytes(), yaml.SafeLoader), 0
    for name in path:
        pairs = node.value if isinstance(node, yaml.MappingNode) else ()
        key, node = next((pair for pair in pairs if pair[0].value == name), (None, None))
        if key is None:
            break
        line = key.start_mark.line + 1
    return line
