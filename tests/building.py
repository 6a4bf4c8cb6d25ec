"""The sources that a wheel is built of."""

from __future__ import annotations

import shutil
from pathlib import Path

from checkout import ROOT

SOURCES = ("pyproject.toml", "build_backend.py", "hatch_build.py", "README.md", "LICENSE", "diagnose", "rules", "grammars", "locks")


def copied(folder: Path) -> Path:
    """The sources that a build reads, in a folder of their own, so that the checkout stays as it is."""
    ignored = shutil.ignore_patterns("__pycache__", "_shipped")
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=ignored)
        else:
            shutil.copy(source, folder / name)
    return folder
