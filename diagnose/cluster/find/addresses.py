"""Addresses of files: a local path, the URL of an object in a store, or a member of an archive. Always valid Unicode."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote, unquote_to_bytes

#: Between an archive and its member.
MEMBER_SEPARATOR = "!/"
_FILE_SCHEME = "file://"


def to_address(path: str | os.PathLike[str]) -> str:
    """The address of a local path: absolute, links not resolved; a name that is no UTF-8 becomes file:// with %-escapes."""
    text = os.path.abspath(path)  # noqa: PTH100 - Path.absolute leaves ".." in
    try:
        text.encode()
    except UnicodeEncodeError:
        return _FILE_SCHEME + quote(os.fsencode(text))
    return text


def display_path(path: str) -> str:
    """A local path for people to read, whatever bytes its name has."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def is_url(address: str) -> bool:
    """Whether an address names an object of a store."""
    return "://" in address and not address.startswith(_FILE_SCHEME)


def to_path(address: str) -> Path:
    """The local path of an address; the inverse of `to_address`."""
    return Path(os.fsdecode(unquote_to_bytes(address[len(_FILE_SCHEME) :]))) if address.startswith(_FILE_SCHEME) else Path(address)


def split_member(address: str) -> tuple[str, str]:
    """The archive and the member that an address names; the member is empty where it names a file or an object itself.

    A folder may be called `a!`: a local path that exists as a whole is no member.
    """
    if MEMBER_SEPARATOR not in address:
        return address, ""
    if not is_url(address) and os.path.lexists(to_path(address)):
        return address, ""
    position = address.find(MEMBER_SEPARATOR)
    while position >= 0:
        archive = address[:position]
        if is_url(archive) or to_path(archive).is_file():
            return archive, address[position + len(MEMBER_SEPARATOR) :]
        position = address.find(MEMBER_SEPARATOR, position + 1)
    archive, _, member = address.partition(MEMBER_SEPARATOR)
    return archive, member


def base_name(address: str) -> str:
    """The file name at the end of an address."""
    return to_path(address).name if not is_url(address) and MEMBER_SEPARATOR not in address else address.rstrip("/").rpartition("/")[2]
