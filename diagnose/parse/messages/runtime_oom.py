"""Messages of runtimes, drivers and libraries on a device (grammars/runtime_oom.lark)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from diagnose.parse.messages.message_spec import StatementSpec, statement_specs
from diagnose.parse.text import grammar_statements

if TYPE_CHECKING:
    from diagnose.parse.model.message import Message
    from diagnose.parse.text.grammar_statements import Statement

PARTED_BYTES = True  # CuPy prints 8,589,934,592 bytes


def goes_on(text: str, line: str) -> bool:
    """Where it was wrapped before its figures; and TensorRT's second line, with the size."""
    if "Cuda Runtime (out of memory)" in text:
        return "Requested amount of GPU memory (" in line
    return (
        re.search(r"[:,(]\s*$|allocat(?:e|ing)$", text) is not None and re.match(r"\s*\(?\[?[\d,]+ ?(?:bytes|[KMGT]i?B)", line) is not None
    )


def read(text: str) -> Message | None:
    """The message in a line; None without one. A statement with figures comes before one without."""
    messages = [
        message
        for message in map(_message, grammar_statements.parse_statements("runtime_oom", grammar_statements.collapse_blanks(text)))
        if message is not None
    ]
    return next((message for message in messages if message.figures), messages[0] if messages else None)


def _message(statement: Statement) -> Message | None:
    if statement.kind in ("library", "library_maybe"):
        name = re.search(r"(CUBLAS|HIPBLAS|CUDNN|CUSOLVER)_", statement.words[0])
        family = statement_specs("runtime_oom")[f"library_{name[1].lower()}" if name else "library"].family
        return (
            StatementSpec(family) if statement.kind == "library" else StatementSpec(family, "suspected", reason="library_status")
        ).message(statement)
    row = statement_specs("runtime_oom").get(statement.kind)
    return row.message(statement) if row is not None else None
