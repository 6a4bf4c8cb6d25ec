"""Files of our own that are there whole, or as they were: written under another name beside them, then renamed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def draft(target: Path) -> Iterator[Path]:
    """The path to write to, which becomes `target` when the block ends and is removed where the block fails. A link is followed; a
    pipe or device is written to directly, never replaced. Raises OSError."""
    target = target.resolve() if target.is_symlink() else target
    if target.exists() and not target.is_file():
        yield target
        return
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield beside
        if target.exists():
            beside.chmod(target.stat().st_mode & 0o777)
        beside.replace(target)
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
