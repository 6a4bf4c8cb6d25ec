"""Regular expressions kept compiled: compiling those of prose takes twice as long as all else that is done with a page.

What is kept is the code that `re` makes of a pattern, for the Python that made it, in the user's own cache; `_sre` checks it when it is
loaded. Both calls are private to Python: where one of them is gone or answers otherwise, patterns are compiled as ever.
"""

from __future__ import annotations

import json
import re
import sys
from array import array
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

from diagnose import rule_files


class KeptPatterns:
    """Compiled patterns by the text that stands for each. `texts`: all that are worth keeping; `expand`: the regular expression of one;
    `folders`: the files of rules/ that they are made from."""

    def __init__(self, name: str, texts: Callable[[], Iterable[str]], expand: Callable[[str], str], flags: int, *folders: str) -> None:
        self._name, self._texts, self._expand, self._flags, self._folders = name, texts, expand, flags, folders

    def get(self, text: str) -> re.Pattern[str]:
        kept = self._places.get(text)
        made = None if kept is None else _loaded(text, self._code, *kept)
        return re.compile(self._expand(text), self._flags) if made is None else made

    @cached_property
    def _file(self) -> tuple[bytes, bytes]:
        name = f"{self._name}.{sys.implementation.cache_tag}"
        head, _, code = rule_files.kept_bytes(name, self._build, *self._folders).partition(b"\n")
        return head, code

    @cached_property
    def _places(self) -> dict[str, Any]:
        return json.loads(self._file[0])  # type: ignore[no-any-return]

    @cached_property
    def _code(self) -> memoryview:
        return memoryview(self._file[1])

    def _build(self) -> bytes:
        places: dict[str, Any] = {}
        codes = array("I")
        for text in dict.fromkeys(self._texts()):
            made = _compiled(self._expand(text), self._flags)
            if made is not None:
                code, *rest = made
                places[text] = (codes.itemsize * len(codes), codes.itemsize * len(code), *rest)
                codes.extend(code)
        return json.dumps(places).encode() + b"\n" + codes.tobytes()


def _compiled(pattern: str, flags: int) -> tuple[list[int], int, int, dict[str, int]] | None:
    """(code, flags, number of groups, names of groups) of a pattern; None where this Python does not tell."""
    try:
        from re import _compiler, _parser  # type: ignore[attr-defined]

        parsed = _parser.parse(pattern, flags)
        code = _compiler._code(parsed, flags)  # noqa: SLF001
        made = code, flags | parsed.state.flags, parsed.state.groups - 1, parsed.state.groupdict
        same = _made(pattern, *made) == re.compile(pattern, flags)
    except (ImportError, AttributeError, TypeError, ValueError, RuntimeError, OverflowError):
        return None
    return made if same else None


def _made(pattern: str, code: list[int], flags: int, groups: int, names: dict[str, int]) -> re.Pattern[str]:
    import _sre  # type: ignore[import-not-found]

    by_number: list[str | None] = [None] * (groups + 1)
    for name, number in names.items():
        by_number[number] = name
    return _sre.compile(pattern, flags, code, groups, names, tuple(by_number))  # type: ignore[no-any-return]


def _loaded(text: str, codes: memoryview, start: int, size: int, flags: int, groups: int, names: dict[str, int]) -> re.Pattern[str] | None:
    try:
        return _made(text, codes[start : start + size].cast("I").tolist(), flags, groups, names)
    except (ImportError, AttributeError, TypeError, RuntimeError):  # another build of the same Python
        return None
