"""Messages of runtimes, drivers and libraries on a device (grammars/runtime_oom.lark)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from diagnose.parse.messages.message_spec import StatementSpec, statement_specs
from diagnose.parse.text import grammar_statements
from diagnose.parse.text.lazy_re import lazy_compile

if TYPE_CHECKING:
    from diagnose.parse.model.message import Message
    from diagnose.parse.text.grammar_statements import Statement

#: Lines with figures that go on what was begun, each after its own first line: TensorRT, llama.cpp, XGBoost, CUDA.jl.
_TABLES = (
    (lazy_compile(r"Cuda Runtime \(out of memory\)"), lazy_compile(r".*Requested amount of GPU memory \(")),
    (lazy_compile(r"(?:CUDA|ROCm|MUSA) error: out of memory$"), lazy_compile(r"\s*current device: \d")),
    (lazy_compile(r"Memory allocation error on worker"), lazy_compile(r"\s*- (?:Free|Requested) memory: \d")),
    (lazy_compile(r"Out of GPU memory trying to allocate"), lazy_compile(r"\s*Effective GPU memory usage: ")),
)

PARTED_BYTES = True  # CuPy prints 8,589,934,592 bytes


def goes_on(text: str, line: str) -> bool:
    """Where it was wrapped before its figures; and the lines with figures that follow the message of some programs."""
    if any(first.search(text) and continuation.match(line) for first, continuation in _TABLES):
        return True
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
