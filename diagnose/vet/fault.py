"""A fault in a rule file: place, description, advice."""

from __future__ import annotations

from dataclasses import dataclass

from diagnose.phrases import Lang, Text


@dataclass(slots=True)
class Fault:
    """A fault. `line` is 1-based; 0 if it belongs to no line."""

    file: str
    line: int
    message: Text

    def to(self, lang: Lang) -> str:
        return f"{self.file}:{self.line}: {self.message.to(lang)}" if self.line else f"{self.file}: {self.message.to(lang)}"

    def __str__(self) -> str:
        return self.to("en")
