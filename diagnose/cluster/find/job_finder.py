"""The jobs that some words of a command line name: folders, logs, patterns, lists, exports of schedulers, archives, stores."""

from __future__ import annotations

import os
import re
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from itertools import groupby

from diagnose.cluster.find import addresses, job_folders, job_opening, list_files, object_stores
from diagnose.cluster.find.file_trees import File, Local, Members, Stored, Tree
from diagnose.cluster.find.job import About, Job, Unfound
from diagnose.cluster.find.job_folders import Archive, Group
from diagnose.cluster.find.job_index import Listed, Shelf
from diagnose.cluster.find.log_joining import LISTS, Say, joined
from diagnose.cluster.find.path_words import called, home_of, refused, sorted_out, where_of
from diagnose.errors import UserError
from diagnose.phrases import Text, phrase
from diagnose.record import field, record, replace
from diagnose.scan.job_folder import kind_of

#: Folders whose configs are kept in mind while a list is read.
SEEN = 4096


def find(
    paths: Sequence[str], pattern: str | None = None, since: float | None = None, say: Say = lambda _: None
) -> Iterator[Job | Unfound]:
    """The jobs, as they are found; memory does not grow with their number. Of what cannot be had an Unfound says why.

    `pattern`: a regular expression; logs in whose paths it finds the same (its group `job`, else its first group, else all that it
    matches) are one job, others are jobs of their own. `since`: only jobs that ended then or later, in seconds since 1970 (by their
    scheduler, else by when their logs were last written). `say` is told how jobs are told apart, and what was passed over.
    Raises UserError for a pattern that is none, and where there is no room for the records of exports.
    """
    given = sorted_out(paths)
    is_listed = any(kind in LISTS for kind, _ in given)
    finder = _Finder(None if pattern is None else job_folders.compiled(pattern), None if is_listed else since)
    if any(kind == "folder" for kind, _ in given):
        say(phrase("finding.how") if pattern is None else phrase("finding.by_pattern", pattern=pattern))
    try:
        yield from joined(given, finder.logs, since, say) if is_listed else finder.logs(given)
    except sqlite3.Error as error:
        raise object_stores.trouble("shelf_failed", tempfile.gettempdir(), "make_room", why=error) from error


@record
class _Finder:
    """How jobs are told apart, and which of them are wanted."""

    pattern: re.Pattern[str] | None
    since: float | None
    _seen: dict[str, tuple[File, ...]] = field(default_factory=dict)

    # -- logs

    def logs(self, given: Sequence[tuple[str, str]]) -> Iterator[Job | Unfound]:
        """The jobs of folders and logs, whatever a scheduler says."""
        if self.pattern is not None:
            yield from self._by_pattern(given, self.pattern)
            return
        named: list[str] = []
        for kind, path in given:
            if kind == "log":
                named.append(path)
                continue
            yield from self._named(iter(named))
            named = []
            try:
                yield from self._given(kind, path)
            except (UserError, OSError) as trouble:
                yield refused(path, trouble)
        yield from self._named(iter(named))

    def _given(self, kind: str, path: str) -> Iterator[Job | Unfound]:
        if kind == "paths":
            path = path.removeprefix("@") if not os.path.lexists(path) else path
            yield from self._listed(list_files.paths(path if path == "-" else where_of(path), home_of(path)))
        elif kind == "store":
            yield from self._stored(path)
        elif kind == "nothing":
            raise object_stores.trouble("no_match", path, "check_path")
        else:
            yield from self._below(Local(path, measure=self.since is not None), path)

    def _listed(self, paths: Iterator[str]) -> Iterator[Job | Unfound]:
        """Paths of a list, in its order: logs of one folder that follow each other are looked at together."""
        for is_log, members in groupby(paths, key=lambda path: not addresses.is_stored(path) and not os.path.isdir(path)):  # noqa: PTH112
            if is_log:
                yield from self._named(members)
                continue
            for path in members:
                try:
                    yield from self._given("store" if addresses.is_stored(path) else "folder", path)
                except UserError as trouble:
                    yield refused(path, trouble)

    def _named(self, paths: Iterator[str]) -> Iterator[Job | Unfound]:
        """Logs that were named themselves are jobs of their own, but for ranks and streams of one name; with the configs beside them."""
        for home, members in groupby(paths, key=os.path.dirname):
            tree = Local(home or ".", measure=self.since is not None)
            files: list[File] = []
            for path in members:
                try:
                    files.append(tree.file(path))
                except UserError as trouble:
                    yield refused(path, trouble)
            packed = [file for file in files if kind_of(file.name) == "archive"]
            yield from self._made(tree, (Archive(file.path) for file in packed))
            logs = [file for file in files if file not in packed]
            if logs:
                configs = [config for config in self._beside(tree, home or ".") if config.name not in {log.name for log in logs}]
                yield from self._made(tree, job_folders.groups(tree, home, logs, tuple(configs), together=False))

    def _beside(self, tree: Tree, home: str) -> tuple[File, ...]:
        """The configs of a folder; none where it cannot be looked at. Lists name the same folders again and again."""
        if home not in self._seen:
            if len(self._seen) >= SEEN:
                self._seen.clear()
            try:
                self._seen[home] = job_folders.beside(tree.list(home))
            except UserError:
                self._seen[home] = ()
        return self._seen[home]

    def _stored(self, url: str) -> Iterator[Job | Unfound]:
        """An object, those that match a pattern, or all below a prefix."""
        tree = Stored(url)
        try:
            if any(sign in tree.top for sign in "*?["):
                paths = sorted(tree.store.glob(tree.top))
            else:
                paths = [tree.top]
            for path in paths:
                if not tree.store.isfile(path):
                    yield from self._below(tree, path)
                    continue
                above, _, name = path.rpartition("/")
                listing = tree.list(above)
                own = next((file for file in listing.files if file.name == name), File(name, path))
                if kind_of(name) == "archive":
                    yield from self._made(tree, iter([Archive(path)]))
                else:
                    yield from self._made(tree, job_folders.groups(tree, above, [own], job_folders.beside(listing), together=False))
        except UserError:
            raise
        except Exception as error:  # each store has errors of its own
            raise object_stores.failed(url, error) from error
        if not paths:
            raise object_stores.trouble("no_match", url, "check_url")

    def _below(self, tree: Tree, top: str) -> Iterator[Job | Unfound]:
        yield from self._made(tree, job_folders.below(tree, tree.top if isinstance(tree, Stored) else top))

    def _made(
        self, tree: Tree, found: Iterator[Group | Archive | Unfound] | Iterator[Group] | Iterator[Archive] | Iterator[Group | Archive]
    ) -> Iterator[Job | Unfound]:
        """Jobs of what a tree holds; archives are opened to see whether they are many."""
        for one in found:
            if isinstance(one, Unfound):
                yield one
            elif isinstance(one, Archive):
                yield from self._of_archive(tree, one.path)
            elif self._is_wanted(one.logs):
                yield made(tree, one)

    def _is_wanted(self, logs: Sequence[File]) -> bool:
        times = [file.changed for file in logs if file.changed is not None]
        return self.since is None or not times or max(times) >= self.since

    # -- archives

    def _of_archive(self, tree: Tree, path: str) -> Iterator[Job | Unfound]:
        """The jobs of an archive: itself, unless its folders are those of many."""
        where = tree.address(path)
        own = Job(where, (where,), name=called(tree.shown(path), where))
        try:
            pieces = list(job_opening.places(where))
        except UserError:
            yield own  # what is wrong with it is said by who reads it
            return
        members = Members(where, tree.shown(path), [piece for piece in pieces if isinstance(piece, str)])
        found = list(job_folders.below(members, ""))
        if not are_many([one for one in found if isinstance(one, Group)]):
            yield own
            return
        for one in found:
            if isinstance(one, Archive):  # one that lies in it is a job; whether it is many is not looked at
                inner = members.address(one.path)
                yield Job(inner, (inner,), name=called(members.shown(one.path), inner))
            else:
                yield one if isinstance(one, Unfound) else made(members, one)
        for piece in pieces:
            if isinstance(piece, UserError):
                yield Unfound(own, "broken_archive", Text(piece.to("en"), piece.to("zh")))

    # -- as a person tells them apart

    def _by_pattern(self, given: Sequence[tuple[str, str]], pattern: re.Pattern[str]) -> Iterator[Job | Unfound]:
        with Shelf() as shelf:
            for kind, path in given:
                try:
                    for one in self._loose(kind, path, pattern):
                        if isinstance(one, Unfound):
                            yield one
                            continue
                        id, job = one
                        shelf.add(Listed(id, About(), job.logs, configs=job.configs, said=job.name))
                except UserError as trouble:
                    yield refused(path, trouble)
            shelf.ready()
            for listed, _, _ in shelf.jobs():
                configs = listed.configs if len(listed.configs) <= job_folders.MOST else ()
                yield Job(listed.id, listed.logs, configs, name=listed.said)

    def _loose(self, kind: str, path: str, pattern: re.Pattern[str]) -> Iterator[tuple[str, Job] | Unfound]:
        """Every log for itself, with the id that the pattern gives its job."""
        if kind in ("folder", "store"):
            tree: Tree = Local(path, measure=self.since is not None) if kind == "folder" else Stored(path)
            top = path if kind == "folder" else tree.top  # type: ignore[attr-defined]
            for one in job_folders.by_pattern(tree, top, pattern):
                if isinstance(one, Unfound):
                    yield one
                elif isinstance(one, Archive):
                    for job in self._of_archive(tree, one.path):
                        yield job if isinstance(job, Unfound) else (job.id, job)
                elif self._is_wanted([one[1]]):
                    key, file, configs = one
                    where = tree.address(file.path)
                    id = f"{tree.address(top).rstrip('/')}/{key}" if key else where
                    yield id, Job(id, (where,), tuple(tree.address(each.path) for each in configs), name=key or tree.shown(file.path))
            return
        for found in replace(self, pattern=None).logs([(kind, path)]):
            if isinstance(found, Unfound):
                yield found
                continue
            for log in found.logs:
                key = job_folders.found_by(pattern, log)
                yield key or log, Job(key or log, (log,), found.configs, name=key)


def made(tree: Tree, group: Group) -> Job:
    """The job of a group."""
    where, shown = tree.address(group.called), tree.shown(group.called)
    return Job(
        where,
        tuple(tree.address(log.path) for log in group.logs),
        tuple(tree.address(one.path) for one in group.configs),
        name=called(shown, where),
    )


def are_many(groups: Sequence[Group]) -> bool:
    """Whether the logs of an archive are those of many jobs: a log of the same name (but for a job's number) in several of its
    folders, or several folders with a config of their own, or several numbers of jobs."""
    names: set[str] = set()
    with_configs = 0
    for group in groups:
        own = {re.sub(r"\d{3,}", "#", job_folders.stem(log.name)) for log in group.logs}
        if own & names:
            return True
        names |= own
        with_configs += bool(group.configs)
    return with_configs > 1
