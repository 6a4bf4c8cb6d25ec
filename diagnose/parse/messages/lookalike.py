"""Messages that read like a memory shortage and are none, with the reason (grammars/lookalike.lark)."""

from __future__ import annotations

from diagnose.parse.messages.message_spec import statement_specs
from diagnose.parse.model.message import Message
from diagnose.parse.text import grammar_statements

#: These end what the device was doing: what a library says after one of them says nothing about memory.
FAULTS = frozenset({"device_assert", "illegal_access", "misaligned"})


def goes_on(text: str, line: str) -> bool:
    """Only where it was wrapped before its figures."""
    return text.rstrip().endswith((",", "out of resource:", "on device", "out of resource: shared", "out of resource: tensor")) and line[
        :1
    ] not in ("[", "{")


def read(text: str) -> Message | None:
    """The look-alike in a line; None where none of its words is one."""
    statements, says = (
        grammar_statements.parse_statements("lookalike", grammar_statements.collapse_blanks(text)),
        statement_specs("lookalike"),
    )
    for statement in statements:
        if statement.kind == "handled":
            continue
        row = says.get(statement.kind, says["other"])
        message = row.message(statement)
        if message.status == "lookalike":
            message.reason = message.reason or statement.kind
        if statement.kind in ("segment_retry", "address_space"):
            message.facts["alloc.expandable_segments"] = True
        message.fatal = message.fatal and all(one.kind != "handled" for one in statements)
        return message
    return None
