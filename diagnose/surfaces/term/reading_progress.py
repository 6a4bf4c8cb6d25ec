"""A line on a terminal's standard error while reading takes long: how much has been read, and how long that took."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from diagnose.scan.source import Source

if TYPE_CHECKING:
    from threading import Event

    from diagnose.phrases import Lang

DELAY, INTERVAL = 1.0, 0.25  # seconds until the line appears, and between two of them
ERASE = "\r\x1b[K"


@contextlib.contextmanager
def reading(logs: Sequence[object], lang: Lang) -> Iterator[None]:
    """Tells of what is done inside, from its second second on, and leaves no trace of it."""
    if not logs or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield
        return
    from threading import Event, Thread

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
    """One line, written anew until it is `done`: how far the count of bytes is from where it `begun`, of `size` in all."""
    from diagnose.phrases import phrase
    from diagnose.units import show

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
    with contextlib.suppress(OSError, UnicodeEncodeError):  # nobody reads it, or not in this language
        sys.stderr.write(text)
        sys.stderr.flush()


def bytes_read() -> int | None:
    """The bytes that this process has read so far, where the system counts them."""
    try:
        return int(Path("/proc/self/io").read_bytes().split(b"rchar:", 1)[1].split(maxsplit=1)[0])
    except (OSError, IndexError, ValueError):
        return None


def total_size(logs: Sequence[object]) -> int | None:
    """How many bytes the logs have together; None where one of them is no file."""
    try:
        return sum(log.stat().st_size for log in logs if isinstance(log, Path)) if all(map(is_file, logs)) else None
    except (OSError, ValueError):
        return None


def is_file(log: object) -> bool:
    return isinstance(log, Path) and log.is_file()
