"""A progress line on a terminal's standard error while inputs are read: bytes and elapsed time."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Event, Thread

from diagnose.phrases import Lang, phrase
from diagnose.scan.source import Source
from diagnose.units import show

DELAY, INTERVAL = 1.0, 0.25  # seconds until the line appears, and between two of them
ERASE = "\r\x1b[K"


@contextlib.contextmanager
def reading(logs: Sequence[object], lang: Lang) -> Iterator[None]:
    """Shows a progress line while the block runs longer than DELAY, and erases it at the end."""
    if not logs or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield
        return
    done = Event()
    start = None if any(isinstance(log, Source) for log in logs) else bytes_read()  # what comes over a network is not counted
    thread = Thread(target=show_progress, args=(done, start, total_size(logs), lang), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def show_progress(done: Event, start: int | None, size: int | None, lang: Lang) -> None:
    """Rewrite the line until `done`: bytes read since the counter stood at `start`, of `size` (None: unknown)."""
    seconds = DELAY
    if done.wait(DELAY):
        return
    while True:
        position = None if start is None else bytes_read()
        read = None if start is None or position is None else min(position - start, size or position)
        key = "reading" if read is None else "reading_some" if size is None else "reading_of"
        figures = {"read": show(read or 0), "size": show(size or 0), "seconds": int(seconds)}
        write_status(f"{ERASE}oomdoctor: {phrase(f'cli.{key}', **figures).to(lang)}")
        if done.wait(INTERVAL):
            break
        seconds += INTERVAL
    write_status(ERASE)


def write_status(text: str) -> None:
    with contextlib.suppress(OSError, UnicodeEncodeError):  # the terminal is gone, or its encoding lacks a character
        sys.stderr.write(text)
        sys.stderr.flush()


def bytes_read() -> int | None:
    """Bytes that this process has read so far; None where the system has no /proc/self/io."""
    try:
        return int(Path("/proc/self/io").read_bytes().split(b"rchar:", 1)[1].split(maxsplit=1)[0])
    except (OSError, IndexError, ValueError):
        return None


def total_size(logs: Sequence[object]) -> int | None:
    """Total size of all logs in bytes; None if any is not a regular file."""
    try:
        return sum(log.stat().st_size for log in logs if isinstance(log, Path)) if all(map(is_file, logs)) else None
    except (OSError, ValueError):
        return None


def is_file(log: object) -> bool:
    return isinstance(log, Path) and log.is_file()
