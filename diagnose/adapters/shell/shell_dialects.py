"""Which shell a script is for: bash, or what Windows runs."""

from __future__ import annotations

import re

_WINDOWS = re.compile(r"^[ \t]*(?:@echo off|@?set \w+=|set \"\w+=|rem )", re.MULTILINE | re.IGNORECASE)
_POWER = re.compile(r"^[ \t]*\$(?:env:)?\w+[ \t]*=[^=]", re.MULTILINE | re.IGNORECASE)


def dialect_of(text: str) -> str:
    """bash, or what Windows runs: cmd continues a line with ^, PowerShell with a backquote."""
    if "\\\n" in text or "\\\r\n" in text or text.startswith("#!"):
        return "bash"
    if _POWER.search(text) or re.search(r"[ \t]`\r?\n", text):
        return "powershell"
    return "cmd" if _WINDOWS.search(text) or re.search(r"[ \t]\^\r?\n", text) else "bash"


def unbroken(text: str, dialect: str) -> str:
    """The text with lines that end as bash ends them, of the same length: offsets stay."""
    mark = {"cmd": "^", "powershell": "`"}.get(dialect, "\\")
    return text.replace(f"{mark}\r\n", f" {mark}\n").replace("\r\n", " \n")
