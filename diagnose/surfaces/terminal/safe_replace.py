"""Replace files so that nothing is lost: originals are kept, each file changes at once, and all of them or none.

Whatever fails or is killed on the way, the bytes of each old file are at its path or in the original that is kept beside it.
Every call that writes is one of `os`, so that a test can let each of them fail.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from diagnose.surfaces.terminal.console import trouble

#: Kept originals of one file: NAME.orig, NAME.orig.1 ...; with more the file is refused.
MAX_ORIGINALS = 100
#: What link() says where a file system has no hard links.
NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


@dataclass(slots=True)
class OldFile:
    """A regular file as it was read."""

    path: Path
    data: bytes
    status: os.stat_result


@dataclass(slots=True)
class Replaced:
    """A file that was changed, and where its old content is."""

    path: Path
    original: Path
    has_other_names: bool  # hard links, which keep the old content


def read_file(path: Path) -> OldFile:
    """A file, opened without following a link. Raises UserError for what is not a regular file, and OSError."""
    if not stat.S_ISREG(path.lstat().st_mode):
        raise trouble("not_regular", where=str(path), hint="apply_by_hand")
    with os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise trouble("not_regular", where=str(path), hint="apply_by_hand")
        return OldFile(path, file.read(), status)


def replace_files(changes: Sequence[tuple[OldFile, bytes]]) -> list[Replaced]:
    """Give each file its new content; what cannot be done for one is done for none.

    Raises UserError where a file cannot be written, has changed since it was read, or has an original that cannot be one.
    """
    for old, _ in changes:
        check_originals(old)
    drafts: list[Path] = []
    kept: list[tuple[Path, bool]] = []
    done: list[OldFile] = []
    failed = changes[0][0]
    try:
        for failed, new in changes:
            drafts.append(write_draft(failed, new, "new"))
        for failed, _ in changes:
            kept.append(keep_original(failed))
        for (failed, _), draft in zip(changes, drafts, strict=True):
            refuse_if_changed(failed)
            os.replace(draft, failed.path)  # noqa: PTH105 - see above
            done.append(failed)
    except BaseException as error:
        if not put_back(done):
            originals = ", ".join(str(original) for original, _ in kept)
            raise trouble("not_put_back", where=str(failed.path), hint="copy_them_back", originals=originals) from error
        for original, is_new in kept:
            if is_new:
                with suppress(OSError):
                    os.unlink(original)  # noqa: PTH108
        if not isinstance(error, OSError):
            raise
        raise trouble("cannot_write", where=str(failed.path), hint="apply_by_hand", why=error.strerror or str(error)) from error
    finally:
        for draft in drafts:
            with suppress(OSError):
                os.unlink(draft)  # noqa: PTH108
    for folder in {old.path.parent for old, _ in changes}:
        sync_folder(folder)
    return [Replaced(old.path, original, old.status.st_nlink > 1) for (old, _), (original, _) in zip(changes, kept, strict=True)]


def check_originals(old: OldFile) -> None:
    """Raises UserError where NAME.orig is something else than an earlier state of the file: a folder, a link, the beginning of the file
    (a copy that was cut off)."""
    original = original_path(old.path, 0)
    try:
        status = original.lstat()
        if not stat.S_ISREG(status.st_mode):
            raise trouble("original_not_regular", where=str(original), hint="move_it_away")
        if status.st_size < len(old.data) and old.data.startswith(original.read_bytes()):
            raise trouble("original_cut", where=str(original), hint="move_it_away", file=old.path.name)
    except FileNotFoundError:
        return
    except OSError as error:
        raise trouble("original_unreadable", where=str(original), hint="move_it_away", why=error.strerror or str(error)) from error


def original_path(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.orig{f'.{number}' if number else ''}")


def keep_original(old: OldFile) -> tuple[Path, bool]:
    """The file's content beside it, and whether that is a new file: written whole under another name, then linked, never over
    something."""
    draft = None
    try:
        for number in range(MAX_ORIGINALS):
            original = original_path(old.path, number)
            try:
                if stat.S_ISREG(original.lstat().st_mode) and original.read_bytes() == old.data:
                    return original, False
                continue
            except FileNotFoundError:
                pass
            draft = draft or write_draft(old, old.data, "orig")
            with suppress(FileExistsError):  # another process was quicker
                link_or_copy(draft, original, old)
                sync_folder(old.path.parent)
                return original, True
    finally:
        if draft is not None:
            with suppress(OSError):
                os.unlink(draft)  # noqa: PTH108
    raise trouble("too_many_originals", where=str(old.path), hint="move_them_away", most=MAX_ORIGINALS)


def link_or_copy(draft: Path, original: Path, old: OldFile) -> None:
    """The draft under the name of the original. Raises FileExistsError where there is something of that name."""
    try:
        os.link(draft, original, follow_symlinks=False)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        write_new(original, old.data, old)


def refuse_if_changed(old: OldFile) -> None:
    """Raises UserError where the file is not as it was read."""
    now = read_file(old.path)
    if (now.status.st_ino, now.status.st_dev) != (old.status.st_ino, old.status.st_dev) or now.data != old.data:
        raise trouble("changed_meanwhile", where=str(old.path), hint="try_again")


def put_back(done: Sequence[OldFile]) -> bool:
    """Give files that were replaced their old content again; whether that was possible for all."""
    is_whole = True
    for old in reversed(done):
        try:
            os.replace(write_draft(old, old.data, "back"), old.path)  # noqa: PTH105
        except OSError:
            is_whole = False  # its original is beside it
    return is_whole


def write_draft(old: OldFile, data: bytes, purpose: str) -> Path:
    """A hidden file beside another, with its owner, mode and attributes, on the disk."""
    draft = old.path.with_name(f".{old.path.name}.{os.getpid()}.{purpose}.oomdoctor")
    with suppress(FileNotFoundError):
        os.unlink(draft)  # noqa: PTH108 - of a process that was killed and had this number
    write_new(draft, data, old)
    return draft


def write_new(path: Path, data: bytes, like: OldFile) -> None:
    """Create a file with another one's owner, mode and attributes and write it to the disk; where that fails there is none."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        try:
            remaining = memoryview(data)
            while remaining:
                remaining = remaining[os.write(descriptor, remaining) :]
            copy_attributes(like, descriptor)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except BaseException:
        with suppress(OSError):
            os.unlink(path)  # noqa: PTH108
        raise


def copy_attributes(like: OldFile, descriptor: int) -> None:
    """Owner, group, extended attributes (POSIX access lists among them) and mode without its setuid and setgid bits.

    Raises OSError where the owner or group cannot be kept. Attributes that only the system sets are left to it.
    """
    if not hasattr(os, "fchown"):
        return
    status = os.fstat(descriptor)
    if (status.st_uid, status.st_gid) != (like.status.st_uid, like.status.st_gid):
        os.fchown(descriptor, like.status.st_uid, like.status.st_gid)
    if hasattr(os, "listxattr"):
        with suppress(OSError):  # a file system without them
            for name in os.listxattr(like.path, follow_symlinks=False):
                if name.startswith(("user.", "system.posix_acl_access")):
                    os.setxattr(descriptor, name, os.getxattr(like.path, name, follow_symlinks=False))
    os.fchmod(descriptor, stat.S_IMODE(like.status.st_mode) & 0o1777)


def sync_folder(folder: Path) -> None:
    """Write a folder's names to the disk, where the system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
