"""Locate and load rules/ and grammars/, of a checkout or a wheel, with compiled forms cached on disk."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diagnose import disk_cache

if TYPE_CHECKING:
    from diagnose.lalr import Parser

HERE = Path(__file__).resolve().parent

#: Files whose values are read as text and converted by the declared kind of each fact: YAML 1.1 would convert `on`, `no` and `1e-5`.
AS_TEXT = ("causes", "remedies", "versions")


@cache
def home() -> Path:
    """The folder that holds rules/ and grammars/: in the wheel, else the checkout."""
    shipped = HERE / "_shipped"
    return shipped if shipped.is_dir() else HERE.parent


@cache
def table(name: str) -> Any:
    """The YAML file rules/NAME.yaml (NAME may be FOLDER/STEM), or all files of the folder rules/NAME as a dict by stem.

    A file of several documents (`---`) is a list of them. Values are those of JSON: keys are texts.
    """
    return kept(f"rules.{name.replace('/', '.')}", lambda: _read_table(name), name)


def read_yaml(path: Path, *, as_text: bool = False) -> Any:
    """Read a YAML file: its document, or a list of documents if `---` separates several."""
    import yaml

    documents = list(yaml.load_all(path.read_bytes(), yaml_loader(as_text=as_text)))
    return documents[0] if len(documents) == 1 else documents


def yaml_loader(*, as_text: bool = False) -> Any:
    """PyYAML's loader of texts or of safe values: the compiled one, or the slower one in Python where there is no other (a browser)."""
    import yaml

    name = "BaseLoader" if as_text else "SafeLoader"
    return getattr(yaml, f"C{name}", getattr(yaml, name))


def grammar(name: str) -> str:
    """The text of grammars/NAME.lark."""
    return _grammar(name).read_text(encoding="utf-8")


def _grammar(name: str) -> Path:
    return home() / "grammars" / f"{name}.lark"


@cache
def parser(name: str) -> Parser:
    """The parser of grammars/NAME.lark."""
    from diagnose import lalr  # configs and options are read without a grammar

    return lalr.Parser(_kept(f"grammar.{name}", lambda: lalr.compiled(grammar(name)), [str(_grammar(name))]))


def kept(name: str, build: Callable[[], object], *folders: str) -> Any:
    """The JSON value that `make` builds from these folders or files of rules/, cached on disk while they are unchanged."""
    return _kept(name, build, [file for folder in folders for file in _files(folder)])


def kept_bytes(name: str, build: Callable[[], bytes], *folders: str) -> bytes:
    """The bytes that `build` makes from these folders or files of rules/, cached on disk for this Python and in no wheel."""
    return disk_cache.recall(name, build, [_mark(file) for folder in folders for file in _files(folder)], home() / "nowhere")


def _kept(name: str, build_value: Callable[[], object], files: list[str]) -> Any:
    def build_json() -> bytes:
        return json.dumps(build_value(), ensure_ascii=False, separators=(",", ":")).encode()

    return json.loads(disk_cache.recall(f"{name}.json", build_json, map(_mark, files), home() / "compiled"))


#: Several tables and indexes are made of the same files: a process looks at each once.
_mark = cache(disk_cache.mark)


def _read_table(name: str) -> object:
    path = home() / "rules" / f"{name}.yaml"
    if path.is_file():
        return read_yaml(path, as_text=name in AS_TEXT)
    return {file.stem: read_yaml(file, as_text=name in AS_TEXT) for file in map(Path, _files(name))}


@cache
def _files(folder: str) -> list[str]:
    """The YAML files of a folder of rules/, sorted, or that of a table. (Texts, since each start examines them all and creating Paths takes
    as long.)"""
    path = f"{home()}/rules/{folder}"
    if not os.path.isdir(path):  # noqa: PTH112
        return [f"{path}.yaml"]
    return [f"{path}/{name}" for name in sorted(os.listdir(path)) if name.endswith(".yaml")]  # noqa: PTH208
