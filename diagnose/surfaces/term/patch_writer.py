"""Write the plan of a diagnosis as a unified diff, or apply it to the config files."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

from diagnose.adapters.formats.settings import Document
from diagnose.diagnosis import Diagnosis
from diagnose.phrases import Lang, phrase
from diagnose.plan.patch import patching
from diagnose.render.parts.strings import visible
from diagnose.surfaces.term import console
from diagnose.surfaces.term.console import trouble


def write(diagnosis: Diagnosis, configs: Sequence[str], patch: str | None, apply: bool, lang: Lang) -> None:
    """Write the plan as a diff to `patch` ("-": standard output) and, if `apply`, into the files named in `configs`.

    Raises UserError where a file cannot be written.
    """
    plan = diagnosis.outcome.plan
    edits = plan.edits if plan is not None else ()
    text = patching.diff(diagnosis.documents, edits)
    if not text:
        console.warn(phrase("cli.nothing_to_patch").to(lang))
        return
    if patch == "-":
        console.say(visible(text) if sys.stdout.isatty() else text)  # a pipe gets what applies, to the byte
    elif patch is not None:
        write_diff(Path(patch), text, lang)
    names = {spec.partition("=")[2] or spec for spec in configs} | set(configs)
    texts = patching.texts(diagnosis.documents, edits) if apply else {}
    for name in texts:
        document = next(document for document in diagnosis.documents if document.name == name and document.form != "command")
        if texts[name] != (document.outer or document.text) and name in names:
            replace_file(Path(name), document, texts[name], lang)


def write_diff(path: Path, text: str, lang: Lang) -> None:
    """Write a diff to a file."""
    try:
        path.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise trouble("cannot_write", where=str(path), hint="check_target", why=error.strerror or str(error)) from error
    console.warn(phrase("cli.patch_written", file=path).to(lang))


def replace_file(path: Path, document: Document, text: str, lang: Lang) -> None:
    """Replace a file atomically, with its mode kept and the first original beside it as .orig.

    Refuses a file that is not regular, is a link, or has changed since it was read.
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
    """Save the content before the first change; False if an .orig exists already (a link counts too and is left alone)."""
    try:
        create_file(original, data, status)
    except FileExistsError:
        return False
    return True


def replace_content(path: Path, status: os.stat_result, data: bytes) -> None:
    """Replace a file's content atomically: a temporary file beside it is renamed over it."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.oomdoctor")
    try:
        create_file(draft, data, status)
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def create_file(path: Path, data: bytes, status: os.stat_result) -> None:
    """Create a file with the mode of another. Raises FileExistsError if the path exists, links included."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
        if hasattr(os, "fchmod"):
            os.fchmod(file.fileno(), stat.S_IMODE(status.st_mode))
