"""Output of the command line: language, width and colour of the terminal, errors."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TextIO, cast

if TYPE_CHECKING:
    from diagnose.errors import UserError
    from diagnose.phrases import Lang
    from diagnose.render.parts.view import View

#: What a terminal that cannot write a character gets instead.
PLAIN: dict[str, str | int | None] = {"█": "#", "░": "-", "…": "...", "—": "-", "\u200b": ""}

#: What the system says of a disk, a quota or a file that is full: never a mistake of ours.
FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


def trouble(key: str, where: str = "", hint: str = "", **values: object) -> UserError:
    """A UserError with a sentence of rules/phrases/cli.yaml."""
    from diagnose.errors import UserError
    from diagnose.phrases import phrase

    return UserError(phrase(f"cli.{key}", **values), where, phrase(f"cli.{hint}", **values) if hint else None)


def language(asked: str | None = None) -> Lang:
    """The requested language, else the locale's."""
    if asked is None:
        told = next(filter(None, map(os.environ.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
        asked = "zh" if told.lower().startswith(("zh", "chinese")) else "en"
    return cast("Lang", asked)


def help_text(name: str) -> str:
    """A help text of rules/phrases/cli.yaml in the language of the locale."""
    from diagnose.phrases import phrase

    return phrase(f"cli.{name}").to(language())


def view(top: int = 3, verbose: bool = False, budget: bool = False, rules: bool = False) -> View:
    """The view for standard output."""
    from diagnose.render.parts.view import stream_view

    return stream_view(sys.stdout, top, verbose, budget, rules)


def say(text: str | bytes) -> None:
    """Print a text, or bytes unchanged, on standard output. A reader that has closed the pipe is no error. Raises UserError if it
    cannot be written."""
    with write_errors("stdout"):
        try:
            _write(sys.stdout, text if isinstance(text, bytes) or text.endswith("\n") else text + "\n")
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def write_errors(where: str) -> Iterator[None]:
    """Turn an OSError of the block, which writes to `where`, into a UserError."""
    try:
        yield
    except OSError as error:
        raise trouble("cannot_write", where=where, hint="check_target", why=error.strerror or str(error)) from error


def warn(sentence: str) -> None:
    """Print a sentence on standard error on one line, without control characters; errors are ignored."""
    from diagnose.render.parts.strings import one_line

    with contextlib.suppress(OSError):
        _write(sys.stderr, f"oomdoctor: {one_line(sentence)}\n")


def _write(out: TextIO, text: str | bytes) -> None:
    """Write a text in the stream's encoding, replacing characters that it lacks; bytes unchanged."""
    encoding = out.encoding or "utf-8"
    try:
        data = text if isinstance(text, bytes) else text.encode(encoding)
    except UnicodeEncodeError:
        data = str(text).translate(str.maketrans(PLAIN)).encode(encoding, "replace")
    if hasattr(out, "buffer"):
        out.flush()
        out.buffer.write(data)
    else:
        out.write(data.decode(encoding, "replace"))
    out.flush()


def guarded(lang: Lang, work: Callable[[], int | None]) -> int:
    """Run `work` and return its exit status: 2 after a UserError, 3 after a bug, each reported as a sentence on standard error."""
    from diagnose.errors import UserError
    from diagnose.phrases import phrase

    try:
        return work() or 0
    except UserError as error:
        warn(error.to(lang))
        return 2
    except KeyboardInterrupt:
        warn(phrase("cli.stopped").to(lang))
        return 130
    except Exception as error:
        if isinstance(error, OSError) and error.errno in FULL:  # wherever it was: the help, a temporary folder
            warn(trouble("no_room", where=str(error.filename or ""), hint="make_room", why=error.strerror).to(lang))
            return 2
        if os.environ.get("OOMDOCTOR_DEBUG"):
            raise
        warn(phrase("cli.internal", error=f"{type(error).__name__}: {error}"[:300]).to(lang))
        return 3
