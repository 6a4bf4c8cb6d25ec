"""Errors a person can act on: what, where, what to try."""

from __future__ import annotations

from diagnose.phrases import Lang, Text, phrase


class UserError(Exception):
    """Something the reader can put right: one sentence with its place, in both languages. `key` is the name of the sentence."""

    def __init__(self, what: Text, where: str = "", try_this: Text | None = None, key: str = "") -> None:
        super().__init__(what, where, try_this, key)
        self.what, self.where, self.try_this, self.key = what, where, try_this, key

    def to(self, lang: Lang) -> str:
        where = f"{self.where}: " if self.where else ""
        hint = f"{'；' if lang == 'zh' else '; '}{self.try_this.to(lang)}" if self.try_this else ""
        return f"{where}{self.what.to(lang)}{hint}"

    def at(self, where: str) -> Text:
        """The sentence behind the place that it is about, in both languages."""
        return Text(f"{where}: {self.to('en')}", f"{where}：{self.to('zh')}")

    def __str__(self) -> str:
        return self.to("en")


def user_error(key: str, where: str = "", hint: str = "", **values: object) -> UserError:
    """The complaint whose sentence is `complaints.KEY`, with the advice `complaints.HINT`; both are filled with `values`."""
    return UserError(phrase(f"complaints.{key}", **values), where, phrase(f"complaints.{hint}", **values) if hint else None, key)
