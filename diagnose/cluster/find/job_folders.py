"""Groups the logs below a folder into jobs, with the configs beside them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from diagnose import rule_files
from diagnose.cluster.cluster_errors import error_text, finding_error
from diagnose.cluster.find.file_trees import File, Listing, Tree
from diagnose.cluster.find.job import Job, UnreadableJob
from diagnose.errors import UserError
from diagnose.scan import job_folder
from diagnose.scan.job_folder import kind_of, strip_suffixes

#: More logs of different names, or configs, than one job leaves behind.
MAX_LOGS = job_folder.CONFIGS

#: What differs between the names of one job's logs: the rank, the node, the stream.
RANK_PART = re.compile(
    r"(?:[._-]|^)(?:(?:local_?)?rank|node|worker|proc|gpu)[._-]?\d+|(?:[._-]|^)(?:std)?(?:out|err)(?:or)?(?=[._-]|$)", re.IGNORECASE
)

#: The streams of PBS and SGE: NAME.o123, NAME.e123.
STREAM = re.compile(r"\.[oe](\d{3,12}(?:\.\d{1,6})?)$")

#: Folders of logs in a job's own folder, which holds the configs.
LOG_FOLDER = re.compile(r"logs?|outputs?", re.IGNORECASE)


@dataclass(slots=True)
class Archive:
    """An archive below a folder, not opened yet."""

    path: str


@dataclass(slots=True)
class Group:
    """The logs and configs of one job. `path`: the folder or log that names the job."""

    path: str
    logs: tuple[File, ...]
    configs: tuple[File, ...] = ()


@dataclass(slots=True)
class _Folder:
    """A folder to search, with the configs of its parent, which apply if it has none."""

    path: str
    inherited: tuple[File, ...] = ()


def walk(tree: Tree, top: str) -> Iterator[Group | Archive | UnreadableJob]:
    """The jobs below a folder, depth first by name; unreadable places are yielded where they occur."""
    stack = [_Folder(top)]
    while stack:
        folder = stack.pop()
        try:
            listing = tree.list(folder.path)
        except UserError as error:
            yield unreadable(tree, folder.path, error)
            continue
        yield from (unreadable(tree, path, error) for path, error in listing.errors)
        subfolders = [name for name in listing.folders if kind_of(f"{name}/a.log") != "none"]
        if _is_job_folder(tree.display(folder.path)):
            yield from _single_job(tree, folder, folder.path, listing.folders, listing.files)
            continue
        parts = [name for name in subfolders if _is_part(name)]
        configs = config_files(listing.files)
        if "wandb" in subfolders and _count_jobs(tree, folder, listing.files, configs) == 1:
            parts.append("wandb")
        if parts:
            files, errors = _collect(tree, folder.path, parts)
            yield from errors
            yield from _job_of_parts(tree, folder, listing, files, configs)
        else:
            yield from _jobs_of_logs(tree, folder, listing.files, configs)
        pods = _pods_by_job(name for name in subfolders if name not in parts)
        for job, names in pods.items():
            yield from _single_job(tree, _Folder(tree.join(folder.path, job), configs), folder.path, names)
        others = [name for name in subfolders if name not in parts and not any(name in names for names in pods.values())]
        is_only_content = len(others) == 1 and not any(kind_of(file.name) == "log" for file in listing.files)
        stack += [
            _Folder(tree.join(folder.path, name), configs if is_only_content or LOG_FOLDER.fullmatch(name) else ())
            for name in reversed(others)
        ]


def unreadable(tree: Tree, path: str, error: UserError) -> UnreadableJob:
    """The error for a file or folder of a tree that cannot be accessed."""
    address = tree.address(path)
    return UnreadableJob(Job(address, (address,), name=tree.display(path)), error.key, error_text(error))


# -- one folder


def _count_jobs(tree: Tree, folder: _Folder, files: Sequence[File], configs: tuple[File, ...]) -> int:
    return sum(isinstance(item, Group) for item in _jobs_of_logs(tree, folder, files, configs))


def _jobs_of_logs(tree: Tree, folder: _Folder, files: Sequence[File], configs: tuple[File, ...]) -> Iterator[Group | Archive]:
    """The jobs of the logs directly in a folder."""
    kinds = {file.name: kind_of(file.name) for file in files}
    yield from (Archive(file.path) for file in files if kinds[file.name] == "archive")
    logs = [file for file in files if kinds[file.name] == "log"]
    yield from group_logs(tree, folder.path, logs, configs or folder.inherited, together=bool(configs))


def group_logs(tree: Tree, folder: str, logs: Sequence[File], configs: tuple[File, ...], together: bool = True) -> Iterator[Group]:
    """Group the logs of one folder: those with a scheduler's number by that; the rest as one job if a config lies beside them (unless
    `together` is False), else by names that differ only in rank, node or stream."""
    numbered = _numbered_names([file.name for file in logs])
    stems = {file.name: log_stem(file.name) for file in logs}
    plain = {stems[name] for name in stems if name not in numbered}
    as_one = together and bool(configs) and len(plain) <= MAX_LOGS
    groups: dict[str, list[File]] = {}
    for file in logs:
        key = stems[file.name] if file.name in numbered or not as_one else ""
        groups.setdefault(key, []).append(file)
    for key, members in groups.items():
        is_whole_folder = key in ("", "log") and len(groups) == 1 and (as_one or len(members) > 1)
        name = members[0].name if len(members) == 1 and members[0].name not in numbered else key or "log"
        yield Group(folder if is_whole_folder else tree.join(folder, name), tuple(members), configs)


def log_stem(name: str) -> str:
    """A log's name without suffix, rank, node and stream; equal for the logs of one job."""
    name = strip_suffixes(name)
    stream = STREAM.search(name)
    if stream:
        return name[: stream.start()] + "." + stream[1]
    return RANK_PART.sub("", name.rpartition(".")[0] if not name.endswith((".out", ".err")) else name) or "log"


def _numbered_names(names: Sequence[str]) -> set[str]:
    """The names that end in a scheduler's job number.

    Some patterns recognise a job number by its form (`job`); where any number might be meant (`alike`), the names must differ in nothing
    else.
    """
    numbered: set[str] = set()
    candidates: dict[str, dict[str, list[str]]] = {}
    for name in names:
        plain = strip_suffixes(name)
        for pattern in _patterns("number"):
            match = pattern.search(plain)
            if match is None:
                continue
            if "job" in match.re.groupindex:
                numbered.add(name)
            else:
                prefix = RANK_PART.sub("", plain[: match.start()])
                candidates.setdefault(prefix, {}).setdefault(match["alike"], []).append(name)
            break
    for numbers in candidates.values():
        if len(numbers) > 1:
            numbered.update(name for members in numbers.values() for name in members)
    return numbered


def job_number(name: str) -> str:
    """The scheduler's job number in a log's name; empty if there is none."""
    plain = strip_suffixes(name)
    match = next((match for pattern in _patterns("number") if (match := pattern.search(plain))), None)
    return (match.groupdict().get("job") or match.groupdict().get("alike") or "") if match else ""


def config_files(files: Sequence[File]) -> tuple[File, ...]:
    """The files in a folder that may be configs; none if there are too many for one job."""
    configs = [file for file in files if kind_of(file.name) == "config" and strip_suffixes(file.name) == file.name]
    configs = [file for file in configs if file.size is None or file.size <= job_folder.CONFIG]
    return tuple(configs) if len(configs) <= job_folder.CONFIGS else ()


# -- folders that belong together


def _job_of_parts(
    tree: Tree, folder: _Folder, listing: Listing, parts: Sequence[tuple[str, File]], configs: tuple[File, ...]
) -> Iterator[Group | Archive]:
    """A folder with subfolders for ranks, nodes or attempts as one job, apart from logs with another job's number."""
    numbered = _numbered_names([file.name for file in listing.files if kind_of(file.name) == "log"])
    separate = [file for file in listing.files if file.name in numbered or kind_of(file.name) == "archive"]
    yield from _jobs_of_logs(tree, folder, separate, configs)
    own = [file for file in listing.files if kind_of(file.name) == "log" and file.name not in numbered]
    logs = [*own, *(file for place, file in parts if kind_of(place) in ("log", "metadata"))]
    part_configs = tuple(file for place, file in parts if kind_of(place) == "config")
    if any(kind_of(file.name) == "log" for file in logs):
        all_configs = (*(configs or folder.inherited), *part_configs)
        yield Group(folder.path, tuple(logs), all_configs if len(all_configs) <= job_folder.CONFIGS else configs)


def _single_job(
    tree: Tree, job: _Folder, top: str, names: Sequence[str], own_files: Sequence[File] = ()
) -> Iterator[Group | UnreadableJob]:
    """One job of everything in some folders of `top` and of its own files."""
    deeper, errors = _collect(tree, top, names)
    yield from errors
    files = [*((file.name, file) for file in own_files), *deeper]
    logs = tuple(file for place, file in files if kind_of(place) in ("log", "metadata"))
    configs = tuple(file for place, file in files if kind_of(place) == "config")
    if any(kind_of(place) == "log" for place, _ in files):
        yield Group(job.path, logs, (configs if len(configs) <= job_folder.CONFIGS else ()) or job.inherited)


def _pods_by_job(names: Iterable[str]) -> dict[str, list[str]]:
    """Folders of pods grouped by job, if an operator numbered the pods."""
    pods: dict[str, list[str]] = {}
    for name in names:
        match = next((match for pattern in _patterns("pods") if (match := pattern.search(name))), None)
        if match:
            pods.setdefault(match["job"], []).append(name)
    return pods


def _collect(tree: Tree, top: str, names: Sequence[str]) -> tuple[list[tuple[str, File]], list[UnreadableJob]]:
    """The files below some folders of `top` by path, bounded, without those of earlier runs."""
    files: list[tuple[str, File]] = []
    errors: list[UnreadableJob] = []
    stack = [(name, tree.join(top, name)) for name in reversed(names)]
    while stack and len(files) <= job_folder.FILES:
        place, path = stack.pop()
        if place.count("/") >= job_folder.DEEP:
            continue
        try:
            listing = tree.list(path)
        except UserError as error:
            errors.append(unreadable(tree, path, error))
            continue
        files += [(f"{place}/{file.name}", file) for file in listing.files]
        stack += [(f"{place}/{name}", tree.join(path, name)) for name in reversed(listing.folders)]
    outdated = job_folder.earlier_runs([place for place, _ in files])
    return [(place, file) for place, file in files if place not in outdated and kind_of(place) != "none"], errors


def _is_part(name: str) -> bool:
    return any(pattern.fullmatch(name) for pattern in _patterns("part"))


def _is_job_folder(path: str) -> bool:
    return any(pattern.search(path[-400:].replace("\\", "/")) for pattern in _patterns("whole"))


@cache
def _patterns(kind: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(text) for text in rule_files.table("layouts")[kind])


# -- by a pattern of the user's


def walk_logs(tree: Tree, top: str, pattern: re.Pattern[str]) -> Iterator[tuple[str, File, tuple[File, ...]] | Archive | UnreadableJob]:
    """Every log below a folder with the key that the pattern extracts from its path, and the configs beside it."""
    stack = [top]
    while stack:
        folder = stack.pop()
        try:
            listing = tree.list(folder)
        except UserError as error:
            yield unreadable(tree, folder, error)
            continue
        yield from (unreadable(tree, path, error) for path, error in listing.errors)
        configs = config_files(listing.files)
        for file in listing.files:
            kind = kind_of(file.name)
            if kind == "archive":
                yield Archive(file.path)
            elif kind == "log":
                yield match_key(pattern, tree.display(file.path)), file, configs
        stack += [tree.join(folder, name) for name in reversed(listing.folders) if kind_of(f"{name}/a.log") != "none"]


def match_key(pattern: re.Pattern[str], path: str) -> str:
    """The key in a path: the pattern's group `job`, else its first group, else the whole match; empty without a match."""
    match = pattern.search(path)
    if match is None:
        return ""
    return (match["job"] if "job" in pattern.groupindex else match[1] if pattern.groups else match[0]) or ""


def compile_pattern(text: str) -> re.Pattern[str]:
    """The compiled pattern. Raises UserError if it is no regular expression."""
    try:
        return re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise finding_error("bad_pattern", text, "write_pattern", why=str(error)) from error
