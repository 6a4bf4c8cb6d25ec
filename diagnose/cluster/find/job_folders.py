"""Which logs below a folder are one job, and the configs beside them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from diagnose import rule_files
from diagnose.cluster.find import object_stores
from diagnose.cluster.find.file_trees import File, Listing, Tree
from diagnose.cluster.find.job import Job, Unfound
from diagnose.errors import UserError
from diagnose.phrases import Text
from diagnose.record import record
from diagnose.scan import job_folder
from diagnose.scan.job_folder import kind_of, strip_suffixes

#: More differently named logs than this are not what one job leaves behind (as with configs).
MOST = job_folder.CONFIGS

#: What differs between the logs of one job: the rank, the node, the stream.
PART = re.compile(
    r"(?:[._-]|^)(?:(?:local_?)?rank|node|worker|proc|gpu)[._-]?\d+|(?:[._-]|^)(?:std)?(?:out|err)(?:or)?(?=[._-]|$)", re.IGNORECASE
)

#: The streams of PBS and SGE: NAME.o123, NAME.e123.
STREAM = re.compile(r"\.[oe](\d{3,12}(?:\.\d{1,6})?)$")

#: Folders of logs in a job's own folder, where the configs are.
BELOW = re.compile(r"logs?|outputs?", re.IGNORECASE)


@record
class Archive:
    """An archive met on the way: which jobs it holds is seen when it is opened."""

    path: str


@record
class Group:
    """Logs of one job, as their tree has them. `called`: the path of what they have in common."""

    called: str
    logs: tuple[File, ...]
    configs: tuple[File, ...] = ()


@record
class _At:
    """A folder to be looked at, and the configs of the folder above, which count where it has none."""

    path: str
    inherited: tuple[File, ...] = ()


def below(tree: Tree, top: str) -> Iterator[Group | Archive | Unfound]:
    """The jobs below a folder, folder after folder in order of their names; what cannot be looked at comes as it is met."""
    waiting = [_At(top)]
    while waiting:
        at = waiting.pop()
        try:
            listing = tree.list(at.path)
        except UserError as trouble:
            yield unfound(tree, at.path, trouble)
            continue
        yield from (unfound(tree, path, trouble) for path, trouble in listing.refused)
        folders = [name for name in listing.folders if kind_of(f"{name}/a.log") != "none"]
        if _is_whole(tree.shown(at.path)):
            yield from _whole(tree, at, at.path, listing.folders, listing.files)
            continue
        parts = [name for name in folders if _is_part(name)]
        configs = _configs(listing.files)
        if "wandb" in folders and len([one for one in _apart(tree, at, listing.files, configs) if isinstance(one, Group)]) == 1:
            parts.append("wandb")
        if parts:
            files, refused = _collected(tree, at.path, parts)
            yield from refused
            yield from _together(tree, at, listing, files, configs)
        else:
            yield from _apart(tree, at, listing.files, configs)
        pods = _pods(name for name in folders if name not in parts)
        for job, names in pods.items():
            yield from _whole(tree, _At(tree.inside(at.path, job), configs), at.path, names)
        others = [name for name in folders if name not in parts and not any(name in names for names in pods.values())]
        alone = len(others) == 1 and not any(kind_of(file.name) == "log" for file in listing.files)
        waiting += [_At(tree.inside(at.path, name), configs if alone or BELOW.fullmatch(name) else ()) for name in reversed(others)]


def unfound(tree: Tree, path: str, trouble: UserError) -> Unfound:
    where = tree.address(path)
    return Unfound(Job(where, (where,), name=tree.shown(path)), trouble.key, Text(trouble.to("en"), trouble.to("zh")))


# -- one folder


def _apart(tree: Tree, at: _At, files: Sequence[File], configs: tuple[File, ...]) -> Iterator[Group | Archive]:
    """The jobs whose logs lie directly in a folder."""
    kinds = {file.name: kind_of(file.name) for file in files}
    yield from (Archive(file.path) for file in files if kinds[file.name] == "archive")
    logs = [file for file in files if kinds[file.name] == "log"]
    yield from groups(tree, at.path, logs, configs or at.inherited, together=bool(configs))


def groups(tree: Tree, at: str, logs: Sequence[File], configs: tuple[File, ...], together: bool = True) -> Iterator[Group]:
    """Logs of one folder as jobs: a job for every number of a scheduler; of the others those with a config beside them are one job
    (unless `together` is False), and without one those whose names differ only by rank, node or stream."""
    numbers = _numbers([file.name for file in logs])
    stems = {file.name: stem(file.name) for file in logs}
    plain = {stems[name] for name in stems if name not in numbers}
    as_one = together and bool(configs) and len(plain) <= MOST
    found: dict[str, list[File]] = {}
    for file in logs:
        key = stems[file.name] if file.name in numbers or not as_one else ""
        found.setdefault(key, []).append(file)
    for key, members in found.items():
        alone = key in ("", "log") and len(found) == 1 and (as_one or len(members) > 1)
        name = members[0].name if len(members) == 1 and members[0].name not in numbers else key or "log"
        yield Group(at if alone else tree.inside(at, name), tuple(members), configs)


def stem(name: str) -> str:
    """A log's name without what tells ranks and streams apart."""
    name = strip_suffixes(name)
    numbered = STREAM.search(name)
    if numbered:
        return name[: numbered.start()] + "." + numbered[1]
    return PART.sub("", name.rpartition(".")[0] if not name.endswith((".out", ".err")) else name) or "log"


def _numbers(names: Sequence[str]) -> set[str]:
    """The names that end in a scheduler's number of their job."""
    said: set[str] = set()
    alike: dict[str, dict[str, list[str]]] = {}
    for name in names:
        plain = strip_suffixes(name)
        for pattern in _patterns("number"):
            match = pattern.search(plain)
            if match is None:
                continue
            if "job" in match.re.groupindex:
                said.add(name)
            else:
                frame = PART.sub("", plain[: match.start()])
                alike.setdefault(frame, {}).setdefault(match["alike"], []).append(name)
            break
    for numbers in alike.values():
        if len(numbers) > 1:
            said.update(name for members in numbers.values() for name in members)
    return said


def number_of(name: str) -> str:
    """The scheduler's number of a job in the name of its log, empty for none."""
    plain = strip_suffixes(name)
    found = next((match for pattern in _patterns("number") if (match := pattern.search(plain))), None)
    return (found.groupdict().get("job") or found.groupdict().get("alike") or "") if found else ""


def _configs(files: Sequence[File]) -> tuple[File, ...]:
    """The files beside a log that may be its configs; none where there are too many to be one job's."""
    found = [file for file in files if kind_of(file.name) == "config" and strip_suffixes(file.name) == file.name]
    found = [file for file in found if file.size is None or file.size <= job_folder.CONFIG]
    return tuple(found) if len(found) <= job_folder.CONFIGS else ()


def beside(listing: Listing) -> tuple[File, ...]:
    """The configs of a folder whose log was named itself."""
    return _configs(listing.files)


# -- folders that belong together


def _together(
    tree: Tree, at: _At, listing: Listing, parts: Sequence[tuple[str, File]], configs: tuple[File, ...]
) -> Iterator[Group | Archive]:
    """A folder whose ranks, nodes or attempts have folders of their own: one job, but for logs with another job's number."""
    numbers = _numbers([file.name for file in listing.files if kind_of(file.name) == "log"])
    yield from _apart(tree, at, [file for file in listing.files if file.name in numbers or kind_of(file.name) == "archive"], configs)
    own = [file for file in listing.files if kind_of(file.name) == "log" and file.name not in numbers]
    logs = [*own, *(file for place, file in parts if kind_of(place) in ("log", "metadata"))]
    inner = tuple(file for place, file in parts if kind_of(place) == "config")
    if any(kind_of(file.name) == "log" for file in logs):
        found = (*(configs or at.inherited), *inner)
        yield Group(at.path, tuple(logs), found if len(found) <= job_folder.CONFIGS else configs)


def _whole(tree: Tree, job: _At, top: str, names: Sequence[str], own: Sequence[File] = ()) -> Iterator[Group | Unfound]:
    """One job of all that lies in some folders of `top`, and of its `own` files."""
    deeper, refused = _collected(tree, top, names)
    yield from refused
    files = [*((file.name, file) for file in own), *deeper]
    logs = tuple(file for place, file in files if kind_of(place) in ("log", "metadata"))
    configs = tuple(file for place, file in files if kind_of(place) == "config")
    if any(kind_of(place) == "log" for place, _ in files):
        yield Group(job.path, logs, (configs if len(configs) <= job_folder.CONFIGS else ()) or job.inherited)


def _pods(names: Iterable[str]) -> dict[str, list[str]]:
    """The folders of pods by their job, where an operator numbered them."""
    found: dict[str, list[str]] = {}
    for name in names:
        match = next((match for pattern in _patterns("pods") if (match := pattern.search(name))), None)
        if match:
            found.setdefault(match["job"], []).append(name)
    return found


def _collected(tree: Tree, top: str, names: Sequence[str]) -> tuple[list[tuple[str, File]], list[Unfound]]:
    """All files below some folders of `top` by their places in it, as many as one job may have, without those of older runs."""
    found: list[tuple[str, File]] = []
    refused: list[Unfound] = []
    waiting = [(name, tree.inside(top, name)) for name in reversed(names)]
    while waiting and len(found) <= job_folder.FILES:
        place, path = waiting.pop()
        if place.count("/") >= job_folder.DEEP:
            continue
        try:
            listing = tree.list(path)
        except UserError as trouble:
            refused.append(unfound(tree, path, trouble))
            continue
        found += [(f"{place}/{file.name}", file) for file in listing.files]
        waiting += [(f"{place}/{name}", tree.inside(path, name)) for name in reversed(listing.folders)]
    late = job_folder.earlier_runs([place for place, _ in found])
    return [(place, file) for place, file in found if place not in late and kind_of(place) != "none"], refused


def _is_part(name: str) -> bool:
    return any(pattern.fullmatch(name) for pattern in _patterns("part"))


def _is_whole(path: str) -> bool:
    return any(pattern.search(path[-400:].replace("\\", "/")) for pattern in _patterns("whole"))


@cache
def _patterns(kind: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(text) for text in rule_files.table("layouts")[kind])


# -- as a person says it


def by_pattern(tree: Tree, top: str, pattern: re.Pattern[str]) -> Iterator[tuple[str, File, tuple[File, ...]] | Archive | Unfound]:
    """Every log below a folder with what a pattern finds in its path (empty: nothing), and the configs beside it."""
    waiting = [top]
    while waiting:
        at = waiting.pop()
        try:
            listing = tree.list(at)
        except UserError as trouble:
            yield unfound(tree, at, trouble)
            continue
        yield from (unfound(tree, path, trouble) for path, trouble in listing.refused)
        configs = _configs(listing.files)
        for file in listing.files:
            kind = kind_of(file.name)
            if kind == "archive":
                yield Archive(file.path)
            elif kind == "log":
                yield found_by(pattern, tree.shown(file.path)), file, configs
        waiting += [tree.inside(at, name) for name in reversed(listing.folders) if kind_of(f"{name}/a.log") != "none"]


def found_by(pattern: re.Pattern[str], path: str) -> str:
    """What a pattern finds in a path: the group `job`, else the first group, else all that it matches; empty for nothing."""
    match = pattern.search(path)
    if match is None:
        return ""
    return (match["job"] if "job" in pattern.groupindex else match[1] if pattern.groups else match[0]) or ""


def compiled(text: str) -> re.Pattern[str]:
    """Raises UserError for what is no regular expression."""
    try:
        return re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise object_stores.trouble("bad_pattern", text, "write_pattern", why=str(error)) from error
