"""Errors that the user can correct; crashes of our own code, which are logged."""

from __future__ import annotations

import os

from diagnose.phrases import Lang, Text, phrase, same


class UserError(Exception):
    """An error that the user can correct: a sentence (`what`, with its `key`), its place (`where`) and `advice`."""

    def __init__(self, what: Text, where: str = "", advice: Text | None = None, key: str = "") -> None:
        super().__init__(what, where, advice, key)
        self.what, self.where, self.advice, self.key = what, where, advice, key

    def to(self, lang: Lang) -> str:
        where = f"{self.where}{'：' if lang == 'zh' else ': '}" if self.where else ""
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


def pip() -> str:
    """How pip of this Python is called: in an environment that is not activated, `pip` is another one's."""
    import shlex
    import shutil
    import sys
    from pathlib import Path

    found, folder = shutil.which("pip"), Path(sys.executable).parent
    return "pip" if found is not None and Path(found).parent == folder else f"{shlex.quote(sys.executable)} -m pip"


def crashed(rule: str, error: Exception) -> Text:
    """A rule that crashed, as a note about the rule; the traceback goes to the log."""
    log_crash(rule, error)
    return same(f"{rule}: {type(error).__name__}: {error}")


def log_crash(where: str, error: BaseException) -> None:
    """Logs a mistake of ours with its traceback (logger `diagnose`): on standard error where OOMDOCTOR_DEBUG is set, else nowhere unless
    the program that uses the package says so."""
    import logging  # most starts have no mistake to log

    logger = logging.getLogger("diagnose")
    if not logger.handlers:
        logger.addHandler(logging.StreamHandler() if os.environ.get("OOMDOCTOR_DEBUG") else logging.NullHandler())
    logger.error("%s crashed", where, exc_info=error)
