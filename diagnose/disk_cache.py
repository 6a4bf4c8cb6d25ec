"""Disk cache for data built from files (compiled rules and grammars), shipped in the wheel or in a private folder of the user."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from zlib import crc32

from diagnose.version import __version__


def recall(name: str, build: Callable[[], bytes], marks: Iterable[str], shipped: Path) -> bytes:
    """The bytes that `build` makes of the files with these marks: from the wheel (folder `shipped`), else from the cache if neither the
    files nor the code changed since, else built now and cached. Without a safe folder for the cache it is built each time."""
    kept = _read(f"{shipped}/{name}")
    if kept is not None:
        return kept.partition(b"\n")[2]
    folder = private_folder()
    if folder is None:
        return build()
    key = "|".join([_CODE, *marks]).replace("\n", "?").encode(errors="replace")
    path = f"{folder}/{crc32(bytes(shipped)):08x}.{name}"  # a file per checkout
    header, _, body = (_read(path) or b"").partition(b"\n")
    if header == _header(key, body):
        return body
    body = build()
    _write_atomically(Path(path), _header(key, body) + b"\n" + body)
    return body


def _read(path: str) -> bytes | None:
    """A file's bytes, None where there is none. (A text, since each start reads some forty and creating Paths takes as long.)"""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read()
    except OSError:
        return None


def _header(key: bytes, body: bytes) -> bytes:
    """First line of a cached file: the marks of its sources, and a checksum that detects a half-written file."""
    return key + b"|%08x" % crc32(body)


@cache
def private_folder() -> Path | None:
    """$XDG_CACHE_HOME/oomdoctor/VERSION if only this user can write into it; None otherwise.

    Cached rules decide what a person is advised to do, so a folder that somebody else can write into must never be read.
    """
    if not hasattr(os, "getuid"):
        return None
    base = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(base) if base.startswith("/") else Path(os.path.expanduser("~")) / ".cache"
    return own_folder(root, "oomdoctor", __version__)


def own_folder(root: Path, *names: str) -> Path | None:
    """The folder `names` below `root`, made where it is missing; None if anybody but this user can write into it."""
    folder = root
    try:
        root.mkdir(parents=True, exist_ok=True)
        root_status = root.stat()
        if root_status.st_uid not in (0, os.getuid()) or (root_status.st_mode & stat.S_IWOTH and not root_status.st_mode & stat.S_ISVTX):
            return None  # somebody else could replace the folder
        for name in names:
            folder /= name
            folder.mkdir(mode=0o700, exist_ok=True)
            status = folder.lstat()
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
                return None
    except OSError:
        return None
    return folder


def mark(file: Path | str) -> str:
    """A text that changes when a file is touched or resized."""
    status = os.stat(file)  # noqa: PTH116 - most are texts
    return f"{file}:{status.st_mtime_ns}:{status.st_size}"


def _code_mark() -> str:
    """A mark that changes when any module of the package is modified; empty for an installed package, which its version identifies."""
    package = Path(__file__).parent
    if (package / "_shipped").is_dir():
        return ""
    total, folders = 0, [str(package)]
    while folders:
        for entry in os.scandir(folders.pop()):
            if entry.name.endswith(".py"):
                total += entry.stat().st_mtime_ns
            elif "." not in entry.name and entry.name != "__pycache__" and entry.is_dir():
                folders.append(entry.path)
    return str(total)


#: Computed when the process starts: code modified later is not the code that runs.
_CODE = _code_mark()


def _write_atomically(path: Path, data: bytes) -> None:
    """Write a file by rename, completely or not at all; errors such as a full disk are ignored."""
    temporary = path.with_name(f"{path.name}.{os.urandom(8).hex()}")  # unique among threads and containers that share the folder
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
    except OSError:
        return
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
