"""Errors that the user can correct."""

from __future__ import annotations

from diagnose.phrases import Lang, Text, phrase


class UserError(Exception):
    """An error that the user can correct: a sentence (`what`, with its `key`), its place (`where`) and `advice`."""

    def __init__(self, what: Text, where: str = "", advice: Text | None = None, key: str = "") -> None:
        super().__init__(what, where, advice, key)
        self.what, self.where, self.advice, self.key = what, where, advice, key

    def to(self, lang: Lang) -> str:
        where = f"{self.where}: " if self.where else ""
        hint = f"{'；' if lang == 'zh' else '; '}{self.advice.to(lang)}" if self.advice else ""
        return f"{where}{self.what.to(lang)}{hint}"

    def at(self, where: str) -> Text:
        """The sentence with its advice, preceded by another place."""
        return Text(f"{where}: {self.to('en')}", f"{where}：{self.to('zh')}")

    def __str__(self) -> str:
        return self.to("en")


def user_error(key: str, where: str = "", hint: str = "", **values: object) -> UserError:
    """The error with the sentence `complaints.KEY` and the advice `complaints.HINT`, both filled with `values`."""
    return UserError(phrase(f"complaints.{key}", **values), where, phrase(f"complaints.{hint}", **values) if hint else None, key)
