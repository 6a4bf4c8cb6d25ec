"""One interface to local folders, object stores and archives, listed in natural order."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from diagnose.cluster.cluster_errors import finding_error
from diagnose.cluster.find import addresses, object_stores
from diagnose.errors import UserError
from diagnose.scan import job_folder

#: Suffixes of files that are always measured: a config counts only where it is small.
CONFIG_SUFFIXES = (".yaml", ".yml", ".json", ".toml", ".sh")

#: Characters of a path in an archive; a longer one is made to cost time.
MAX_PATH = 4096


@dataclass(slots=True)
class File:
    """A file of a folder. `path` as its tree names it; size and time None if unknown."""

    name: str
    path: str
    size: int | None = None
    modified: float | None = None  # seconds since 1970


@dataclass(slots=True)
class Listing:
    """The content of a folder by name. `errors`: files that cannot be accessed, by path."""

    folders: tuple[str, ...]
    files: tuple[File, ...]
    errors: tuple[tuple[str, UserError], ...] = ()


class Tree(Protocol):
    """A tree of folders and files. Each kind has paths of its own; `address` converts one to the form that a Job stores."""

    def list(self, folder: str) -> Listing:
        """The content of a folder. Raises UserError if it cannot be read."""

    def join(self, folder: str, name: str) -> str:
        """The path of an entry of a folder."""

    def address(self, path: str) -> str: ...

    def display(self, path: str) -> str:
        """The path for people, beginning as they typed it."""


def natural_order(names: list[str]) -> list[str]:
    """Sort key by which rank_2 precedes rank_10."""
    return sorted(names, key=job_folder.natural_key)


class LocalTree:
    """A local folder. `top` as typed; with `measure` files have sizes and times, which costs a system call each."""

    def __init__(self, top: str, measure: bool = False) -> None:
        self.top, self._measure = top, measure
        self._real = os.path.realpath(top)

    def list(self, folder: str) -> Listing:
        folders: list[str] = []
        files: dict[str, File] = {}
        errors: list[tuple[str, UserError]] = []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_symlink():
                        errors += self._link_errors(entry)
                    elif entry.is_dir():
                        folders.append(entry.name)
                    elif entry.is_file():  # no pipe, socket or device: those may never end
                        files[entry.name] = self._file(entry)
        except OSError as error:
            raise read_error(addresses.display_path(folder), error) from error
        names = natural_order(list(files))
        return Listing(tuple(natural_order(folders)), tuple(files[name] for name in names), tuple(sorted(errors, key=lambda pair: pair[0])))

    def file(self, path: str) -> File:
        """A file named by the user, following links. Raises UserError if it does not exist."""
        try:
            status = os.stat(path)  # noqa: PTH116
        except (OSError, ValueError) as error:
            raise read_error(addresses.display_path(path), error) from error
        return File(os.path.basename(path), path, status.st_size, status.st_mtime)  # noqa: PTH119

    def _file(self, entry: os.DirEntry[str]) -> File:
        if not self._measure and not entry.name.endswith(CONFIG_SUFFIXES):
            return File(entry.name, entry.path)
        try:
            status = entry.stat()
        except OSError:  # the error is reported when the file is opened
            return File(entry.name, entry.path)
        return File(entry.name, entry.path, status.st_size, status.st_mtime)

    def _link_errors(self, entry: os.DirEntry[str]) -> Iterator[tuple[str, UserError]]:
        """Errors for links, which are not followed; a link to a file inside the tree is no error, since that file is listed itself."""
        try:
            if entry.is_dir():
                return
            target = os.path.realpath(entry.path, strict=True)
        except FileNotFoundError:
            yield entry.path, finding_error("vanished", addresses.display_path(entry.path), "check_path")
            return
        except OSError as error:
            yield entry.path, read_error(addresses.display_path(entry.path), error)
            return
        if not target.startswith(self._real.rstrip(os.sep) + os.sep):
            yield entry.path, finding_error("link_outside", addresses.display_path(entry.path), "name_target")

    def join(self, folder: str, name: str) -> str:
        return os.path.join(folder, name)  # noqa: PTH118

    def address(self, path: str) -> str:
        return addresses.to_address(path)

    def display(self, path: str) -> str:
        return addresses.display_path(path)


def read_error(path: str, error: OSError | ValueError) -> UserError:
    """An operating system's error as a UserError; `path` for people."""
    if isinstance(error, FileNotFoundError):
        return finding_error("vanished", path, "check_path")
    return finding_error("unreadable", path, "check_permissions", why=getattr(error, "strerror", None) or str(error))


class StoreTree:
    """A prefix of an object store. Raises UserError if it cannot be reached."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.store, self.top = object_stores.connect(url)
        self.store.invalidate_cache()  # a listing of an earlier round may be out of date

    def list(self, folder: str) -> Listing:
        try:
            entries: list[dict[str, Any]] = self.store.ls(folder, detail=True)
        except FileNotFoundError as error:
            raise finding_error("vanished", self.address(folder), "check_url") from error
        except Exception as error:  # each store has errors of its own
            raise object_stores.store_error(self.address(folder), error) from error
        folders: list[str] = []
        files: dict[str, File] = {}
        for entry in entries:
            path = str(entry["name"]).rstrip("/")
            name = path.rpartition("/")[2]
            if path.strip("/") == folder.strip("/") or not name:
                continue  # the marker of the folder itself
            if entry.get("type") == "directory":
                folders.append(name)
            else:
                files[name] = File(name, path, entry.get("size"), object_stores.modified_time(entry))
        return Listing(tuple(natural_order(folders)), tuple(files[name] for name in natural_order(list(files))))

    def join(self, folder: str, name: str) -> str:
        return f"{folder.rstrip('/')}/{name}"

    def address(self, path: str) -> str:
        return object_stores.sibling_url(self.url, path)

    def display(self, path: str) -> str:
        return self.address(path)


@dataclass(slots=True)
class _Folder:
    folders: dict[str, None] = field(default_factory=dict)
    files: dict[str, File] = field(default_factory=dict)


class ArchiveTree:
    """The files of an archive by their paths in it."""

    def __init__(self, archive: str, display: str, paths: list[str]) -> None:
        self._archive, self._display = archive, display
        self._folders: dict[str, _Folder] = {"": _Folder()}
        for path in paths:
            if len(path) > MAX_PATH:
                continue
            parts = [part for part in path.split("/") if part not in ("", ".")]
            folder = ""
            for part in parts[:-1]:
                self._folders[folder].folders[part] = None
                folder = f"{folder}/{part}" if folder else part
                self._folders.setdefault(folder, _Folder())
            if parts:
                self._folders[folder].files.setdefault(parts[-1], File(parts[-1], path))

    def list(self, folder: str) -> Listing:
        content = self._folders[folder]
        return Listing(
            tuple(natural_order(list(content.folders))), tuple(content.files[name] for name in natural_order(list(content.files)))
        )

    def join(self, folder: str, name: str) -> str:
        return f"{folder}/{name}" if folder else name

    def address(self, path: str) -> str:
        return f"{self._archive}{addresses.MEMBER_SEPARATOR}{path}" if path else self._archive

    def display(self, path: str) -> str:
        return f"{self._display}{addresses.MEMBER_SEPARATOR}{path}" if path else self._display
