"""What the first word of a command starts: Python, torchrun, a shell, or a program of rules/programs.yaml."""

from __future__ import annotations

import re

from diagnose import rule_files

SHELLS = frozenset({"bash", "sh", "zsh", "/bin/bash", "/bin/sh"})
PYTHON = re.compile(r"(?:.*[/\\])?(?:python[\d.]*|py)(?:\.exe)?$")
TORCHRUN = re.compile(r"(?:.*/)?torchrun$|torch\.distributed\.(?:run|launch)$")


def starts_program(word: str) -> bool:
    """Whether a command that begins with this word starts a program that is known."""
    names = ("deepspeed", *SHELLS, *rule_files.table("programs")["commands"])
    return bool(PYTHON.match(word) or TORCHRUN.match(word)) or word.rpartition("/")[2] in names
