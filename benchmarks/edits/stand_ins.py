"""Modules that are not installed, so that a framework's own parser can be imported without all that its training needs.

`install` lets every import of a missing module in the given folders succeed: its attributes are classes that take any argument and
return what they decorate. What is installed stays itself.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

#: The release that a module which is not there claims to be.
VERSION = "0"

_ProtocolMeta: Any = type(Protocol)  # so that a class may extend both a stand-in and a protocol


class _StandInMeta(_ProtocolMeta, type):  # type: ignore[misc]
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = _made(name)
        setattr(cls, name, made)
        return made

    def __call__(cls, *args: Any, **words: Any) -> Any:
        if len(args) == 1 and not words and callable(args[0]):
            return args[0]  # a decorator
        return super().__call__()

    def __iter__(cls) -> Iterator[Any]:
        return iter(())

    def __or__(cls, other: Any) -> Any:
        return Any

    __ror__ = __or__

    def __bool__(cls) -> bool:
        return False

    def __fspath__(cls) -> str:
        return "stand-in"

    def __add__(cls, other: Any) -> Any:
        return other

    __radd__ = __add__


class StandIn(metaclass=_StandInMeta):
    """A class, and an object of it, of which nothing is known."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __class_getitem__(cls, _: Any) -> Any:
        return cls

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _made(name)

    def __call__(self, *args: Any, **words: Any) -> Any:
        return args[0] if len(args) == 1 and not words and callable(args[0]) else StandIn()

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __bool__(self) -> bool:
        return False

    def __fspath__(self) -> str:
        return "stand-in"

    def __add__(self, other: Any) -> Any:
        return other

    __radd__ = __add__

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.any_schema()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def _made(name: str) -> Any:
    return _StandInMeta(name, (StandIn,), {})


class _Module(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        is_module = any(Path(folder, end).exists() for folder in vars(self).get("__path__", ()) for end in (f"{name}.py", name))
        if is_module or name in ("__path__", "__file__", "__all__", "__wrapped__"):
            raise AttributeError(name)
        made = VERSION if name == "__version__" else _made(name)
        setattr(self, name, made)
        return made


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Only for imports in the given folders: what is installed asks for optional packages and believes what it finds; and only for
    imports, as code that looks for a package without importing it asks whether it is there."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = tuple(map(str, folders))

    def find_spec(self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None) -> Any:
        top = name.partition(".")[0]
        holder = sys.modules.get(top)
        is_real = top in sys.stdlib_module_names or (holder is not None and not isinstance(holder, _Module))
        if is_real or top.startswith("_") or not self._asks():
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def _asks(self) -> bool:
        frame = sys._getframe(2)  # noqa: SLF001 - who imports decides
        while frame.f_back is not None and frame.f_code.co_filename.startswith("<frozen importlib"):
            if frame.f_code.co_name == "find_spec" and "util" in frame.f_code.co_filename:
                return False
            frame = frame.f_back
        if frame.f_code.co_filename.endswith("importlib/__init__.py"):
            frame = frame.f_back or frame
        return frame.f_code.co_filename.startswith(self.folders)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        module.__path__ = []


def install(folders: Sequence[Path]) -> None:
    sys.meta_path.append(_Finder(folders))


def shallow(names: Sequence[str], roots: Sequence[Path]) -> None:
    """Packages of which only modules are wanted: what their `__init__` imports is left out, and stood in for where it is asked."""
    for name in names:
        module = _Module(name)
        module.__path__ = [str(path) for root in roots for path in [root.joinpath(*name.split("."))] if path.is_dir()]
        if module.__path__:
            sys.modules[name] = module
