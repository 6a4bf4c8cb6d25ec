"""Keeps what was built from files, in the wheel or where only we can write."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from zlib import crc32


def recall(name: str, build: Callable[[], bytes], files: Iterable[Path | str], shipped: Path) -> bytes:
    """What `build` makes of `files`: as the wheel shipped it (the folder `shipped`), as kept since these files and the code
    last changed, else built now and kept. Where nothing can be kept safely it is simply built."""
    try:
        return (shipped / name).read_bytes().partition(b"\n")[2]
    except OSError:
        pass
    folder = private_folder()
    if folder is None:
        return build()
    key = _fingerprint(files)
    place = folder / f"{crc32(bytes(shipped)):08x}.{name}"  # several checkouts keep theirs side by side
    try:
        held, _, body = place.read_bytes().partition(b"\n")
        if held == _sealed(key, body):
            return body
    except OSError:
        pass
    body = build()
    _write(place, _sealed(key, body) + b"\n" + body)
    return body


def _sealed(key: bytes, body: bytes) -> bytes:
    """The first line of what is kept: what it was made from, and a sum that a half-written file does not have."""
    return key + b"|%08x" % crc32(body)


@cache
def private_folder() -> Path | None:
    """$XDG_CACHE_HOME/oomdoctor/VERSION if it is ours and closed to everybody else; None where it cannot be.

    What is kept decides what a person is told to do, so a folder that somebody else can write into must never be read.
    """
    from diagnose.version import __version__

    if not hasattr(os, "getuid"):
        return None
    base = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(base) if base.startswith("/") else Path(os.path.expanduser("~")) / ".cache"
    ours = root / "oomdoctor"
    try:
        root.mkdir(parents=True, exist_ok=True)
        above = root.stat()
        if above.st_uid not in (0, os.getuid()) or (above.st_mode & stat.S_IWOTH and not above.st_mode & stat.S_ISVTX):
            return None  # somebody else could put another folder in the place of ours
        for folder in (ours, ours / __version__):
            folder.mkdir(mode=0o700, exist_ok=True)
            about = folder.lstat()
            if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid() or about.st_mode & 0o077:
                return None
    except OSError:
        return None
    return ours / __version__


def _fingerprint(files: Iterable[Path | str]) -> bytes:
    """One line that changes when a file is added, removed, touched or resized, or the code that reads it is."""
    marks = [_CODE]
    for file in files:
        about = os.stat(file)  # noqa: PTH116 - most are texts
        marks.append(f"{file}:{about.st_mtime_ns}:{about.st_size}")
    return "|".join(marks).replace("\n", "?").encode(errors="replace")


def _written() -> str:
    """A mark that changes when any module of the package is written: what is kept is only as good as the code that made it."""
    package = Path(__file__).parent
    if (package / "_shipped").is_dir():
        return ""  # installed: the version tells
    folders = [folder for folder, _, _ in os.walk(package) if "__pycache__" not in folder]
    return str(sum(entry.stat().st_mtime_ns for folder in folders for entry in os.scandir(folder) if entry.name.endswith(".py")))


#: Taken when the process starts: code that is written later is not the code that runs.
_CODE = _written()


def _write(path: Path, data: bytes) -> None:
    """Puts the file there at once or not at all; a full disk costs only the speed."""
    draft = path.with_name(f"{path.name}.{os.urandom(8).hex()}")  # no thread, and no container that shares the folder, has the same
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
    except OSError:
        return
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(data)
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
