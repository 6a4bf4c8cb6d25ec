"""Values by their names in a set of arguments that a program prints in one line: a dict, a Namespace, a call, `a=1, b=2`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from diagnose.facts import declared

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from diagnose.facts import Value

_DTYPES = {"float32": "fp32", "float": "fp32", "float16": "fp16", "half": "fp16", "bfloat16": "bf16"}
_QUOTED = r"'([^'\n]{1,400})'|\"([^\"\n]{1,400})\""


def known(text: str, keys: Mapping[str, str]) -> Iterator[tuple[str, Value]]:
    """Fact and value of each key that is set; "None" and "auto" set nothing. `keys`: the program's name of a setting to the fact's."""
    for key, name in keys.items():
        match = re.search(rf"(?<![\w.-])['\"]?{re.escape(key)}['\"]?\s?[=:]\s?(?:{_QUOTED}|([\w./+-]{{1,200}}))", text)
        value = None if match is None else _typed(name, next(group for group in match.groups() if group))
        if value is not None:
            yield name, value


def _typed(name: str, text: str) -> Value:
    entry = declared(name)
    if entry is None or text in ("None", "auto", "null"):
        return None
    match entry.kind:
        case "count":
            return int(text) if re.fullmatch(r"[1-9]\d{0,14}", text) else None
        case "ratio":
            return float(text) if re.fullmatch(r"\d?\.\d{1,18}|1(?:\.0)?", text) else None
        case "switch":
            return {"True": True, "False": False, "true": True, "false": False}.get(text)
        case "word":
            word = _DTYPES.get(text.removeprefix("torch."), text)
            return word if word in entry.words else None
        case "text":
            return text
    return None
