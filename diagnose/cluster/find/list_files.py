"""Distinguishes lists of paths, lists of jobs and logs by their first bytes (the name is only a hint), and reads lists."""

from __future__ import annotations

import codecs
import io
import os
import re
import sys
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager, nullcontext
from typing import BinaryIO, Literal, cast

from diagnose.cluster.find import addresses, job_manifest, kubectl, object_stores, sacct
from diagnose.cluster.find.job_files import open_source
from diagnose.cluster.find.job_index import JobRecord
from diagnose.cluster.find.json_stream import MAX_VALUE, read_lines, read_values
from diagnose.errors import UserError
from diagnose.packed.unpack_limits import Allowance
from diagnose.packed.unpacking import contents
from diagnose.scan.job_folder import strip_suffixes
from diagnose.scan.source import Source

ListKind = Literal["paths", "slurm", "kubernetes", "manifest", "log"]

_HEAD_BYTES = 64 << 10
_PATH_LIST = re.compile(r"\.(?:list|lst|paths|txt)$", re.IGNORECASE)
#: Names of logs, which are never opened to look for a list. (.txt may be either.)
_LOG = re.compile(r"\.(?:log|out|err|[oe]\d{3,12}|tar|tgz|zip)$", re.IGNORECASE)


def list_kind(address: str, home: str) -> ListKind:
    """The kind of a file. An unreadable one counts as a log, whose reader reports the error."""
    if _LOG.search(strip_suffixes(address)):
        return "log"
    try:
        head = _read_head(address)
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
    return "paths" if _PATH_LIST.search(strip_suffixes(address)) and _is_path_list(text, home) else "log"


def _read_head(address: str) -> bytes:
    with _open_expanded(address) as file:
        return file.read(_HEAD_BYTES) or b""


@contextmanager
def _open_expanded(address: str) -> Iterator[BinaryIO]:
    """A possibly compressed file, open for reading. Raises UserError or OSError if it is unreadable or an archive."""
    with closing(cast("Generator[Source | UserError]", contents(open_source(address), Allowance()))) as pieces:
        piece = next(pieces, None)
        if isinstance(piece, UserError):
            raise piece
        if piece is None or piece.place or piece.handle is None:
            raise OSError(0, "an archive is no list")
        yield piece.handle


def _is_manifest(text: str) -> bool:
    """Whether the first value describes a job and is not a record of a structured log."""
    try:
        first = next((value for _, value in read_values(io.BytesIO(text.encode()), "")), None)
    except UserError:
        return False
    return job_manifest.is_record(first)


def _is_path_list(text: str, home: str) -> bool:
    """Whether the first lines name existing files or objects of a store."""
    lines = [line.strip() for line in re.split(r"[\n\0]", text)[:-1] or [text] if line.strip() and not line.startswith("#")][:5]
    return bool(lines) and all(_is_path(line, home) for line in lines)


def _is_path(line: str, home: str) -> bool:
    if len(line) > 4096:
        return False
    if re.match(r"[a-z0-9]{2,8}://\S+$", line):
        return line.partition("://")[0] in object_stores.STORES
    return os.path.lexists(os.path.expanduser(line)) or os.path.lexists(os.path.join(home, line))  # noqa: PTH118


def read_paths(address: str, home: str) -> Iterator[str]:
    """The paths of a list (`-`: standard input), one per line or NUL-terminated as by `find -print0`.

    Relative paths that do not exist from the working directory are based on the list's folder `home`; lines that begin with # are comments.
    Raises UserError if the list cannot be read.
    """
    with nullcontext(sys.stdin.buffer) if address == "-" else _open_expanded(address) as file:
        for line in _split_entries(file):
            path = os.fsdecode(line)
            if path.strip() and not path.startswith("#"):
                yield path if addresses.is_url(path) or os.path.lexists(path) else _resolve(home, path)


def _resolve(home: str, path: str) -> str:
    resolved = os.path.join(home, os.path.expanduser(path))  # noqa: PTH118
    return resolved if os.path.lexists(resolved) else path


def _split_entries(file: BinaryIO) -> Iterator[bytes]:
    """The entries of a list, terminated by NUL if its first block has one, else by line breaks."""
    buffer, separator = b"", b""
    while block := file.read(1 << 20):
        if not buffer and not separator:
            block = block.removeprefix(b"\xef\xbb\xbf")
        separator = separator or (b"\0" if b"\0" in block else b"\n")
        *complete, buffer = (buffer + block).split(separator)
        yield from (line.rstrip(b"\r") if separator == b"\n" else line for line in complete)
        if len(buffer) > MAX_VALUE:
            return
    if buffer:
        yield buffer


def read_records(address: str, kind: ListKind, home: str) -> Iterator[JobRecord | int]:
    """The jobs of an export or manifest; the number of each invalid line instead. Raises UserError if reading stops early."""
    with _open_expanded(address) as file:
        if kind == "slurm":
            yield from sacct.read_records(read_lines("", codecs.getreader("utf-8-sig")(file, "replace")))
            return
        for line, value in read_values(file, address):
            record = None
            if kind == "kubernetes" and kubectl.is_pod(value):
                record = kubectl.read_record(value)
            elif kind == "manifest" and isinstance(value, dict):
                record = job_manifest.read_record(value, home)
            yield line if record is None else record
