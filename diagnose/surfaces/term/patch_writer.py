"""Writes the plan: as a unified diff, or into the given files themselves."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from diagnose.adapters.formats.settings import Document
from diagnose.phrases import Lang, phrase
from diagnose.plan.patch import patching
from diagnose.render.parts.strings import visible
from diagnose.surfaces.term import console
from diagnose.surfaces.term.console import trouble

if TYPE_CHECKING:
    from diagnose.diagnosis import Diagnosis
    from diagnose.surfaces.term.answer_command import Shown


def write(diagnosis: Diagnosis, configs: Sequence[str], shown: Shown) -> None:
    """The plan as a diff (`--patch`) and into the files that were given (`--apply`). Raises UserError where it cannot be written."""
    plan = diagnosis.outcome.plan
    edits = plan.edits if plan is not None else ()
    text = patching.diff(diagnosis.documents, edits)
    if not text:
        console.warn(phrase("cli.nothing_to_patch").to(shown.lang))
        return
    if shown.patch == "-":
        console.say(visible(text) if sys.stdout.isatty() else text)  # a pipe gets what applies, to the byte
    elif shown.patch is not None:
        write_diff(Path(shown.patch), text, shown.lang)
    names = {spec.partition("=")[2] or spec for spec in configs} | set(configs)
    texts = patching.texts(diagnosis.documents, edits) if shown.apply else {}
    for name in texts:
        document = next(document for document in diagnosis.documents if document.name == name and document.form != "command")
        if texts[name] != (document.outer or document.text) and name in names:
            replace_file(Path(name), document, texts[name], shown.lang)


def write_diff(path: Path, text: str, lang: Lang) -> None:
    """A diff into a file of its own."""
    try:
        path.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise trouble("cannot_write", where=str(path), hint="check_target", why=error.strerror or str(error)) from error
    console.warn(phrase("cli.patch_written", file=path).to(lang))


def replace_file(path: Path, document: Document, text: str, lang: Lang) -> None:
    """Put the new text in the file's place at once, its mode kept, the first original beside it as .orig.

    Only a regular file that still holds what was read is touched; links are not followed.
    """
    original = path.with_name(path.name + ".orig")
    try:
        status, data = read_regular(path)
        if decode(data) != (document.outer or document.text):
            raise trouble("changed_meanwhile", where=str(path), hint="try_again")
        is_first = keep_original(original, data, status)
        replace_content(path, status, text.encode("utf-8-sig" if data.startswith(b"\xef\xbb\xbf") else "utf-8"))
    except OSError as error:
        raise trouble("cannot_write", where=str(path), hint="apply_by_hand", why=error.strerror or str(error)) from error
    console.warn(phrase("cli.applied" if is_first else "cli.applied_again", file=path, orig=original.name).to(lang))


def read_regular(path: Path) -> tuple[os.stat_result, bytes]:
    """A regular file's mode and content, opened without following a link."""
    if not stat.S_ISREG(path.lstat().st_mode):
        raise trouble("not_regular", where=str(path), hint="apply_by_hand")
    with os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise trouble("not_regular", where=str(path), hint="apply_by_hand")
        return status, file.read()


def decode(data: bytes) -> str:
    """A config's text as the adapters read it."""
    return data.decode("utf-8-sig", "surrogateescape")


def keep_original(original: Path, data: bytes, status: os.stat_result) -> bool:
    """The content before the first change; False where an earlier one is kept already (even as a link: it stays as it is)."""
    try:
        create_file(original, data, status)
    except FileExistsError:
        return False
    return True


def replace_content(path: Path, status: os.stat_result, data: bytes) -> None:
    """Replace a file's content at once or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.oomdoctor")
    try:
        create_file(draft, data, status)
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def create_file(path: Path, data: bytes, status: os.stat_result) -> None:
    """A new file with the mode of an old one. Raises FileExistsError for any that exists, links included."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
        if hasattr(os, "fchmod"):
            os.fchmod(file.fileno(), stat.S_IMODE(status.st_mode))
