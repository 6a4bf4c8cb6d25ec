"""How the files of jobs are written down: paths, addresses in stores, members of archives. Always Unicode."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote, unquote_to_bytes

#: Between an archive and its member.
INSIDE = "!/"
_FILE = "file://"


def written(path: str | os.PathLike[str]) -> str:
    """An absolute path as any file or database takes it; links in it stay as they are."""
    text = os.path.abspath(path)  # noqa: PTH100 - Path.absolute leaves ".." in
    try:
        text.encode()
    except UnicodeEncodeError:  # a name that is no UTF-8
        return _FILE + quote(os.fsencode(text))
    return text


def shown(path: str) -> str:
    """A path for people to read, whatever bytes its name has."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def is_stored(address: str) -> bool:
    """Whether an address names an object of a store."""
    return "://" in address and not address.startswith(_FILE)


def path_of(address: str) -> Path:
    """The local path that was written down."""
    return Path(os.fsdecode(unquote_to_bytes(address[len(_FILE) :]))) if address.startswith(_FILE) else Path(address)


def parted(address: str) -> tuple[str, str]:
    """The archive and the member that an address names; the member is empty where it names a file or an object itself.

    A folder may be called `a!`: a local path that exists as a whole is no member.
    """
    if INSIDE not in address:
        return address, ""
    if not is_stored(address) and os.path.lexists(path_of(address)):
        return address, ""
    at = address.find(INSIDE)
    while at >= 0:
        archive = address[:at]
        if is_stored(archive) or path_of(archive).is_file():
            return archive, address[at + len(INSIDE) :]
        at = address.find(INSIDE, at + 1)
    archive, _, member = address.partition(INSIDE)
    return archive, member


def last(address: str) -> str:
    """The name at the end of an address, as the file is called."""
    return path_of(address).name if not is_stored(address) and INSIDE not in address else address.rstrip("/").rpartition("/")[2]
