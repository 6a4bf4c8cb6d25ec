"""Notebooks: the code of their cells as a script in Python, and the commands of their lines and cells for a shell."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from diagnose.adapters.formats.yaml_file import compose_documents
from diagnose.adapters.launch.launch_command import Launch, text_launches
from diagnose.adapters.shell.shell_text import Chars

_SHELL_CELL = re.compile(r"\s*%%(?:bash|sh|script|cmd)\b[^\n]*\n")
_COMMAND = re.compile(r"^[ \t]*[!%](?:(?:sx|system)[ \t])?((?:[^\n\\]|\\\n|\\.)*)", re.MULTILINE)
_ITEM = re.compile(r"\\(?:u[0-9a-fA-F]{4}|[\"\\/bfnrt])|[^\\]+|.", re.DOTALL)
_MAX_CELLS = 500


def is_notebook(text: str) -> bool:
    """Whether a JSON text is a notebook of Jupyter."""
    return '"cells"' in text and '"nbformat"' in text and '"cell_type"' in text


def notebook_launches(text: str) -> list[Launch]:
    """What the notebook's cells start, each option where the file has it. Raises Unreadable for what is no notebook."""
    cells = list(_cells(text))
    return [launch for chars in cells for command in _shell_texts(chars) for launch in text_launches(command, {})]


def notebook_script(text: str) -> str:
    """The code of all cells as one script, without commands and magics. Raises Unreadable for what is no notebook."""
    code = (chars.text for chars in _cells(text) if not _SHELL_CELL.match(chars.text) and not chars.text.lstrip().startswith("%%"))
    return "\n".join(_COMMAND.sub(lambda match: "\n" * match[0].count("\n"), cell) for cell in code) + "\n"


def _cells(text: str) -> Iterator[Chars]:
    """The source of each cell of code, with the offsets of its characters in the file."""
    top = next(iter(compose_documents(text)), None)
    cells = _fields(top).get("cells")
    for cell in getattr(cells, "value", [])[:_MAX_CELLS] if getattr(cells, "id", "") == "sequence" else ():
        fields = _fields(cell)
        source = fields.get("source")
        if getattr(fields.get("cell_type"), "value", "") != "code" or source is None:
            continue
        chars = Chars()
        for item in source.value if source.id == "sequence" else [source]:
            _append_string(chars, text, item.start_mark.index + 1, item.end_mark.index - 1)
        yield chars


def _fields(node: Any) -> dict[str, Any]:
    return {name.value: value for name, value in node.value} if getattr(node, "id", "") == "mapping" else {}


def _append_string(chars: Chars, text: str, start: int, end: int) -> None:
    """Append a JSON string, of which each escape is one character."""
    for part in _ITEM.finditer(text, start, end):
        written = part[0]
        if written[:1] != "\\" or written == "\\":
            chars.literal(written, part.start())
        else:
            chars.add(str(json.loads(f'"{written}"')), part.start(), part.end())


def _shell_texts(chars: Chars) -> Iterator[Chars]:
    """The texts of a cell that a shell gets: the whole cell behind `%%bash`, or each line behind `!` with what continues it."""
    if cell := _SHELL_CELL.match(chars.text):
        yield _part(chars, cell.end(), len(chars.text))
        return
    for line in _COMMAND.finditer(chars.text):
        yield _part(chars, line.start(1), line.end(1))


def _part(chars: Chars, start: int, end: int) -> Chars:
    return Chars(chars.text[start:end], chars.starts[start:end], chars.ends[start:end])
