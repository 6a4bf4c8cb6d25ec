"""What a file that was named is: a list of paths, a list of jobs, or a log. Its name helps, its first bytes decide."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from typing import BinaryIO, Literal, cast

from diagnose.cluster.find import addresses, job_manifest, kubectl, object_stores, sacct
from diagnose.cluster.find.job_index import Listed
from diagnose.cluster.find.job_opening import source
from diagnose.cluster.find.json_stream import LARGEST, values
from diagnose.errors import UserError
from diagnose.packed.unpack_limits import Allowance
from diagnose.packed.unpacking import contents
from diagnose.scan.job_folder import strip_suffixes
from diagnose.scan.source import Source

Kind = Literal["paths", "slurm", "kubernetes", "manifest", "log"]

_HEAD = 64 << 10
_PATHS = re.compile(r"\.(?:list|lst|paths|txt)$", re.IGNORECASE)
#: What a log is called, and never a list: a file of such a name is not looked into. (.txt may be either.)
_LOGS = re.compile(r"\.(?:log|out|err|[oe]\d{3,12}|tar|tgz|zip)$", re.IGNORECASE)


def kind_of(where: str, home: str) -> Kind:
    """What a file is, by its beginning. One that cannot be read is a log: that is said when it is."""
    if _LOGS.search(strip_suffixes(where)):
        return "log"
    try:
        head = _beginning(where)
    except (UserError, OSError):
        return "log"
    text = head.decode("utf-8-sig", "replace")
    first = next((line for line in text.splitlines() if line.strip()), "")
    if sacct.is_header(first):
        return "slurm"
    if first[:1] in "{[" and re.search(r'"(?:kind|apiVersion)":\s*"(?:List|PodList|Pod|v1)"', text[:4000]):
        return "kubernetes"
    if first.startswith(("{", "[")) and _is_manifest(text):
        return "manifest"
    return "paths" if _PATHS.search(strip_suffixes(where)) and _are_paths(text, home) else "log"


def _beginning(where: str) -> bytes:
    with _expanded(where) as opened:
        return opened.read(_HEAD) or b""


class _expanded:  # noqa: N801 - used as a function
    """A file that may be compressed, open to be read once."""

    def __init__(self, where: str) -> None:
        self._pieces = contents(source(where), Allowance())

    def __enter__(self) -> BinaryIO:
        for piece in self._pieces:
            if isinstance(piece, Source) and not piece.place and piece.handle is not None:
                return piece.handle
            if isinstance(piece, UserError):
                raise piece
            break
        raise OSError(0, "an archive is no list")

    def __exit__(self, *_: object) -> None:
        cast("Iterator[object]", self._pieces).close()  # type: ignore[attr-defined]


def _is_manifest(text: str) -> bool:
    """Whether the first value describes a job, and is none of a log's own records."""
    import io

    try:
        first = next((value for _, value in values(io.BytesIO(text.encode()), "")), None)
    except UserError:
        return False
    return job_manifest.is_row(first)


def _are_paths(text: str, home: str) -> bool:
    """Whether the first lines name files that exist, or objects of a store."""
    lines = [line.strip() for line in re.split(r"[\n\0]", text)[:-1] or [text] if line.strip() and not line.startswith("#")][:5]
    return bool(lines) and all(_is_path(line, home) for line in lines)


def _is_path(line: str, home: str) -> bool:
    if len(line) > 4096:
        return False
    if re.match(r"[a-z0-9]{2,8}://\S+$", line):
        return line.partition("://")[0] in object_stores.STORES
    return os.path.lexists(os.path.expanduser(line)) or os.path.lexists(os.path.join(home, line))  # noqa: PTH118


def paths(where: str, home: str) -> Iterator[str]:
    """The paths of a list, one per line (or each before a NUL, as `find -print0` writes); those that are not there from here begin in
    the folder of the list (`-`: standard input). Lines that begin with # are notes. Raises UserError where it cannot be read."""
    with nullcontext(sys.stdin.buffer) if where == "-" else _expanded(where) as opened:
        for line in _lines(opened):
            path = os.fsdecode(line)
            if path.strip() and not path.startswith("#"):
                yield path if addresses.is_stored(path) or os.path.lexists(path) else _from(home, path)


def _from(home: str, path: str) -> str:
    there = os.path.join(home, os.path.expanduser(path))  # noqa: PTH118
    return there if os.path.lexists(there) else path


def _lines(opened: BinaryIO) -> Iterator[bytes]:
    kept, sign = b"", b""
    while part := opened.read(1 << 20):
        if not kept and not sign:
            part = part.removeprefix(b"\xef\xbb\xbf")
        sign = sign or (b"\0" if b"\0" in part else b"\n")
        *whole, kept = (kept + part).split(sign)
        yield from (line.rstrip(b"\r") if sign == b"\n" else line for line in whole)
        if len(kept) > LARGEST:
            return
    if kept:
        yield kept


def jobs(where: str, kind: Kind, home: str) -> Iterator[Listed | int]:
    """The jobs of an export or a manifest; the number of a line that is none. Raises UserError where it cannot be read on."""
    with _expanded(where) as opened:
        if kind == "slurm":
            import codecs

            from diagnose.cluster.find.json_stream import lines

            yield from sacct.rows(lines("", codecs.getreader("utf-8-sig")(opened, "replace")))
            return
        for line, value in values(opened, where):
            found = None
            if kind == "kubernetes" and kubectl.is_pod(value):
                found = kubectl.row(value)
            elif kind == "manifest" and isinstance(value, dict):
                found = job_manifest.row(value, home)
            yield line if found is None else found
