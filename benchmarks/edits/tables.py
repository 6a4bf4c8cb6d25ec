"""Compare the keys of rules/frameworks with what the published packages declare, per release and entry point.

    python benchmarks/edits/tables.py [FRAMEWORK...]

For every key that an edit may add at a release and entry point: is it declared there, and are the words that we would write among its
choices? Prints what is not.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from edits.declared import Declared, declared
from edits.packages import entries_at, is_recorded, listed, tree

from diagnose.adapters.schema import framework_tables
from diagnose.release_spans import ReleaseSpan
from diagnose.units import Version


def all_declared(name: str) -> Iterator[tuple[str, str, Declared, dict[str, Version]]]:
    """(release, entry point, what it declares, releases of all packages) of a framework."""
    spec = listed()[name]
    package = spec.get("package", name)
    for number, release in enumerate(map(str, spec["releases"])):
        root = tree(package, release)
        others = {other: str(releases[number]) for other, releases in spec.get("beside", {}).items()}
        versions = {f"version.{other}": Version(text) for other, text in {**others, name: release}.items()}
        if root.is_dir() and is_recorded(name, release):
            for entry in entries_at(name, release):
                yield release, entry, declared(spec["entries"][entry], root, [tree(*pair) for pair in others.items()]), versions


def complaints(name: str) -> Iterator[str]:
    table = framework_tables.table(name)
    for release, entry, said, versions in all_declared(name):
        if not said.options:
            yield f"{name} {release} {entry}: nothing is declared"
            continue
        for key in table.keys:
            version = versions.get(key.version, Version(release) if key.version == table.version else None)
            if not key.addable or key.code or key.cli or version is None:
                continue
            if key.releases.covers(ReleaseSpan(version, version)) is False or not key.reads(entry):
                continue
            option = said.find(key.key)
            if option is None:
                yield f"{name} {release} {entry}: {key.key} ({key.knob}) is not declared"
            elif option.choices and key.values:
                odd = {
                    word
                    for word in key.values
                    if word not in option.choices and "*" not in word and key.values[word] not in ("nothing", "unknown")
                }
                if odd - {"true", "false"}:
                    yield f"{name} {release} {entry}: {key.key} takes {'|'.join(option.choices)}, not {'|'.join(sorted(odd))}"


if __name__ == "__main__":
    for framework in sys.argv[1:] or listed():
        for line in complaints(framework):
            print(line)
