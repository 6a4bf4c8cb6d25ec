"""Finds jobs below paths and URLs: in folders, patterns, lists, exports of schedulers, archives and object stores."""

from __future__ import annotations

import os
import re
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from diagnose.cluster.cluster_errors import error_text, finding_error
from diagnose.cluster.find import addresses, job_folders, object_stores
from diagnose.cluster.find.file_trees import ArchiveTree, File, LocalTree, StoreTree, Tree
from diagnose.cluster.find.job import About, Job, UnreadableJob
from diagnose.cluster.find.job_files import list_members
from diagnose.cluster.find.job_folders import Archive, Group
from diagnose.cluster.find.job_index import JobIndex, JobRecord
from diagnose.cluster.find.list_files import read_paths
from diagnose.cluster.find.log_joining import LIST_KINDS, Say, join_logs
from diagnose.cluster.find.path_words import PathKind, address_of, classify, folder_of, name_of, unreadable_path
from diagnose.errors import UserError
from diagnose.phrases import phrase
from diagnose.scan.job_folder import kind_of

#: Folders whose configs are remembered while a list of logs is read.
MAX_CACHED_FOLDERS = 4096


def find(
    paths: Sequence[str], pattern: str | None = None, since: float | None = None, say: Say = lambda _: None
) -> Iterator[Job | UnreadableJob]:
    """The jobs, as they are found; memory does not grow with their number.

    `pattern`: a regular expression; logs in whose paths it finds the same (its group `job`, else its first group, else the whole match)
    are one job, other logs are jobs of their own. `since`: only jobs that ended then or later, in seconds since 1970 (by their scheduler,
    else by when their logs were last written). `say` receives messages about how jobs are told apart, and what was passed over.
    Raises UserError for a pattern that is no regular expression, and where there is no disk space to index the records of exports.
    """
    pairs = classify(paths)
    has_lists = any(kind in LIST_KINDS for kind, _ in pairs)
    finder = _Finder(None if pattern is None else job_folders.compile_pattern(pattern), None if has_lists else since)
    if any(kind == "folder" for kind, _ in pairs):
        say(phrase("finding.how") if pattern is None else phrase("finding.by_pattern", pattern=pattern))
    try:
        yield from join_logs(pairs, finder.find_logs, since, say) if has_lists else finder.find_logs(pairs)
    except sqlite3.Error as error:
        raise finding_error("shelf_failed", tempfile.gettempdir(), "make_room", why=error) from error


@dataclass(slots=True)
class _Finder:
    """Finds jobs with the given options for grouping and filtering."""

    pattern: re.Pattern[str] | None
    since: float | None
    _configs: dict[str, tuple[File, ...]] = field(default_factory=dict)  # by folder

    # -- logs

    def find_logs(self, paths: Sequence[tuple[PathKind, str]]) -> Iterator[Job | UnreadableJob]:
        """The jobs of folders and logs, without scheduler records."""
        if self.pattern is not None:
            yield from self._jobs_by_pattern(paths, self.pattern)
            return
        logs: list[str] = []  # that follow each other
        for kind, path in paths:
            if kind == "log":
                logs.append(path)
                continue
            yield from self._jobs_of_logs(iter(logs))
            logs = []
            try:
                yield from self._jobs_of_path(kind, path)
            except (UserError, OSError) as error:
                yield unreadable_path(path, error)
        yield from self._jobs_of_logs(iter(logs))

    def _jobs_of_path(self, kind: PathKind, path: str) -> Iterator[Job | UnreadableJob]:
        if kind == "paths":
            path = path.removeprefix("@") if not os.path.lexists(path) else path
            yield from self._jobs_of_list(read_paths(path if path == "-" else address_of(path), folder_of(path)))
        elif kind == "store":
            yield from self._jobs_of_url(path)
        elif kind == "nothing":
            raise finding_error("no_match", path, "check_path")
        else:
            yield from self._jobs_below(LocalTree(path, measure=self.since is not None), path)

    def _jobs_of_list(self, paths: Iterator[str]) -> Iterator[Job | UnreadableJob]:
        """The jobs of a list of paths, in its order; consecutive logs of one folder are grouped together."""
        for is_log, members in groupby(paths, key=lambda path: not addresses.is_url(path) and not os.path.isdir(path)):  # noqa: PTH112
            if is_log:
                yield from self._jobs_of_logs(members)
                continue
            for path in members:
                try:
                    yield from self._jobs_of_path("store" if addresses.is_url(path) else "folder", path)
                except UserError as error:
                    yield unreadable_path(path, error)

    def _jobs_of_logs(self, paths: Iterator[str]) -> Iterator[Job | UnreadableJob]:
        """Jobs of logs named individually, with the configs beside them: a job per log, but ranks and streams of one name are one job."""
        for home, members in groupby(paths, key=os.path.dirname):
            tree = LocalTree(home or ".", measure=self.since is not None)
            files: list[File] = []
            for path in members:
                try:
                    files.append(tree.file(path))
                except UserError as error:
                    yield unreadable_path(path, error)
            archives = [file for file in files if kind_of(file.name) == "archive"]
            yield from self._to_jobs(tree, (Archive(file.path) for file in archives))
            logs = [file for file in files if file not in archives]
            if logs:
                names = {log.name for log in logs}
                configs = [config for config in self._configs_of(tree, home or ".") if config.name not in names]
                yield from self._to_jobs(tree, job_folders.group_logs(tree, home, logs, tuple(configs), together=False))

    def _configs_of(self, tree: Tree, folder: str) -> tuple[File, ...]:
        """The configs in a folder, cached; empty if it cannot be listed."""
        if folder not in self._configs:
            if len(self._configs) >= MAX_CACHED_FOLDERS:
                self._configs.clear()
            try:
                self._configs[folder] = job_folders.config_files(tree.list(folder).files)
            except UserError:
                self._configs[folder] = ()
        return self._configs[folder]

    def _jobs_of_url(self, url: str) -> Iterator[Job | UnreadableJob]:
        """The jobs of an object, of a pattern, or of everything below a prefix."""
        tree = StoreTree(url)
        try:
            if any(sign in tree.top for sign in "*?["):
                paths = sorted(tree.store.glob(tree.top))
            else:
                paths = [tree.top]
            for path in paths:
                if not tree.store.isfile(path):
                    yield from self._jobs_below(tree, path)
                    continue
                folder, _, name = path.rpartition("/")
                listing = tree.list(folder)
                log = next((file for file in listing.files if file.name == name), File(name, path))
                if kind_of(name) == "archive":
                    yield from self._to_jobs(tree, iter([Archive(path)]))
                else:
                    configs = job_folders.config_files(listing.files)
                    yield from self._to_jobs(tree, job_folders.group_logs(tree, folder, [log], configs, together=False))
        except UserError:
            raise
        except Exception as error:  # each store has errors of its own
            raise object_stores.store_error(url, error) from error
        if not paths:
            raise finding_error("no_match", url, "check_url")

    def _jobs_below(self, tree: Tree, top: str) -> Iterator[Job | UnreadableJob]:
        yield from self._to_jobs(tree, job_folders.walk(tree, tree.top if isinstance(tree, StoreTree) else top))

    def _to_jobs(self, tree: Tree, items: Iterable[Group | Archive | UnreadableJob]) -> Iterator[Job | UnreadableJob]:
        """Convert groups to Jobs; archives are opened, because they may hold several."""
        for item in items:
            if isinstance(item, UnreadableJob):
                yield item
            elif isinstance(item, Archive):
                yield from self._jobs_of_archive(tree, item.path)
            elif self._is_wanted(item.logs):
                yield to_job(tree, item)

    def _is_wanted(self, logs: Sequence[File]) -> bool:
        times = [file.modified for file in logs if file.modified is not None]
        return self.since is None or not times or max(times) >= self.since

    # -- archives

    def _jobs_of_archive(self, tree: Tree, path: str) -> Iterator[Job | UnreadableJob]:
        """The archive as one job, or the jobs of its folders if it holds many."""
        address = tree.address(path)
        whole = Job(address, (address,), name=name_of(tree.display(path), address))
        try:
            members = list(list_members(address))
        except UserError:
            yield whole  # its reader reports the error
            return
        archive = ArchiveTree(address, tree.display(path), [member for member in members if isinstance(member, str)])
        items = list(job_folders.walk(archive, ""))
        if not has_many_jobs([item for item in items if isinstance(item, Group)]):
            yield whole
            return
        for item in items:
            if isinstance(item, Archive):  # an archive in an archive is one job: it is not opened
                inner = archive.address(item.path)
                yield Job(inner, (inner,), name=name_of(archive.display(item.path), inner))
            else:
                yield item if isinstance(item, UnreadableJob) else to_job(archive, item)
        for member in members:
            if isinstance(member, UserError):
                yield UnreadableJob(whole, "broken_archive", error_text(member))

    # -- by a pattern of the user's

    def _jobs_by_pattern(self, paths: Sequence[tuple[PathKind, str]], pattern: re.Pattern[str]) -> Iterator[Job | UnreadableJob]:
        with JobIndex() as index:
            for kind, path in paths:
                try:
                    for item in self._match_logs(kind, path, pattern):
                        if isinstance(item, UnreadableJob):
                            yield item
                            continue
                        id, log = item
                        index.add(JobRecord(id, About(), log.logs, configs=log.configs, name=log.name))
                except UserError as error:
                    yield unreadable_path(path, error)
            index.finish()
            for record, _, _ in index.jobs():
                configs = record.configs if len(record.configs) <= job_folders.MAX_LOGS else ()
                yield Job(record.id, record.logs, configs, name=record.name)

    def _match_logs(self, kind: PathKind, path: str, pattern: re.Pattern[str]) -> Iterator[tuple[str, Job] | UnreadableJob]:
        """Every log as a job, with the id that the pattern extracts from its path."""
        if kind in ("folder", "store"):
            tree: Tree = LocalTree(path, measure=self.since is not None) if kind == "folder" else StoreTree(path)
            top = path if kind == "folder" else tree.top  # type: ignore[attr-defined]
            for item in job_folders.walk_logs(tree, top, pattern):
                if isinstance(item, UnreadableJob):
                    yield item
                elif isinstance(item, Archive):
                    for job in self._jobs_of_archive(tree, item.path):
                        yield job if isinstance(job, UnreadableJob) else (job.id, job)
                elif self._is_wanted([item[1]]):
                    key, file, configs = item
                    address = tree.address(file.path)
                    id = f"{tree.address(top).rstrip('/')}/{key}" if key else address
                    config_addresses = tuple(tree.address(config.path) for config in configs)
                    yield id, Job(id, (address,), config_addresses, name=key or tree.display(file.path))
            return
        for named_job in replace(self, pattern=None).find_logs([(kind, path)]):
            if isinstance(named_job, UnreadableJob):
                yield named_job
                continue
            for log in named_job.logs:
                key = job_folders.match_key(pattern, log)
                yield key or log, Job(key or log, (log,), named_job.configs, name=key)


def to_job(tree: Tree, group: Group) -> Job:
    """The Job of a group, with the addresses of its files."""
    address, display = tree.address(group.path), tree.display(group.path)
    return Job(
        address,
        tuple(tree.address(log.path) for log in group.logs),
        tuple(tree.address(config.path) for config in group.configs),
        name=name_of(display, address),
    )


def has_many_jobs(groups: Sequence[Group]) -> bool:
    """Whether an archive holds the logs of many jobs: logs of one name (apart from a job number) in several folders, several folders
    with configs, or several job numbers."""
    names: set[str] = set()
    with_configs = 0
    for group in groups:
        stems = {re.sub(r"\d{3,}", "#", job_folders.log_stem(log.name)) for log in group.logs}
        if stems & names:
            return True
        names |= stems
        with_configs += bool(group.configs)
    return with_configs > 1
