"""Finds rules/ and grammars/, in a checkout or in a wheel, and keeps what was made of them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diagnose import disk_cache

if TYPE_CHECKING:
    from diagnose.lalr import Parser

HERE = Path(__file__).resolve().parent

#: Rule files are read as text throughout and converted by the declared kind of each fact: YAML 1.1 turns on, no and 1e-5 into other things.
AS_TEXT = ("causes", "remedies", "versions")


@cache
def home() -> Path:
    """The folder that holds rules/ and grammars/: what the wheel shipped, else the checkout."""
    shipped = HERE / "_shipped"
    return shipped if shipped.is_dir() else HERE.parent


@cache
def table(name: str) -> Any:
    """The YAML file rules/NAME.yaml (NAME may be FOLDER/STEM), or every file of the folder rules/NAME as a dict by stem.

    A file of several documents (`---`) is a list of them. What comes back is plain JSON: keys are texts.
    """
    return kept(f"rules.{name.replace('/', '.')}", lambda: _read_table(name), name)


def read_yaml(path: Path, *, as_text: bool = False) -> Any:
    """One of our own YAML files: its document, or a list of them where `---` parts several."""
    import yaml

    loader = getattr(yaml, "CBaseLoader" if as_text else "CSafeLoader", yaml.BaseLoader if as_text else yaml.SafeLoader)
    documents = list(yaml.load_all(path.read_bytes(), loader))
    return documents[0] if len(documents) == 1 else documents


def grammar(name: str) -> str:
    """The text of grammars/NAME.lark."""
    return _grammar(name).read_text(encoding="utf-8")


def _grammar(name: str) -> Path:
    return home() / "grammars" / f"{name}.lark"


@cache
def parser(name: str) -> Parser:
    """The parser of grammars/NAME.lark."""
    from diagnose import lalr

    return lalr.Parser(_kept(f"grammar.{name}", lambda: lalr.compiled(grammar(name)), [str(_grammar(name))]))


def kept(name: str, make: Callable[[], Any], *rooms: str) -> Any:
    """The JSON value that `make` builds from these rooms of rules/, built once and kept while their files stay the same."""
    return _kept(name, make, _files(rooms))


def _kept(name: str, make: Callable[[], Any], files: list[str]) -> Any:
    def build() -> bytes:
        return json.dumps(make(), ensure_ascii=False, separators=(",", ":")).encode()

    return json.loads(disk_cache.recall(f"{name}.json", build, files, home() / "compiled"))


def _read_table(name: str) -> Any:
    path = home() / "rules" / f"{name}.yaml"
    if path.is_file():
        return read_yaml(path, as_text=name in AS_TEXT)
    return {file.stem: read_yaml(file, as_text=name in AS_TEXT) for file in map(Path, _files([name]))}


def _files(rooms: Iterable[str]) -> list[str]:
    """The YAML files of rooms of rules/, in order. (As texts: every start looks at them all, and to make a Path takes as long.)"""
    found: list[str] = []
    for room in rooms:
        place = f"{home()}/rules/{room}"
        if os.path.isdir(place):  # noqa: PTH112
            found += [f"{place}/{name}" for name in sorted(os.listdir(place)) if name.endswith(".yaml")]  # noqa: PTH208
        else:
            found.append(f"{place}.yaml")
    return found
