"""Configurations that build on others: the `defaults:` of Hydra's and NeMo-RL's files name what they start from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from diagnose.adapters.formats.config_value import Leaf
from diagnose.adapters.translate.translation import Part

_KEY = "defaults"
_SELF = "_self_"
#: How long a chain of files that build on each other is followed.
_DEEPEST = 16


def stem(path: str) -> str:
    """A configuration's name: its file without folder and ending."""
    file = path.strip("\"'").replace("\\", "/").rstrip("/").rpartition("/")[2]
    return file.rpartition(".")[0] if file.endswith((".yaml", ".yml")) else file


def bases(part: Part) -> Iterator[tuple[str, Leaf]]:
    """The configurations that a file builds on, as it names them: whole ones, and members of a group (`model@a.b: hf_model`)."""
    if not part.table.interpolates or part.form != "yaml":
        return
    for leaf in part.leaves:
        head, _, member = leaf.key.partition(".")
        if head != _KEY:
            continue
        if not member:
            yield from ((name, leaf) for name in (leaf.items if leaf.shape == "list" else [leaf.text or ""]) if name and name != _SELF)
        elif "." in member and leaf.shape == "scalar" and not member.partition(".")[2].startswith(("override ", "hydra/")):
            yield leaf.text or "", leaf


def layered(parts: Sequence[Part]) -> list[Part]:
    """A file that others build on after them: what they say wins (unless they put themselves first)."""
    named = [(at, {stem(name) for name, _ in bases(part)}) for at, part in enumerate(parts)]
    named = [(at, names) for at, names in named if names]
    if not named:
        return list(parts)
    depth = dict.fromkeys(range(len(parts)), 0)
    for _ in range(_DEEPEST):
        for at, names in named:
            for base, part in enumerate(parts):
                if base != at and part.form == "yaml" and part.table is parts[at].table and stem(part.name) in names:
                    first = _comes_first(parts[at])
                    depth[base] = max(depth[base], depth[at] + 1) if not first else depth[base]
                    depth[at] = max(depth[at], depth[base] + 1) if first else depth[at]
    places = [at for at, part in enumerate(parts) if part.form == "yaml" and part.table is parts[named[0][0]].table]
    ordered = iter(sorted(places, key=lambda at: min(depth[at], _DEEPEST)))
    return [parts[next(ordered)] if at in places else part for at, part in enumerate(parts)]


def _comes_first(part: Part) -> bool:
    """Does the file put itself before what it builds on, which then wins?"""
    leaf = next((leaf for leaf in part.leaves if leaf.key == _KEY and leaf.shape == "list"), None)
    return leaf is not None and len(leaf.items) > 1 and leaf.items[0] == _SELF
