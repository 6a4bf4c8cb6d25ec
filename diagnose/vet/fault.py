"""A fault of a rule file: where, what, and what to try."""

from __future__ import annotations

from dataclasses import dataclass

from diagnose.phrases import Lang, Text


@dataclass(slots=True)
class Fault:
    """`line` is 1-based; 0 where the fault belongs to no line."""

    file: str
    line: int
    message: Text

    def to(self, lang: Lang) -> str:
        return f"{self.file}:{self.line}: {self.message.to(lang)}" if self.line else f"{self.file}: {self.message.to(lang)}"

    def __str__(self) -> str:
        return self.to("en")
