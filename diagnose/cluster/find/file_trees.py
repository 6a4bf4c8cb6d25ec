"""Folders of this machine, of a store and of an archive, looked at in the same way: one after the other, in order."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Protocol

from diagnose.cluster.find import addresses as address
from diagnose.cluster.find import object_stores
from diagnose.errors import UserError
from diagnose.record import field, record

#: What may be a config is measured: it counts only where it is small.
CONFIGS = (".yaml", ".yml", ".json", ".toml", ".sh")


#: Characters of a path in an archive; a longer one is made to cost time.
LONGEST = 4096


@record
class File:
    """A file of a folder. `path` is how its tree finds it; size and time are None where looking at it failed, or nothing says."""

    name: str
    path: str
    size: int | None = None
    changed: float | None = None  # seconds since 1970


@record
class Listing:
    """What lies directly in a folder, by name. `refused` are its files that are not looked at, with the reason."""

    folders: tuple[str, ...]
    files: tuple[File, ...]
    refused: tuple[tuple[str, UserError], ...] = ()


class Tree(Protocol):
    """Where folders are. A path is what the tree itself understands; `address` is what a Job holds."""

    def list(self, folder: str) -> Listing:
        """Raises UserError where the folder cannot be read."""

    def inside(self, folder: str, name: str) -> str:
        """The path of what lies in a folder."""

    def address(self, path: str) -> str: ...

    def shown(self, path: str) -> str:
        """The path for people, as they gave its beginning."""


def natural(names: list[str]) -> list[str]:
    """Names as people sort them: rank_2 before rank_10."""
    from diagnose.scan import job_folder as folder

    return sorted(names, key=folder.natural_key)


class Local:
    """A folder of this machine. `asked`: the top as it was given, `measure`: whether sizes and times are wanted (a call per file)."""

    def __init__(self, top: str, measure: bool = False) -> None:
        self.top, self._measure = top, measure
        self._absolute = os.path.abspath(top)  # noqa: PTH100
        self._home = os.path.realpath(top)

    def list(self, folder: str) -> Listing:
        folders: list[str] = []
        files: dict[str, File] = {}
        refused: list[tuple[str, UserError]] = []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_symlink():
                        refused += self._link(entry)
                    elif entry.is_dir():
                        folders.append(entry.name)
                    elif entry.is_file():  # no pipe, socket or device: those may never end
                        files[entry.name] = self._file(entry)
        except OSError as error:
            raise unreadable(address.shown(folder), error) from error
        return Listing(tuple(natural(folders)), tuple(files[name] for name in natural(list(files))), tuple(sorted(refused, key=_first)))

    def file(self, path: str) -> File:
        """A file that was named itself, wherever a link leads. Raises UserError where there is none."""
        try:
            about = os.stat(path)  # noqa: PTH116
        except (OSError, ValueError) as error:
            raise unreadable(address.shown(path), error) from error
        return File(os.path.basename(path), path, about.st_size, about.st_mtime)  # noqa: PTH119

    def _file(self, entry: os.DirEntry[str]) -> File:
        if not self._measure and not entry.name.endswith(CONFIGS):
            return File(entry.name, entry.path)
        try:
            about = entry.stat()
        except OSError:  # it is there and cannot be looked at: said when it is opened
            return File(entry.name, entry.path)
        return File(entry.name, entry.path, about.st_size, about.st_mtime)

    def _link(self, entry: os.DirEntry[str]) -> Iterator[tuple[str, UserError]]:
        """A link to a file of this tree is met as that file; one that leads out of it, or nowhere, is said."""
        try:
            if entry.is_dir():
                return
            target = os.path.realpath(entry.path, strict=True)
        except FileNotFoundError:
            yield entry.path, object_stores.trouble("vanished", address.shown(entry.path), "check_path")
            return
        except OSError as error:
            yield entry.path, unreadable(address.shown(entry.path), error)
            return
        if not target.startswith(self._home.rstrip(os.sep) + os.sep):
            yield entry.path, object_stores.trouble("link_outside", address.shown(entry.path), "name_target")

    def inside(self, folder: str, name: str) -> str:
        return os.path.join(folder, name)  # noqa: PTH118

    def address(self, path: str) -> str:
        return address.written(path)

    def shown(self, path: str) -> str:
        return address.shown(path)


def _first(pair: tuple[str, UserError]) -> str:
    return pair[0]


def unreadable(where: str, error: OSError | ValueError) -> UserError:
    if isinstance(error, FileNotFoundError):
        return object_stores.trouble("vanished", where, "check_path")
    return object_stores.trouble("unreadable", where, "check_permissions", why=getattr(error, "strerror", None) or str(error))


class Stored:
    """A prefix of an object store. Raises UserError where it cannot be reached."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.store, self.top = object_stores.reached(url)
        self.store.invalidate_cache()  # what it was listed as in an earlier round is not what it holds now

    def list(self, folder: str) -> Listing:
        try:
            entries: list[dict[str, Any]] = self.store.ls(folder, detail=True)
        except FileNotFoundError as error:
            raise object_stores.trouble("vanished", object_stores.address(self.url, folder), "check_url") from error
        except Exception as error:  # each store has errors of its own
            raise object_stores.failed(object_stores.address(self.url, folder), error) from error
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
                files[name] = File(name, path, entry.get("size"), object_stores.seconds(entry))
        return Listing(tuple(natural(folders)), tuple(files[name] for name in natural(list(files))))

    def inside(self, folder: str, name: str) -> str:
        return f"{folder.rstrip('/')}/{name}"

    def address(self, path: str) -> str:
        return object_stores.address(self.url, path)

    def shown(self, path: str) -> str:
        return object_stores.address(self.url, path)


@record(frozen=False)
class _Folder:
    folders: dict[str, None] = field(default_factory=dict)
    files: dict[str, File] = field(default_factory=dict)


class Members:
    """The files of an archive, by their places in it."""

    def __init__(self, archive: str, shown: str, places: list[str]) -> None:
        self._archive, self._shown = archive, shown
        self._folders: dict[str, _Folder] = {"": _Folder()}
        for place in places:
            if len(place) > LONGEST:
                continue
            parts = [part for part in place.split("/") if part not in ("", ".")]
            at = ""
            for part in parts[:-1]:
                self._folders[at].folders[part] = None
                at = f"{at}/{part}" if at else part
                self._folders.setdefault(at, _Folder())
            if parts:
                self._folders[at].files.setdefault(parts[-1], File(parts[-1], place))

    def list(self, folder: str) -> Listing:
        of = self._folders[folder]
        return Listing(tuple(natural(list(of.folders))), tuple(of.files[name] for name in natural(list(of.files))))

    def inside(self, folder: str, name: str) -> str:
        return f"{folder}/{name}" if folder else name

    def address(self, path: str) -> str:
        return f"{self._archive}{address.INSIDE}{path}" if path else self._archive

    def shown(self, path: str) -> str:
        return f"{self._shown}{address.INSIDE}{path}" if path else self._shown
