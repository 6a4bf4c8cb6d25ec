"""`sacct -P` (or `--parsable2`, `--parsable`): one line per job and step, columns in any order, named by the first line."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator

from diagnose.cluster.find import addresses, coerce
from diagnose.cluster.find.job import About
from diagnose.cluster.find.job_index import Listed

#: 123, 123_4, 123+1; behind a point the step.
_ID = re.compile(r"(\d{1,12})(?:_(\d{1,9}))?(?:\+(\d{1,6}))?(?:\.(\S{1,40}))?$")
_PENDING = re.compile(r"\d{1,12}_\[")  # tasks of an array that never began
_PATTERN = re.compile(r"%(\d{0,2})([%AajJNnsStuxb])")

#: Steps that do not tell how the job went: what a login shell did beside it.
_ASIDE = ("extern",)


def is_header(line: str) -> bool:
    """Whether a line names columns as sacct does."""
    names = [name.strip().lower() for name in line.strip().strip("|").split("|")]
    return len(names) > 1 and ("jobid" in names or "jobidraw" in names) and all(re.fullmatch(r"[a-z/%\d]{2,40}", name) for name in names)


def rows(lines: Iterable[str]) -> Iterator[Listed | int]:
    """The jobs and steps of an export; the number of a line that is none."""
    columns: list[str] = []
    for number, line in enumerate(lines, 1):
        plain = line.rstrip("\r\n")
        if not plain.strip():
            continue
        if not columns or is_header(plain):  # files may have been put together
            columns = [name.strip().lower() for name in plain.split("|")]
            continue
        values = plain.split("|")
        if len(values) > len(columns) and "submitline" in columns:  # the one column that may hold the sign itself
            at, more = columns.index("submitline"), len(values) - len(columns)
            values[at : at + more + 1] = ["|".join(values[at : at + more + 1])]
        named = dict(zip(columns, values, strict=False))
        if _PENDING.match(named.get("jobid", "")):
            continue
        found = row(named) if len(values) >= len(columns) - 1 else None
        yield number if found is None else found


def row(values: dict[str, str]) -> Listed | None:
    """One line; None for one that is no job."""
    found = _ID.match(values.get("jobid") or values.get("jobidraw") or "")
    if found is None:
        return None
    number, task, component, step = found.groups()
    job = f"{number}_{task}" if task else number
    cluster = coerce.text(values.get("cluster"))
    about = _about(values, job) if not step else _of_step(values, step)
    raw = coerce.text(values.get("jobidraw")).partition(".")[0]
    names = tuple(dict.fromkeys(name for name in (job, raw) if name))
    id = f"slurm:{cluster}/{job}" if cluster else f"slurm:{job}"
    if step:
        return Listed(id, about, names=names)
    logs, guessed = _logs(values, number, task, raw or number)
    return Listed(id, about, logs, guessed, names=names, part=bool(component), said=coerce.text(values.get("jobname")))


def _about(values: dict[str, str], job: str) -> About:
    code, signal = coerce.exit_code(values.get("exitcode"))
    asked = coerce.tres(values.get("alloctres")) or coerce.tres(values.get("reqtres"))
    nodes = coerce.count(values.get("allocnodes")) or coerce.count(values.get("nnodes")) or coerce.count(asked.get("node"))
    return About(
        "slurm",
        job,
        coerce.text(values.get("user")),
        coerce.text(values.get("account")),
        state_of(values.get("state", "")),
        coerce.text(values.get("reason")),
        code,
        signal,
        nodes,
        cards(values, nodes),
        card(values),
        coerce.moment(values.get("submit")),
        coerce.moment(values.get("start")),
        coerce.moment(values.get("end")),
        coerce.duration(values.get("elapsedraw")) if values.get("elapsedraw") else coerce.duration(values.get("elapsed")),
        memory_limit(values, nodes),
        coerce.size(values.get("maxrss")),
    )


def _of_step(values: dict[str, str], step: str) -> About:
    """What a step adds: how it ended, if that is worse, and the most memory that one of its tasks took."""
    if step in _ASIDE:
        return About()
    state = state_of(values.get("state", ""))
    return About("slurm", state=state if state.startswith("OUT_OF_ME") else "", memory_used=coerce.size(values.get("maxrss")))


def state_of(text: str) -> str:
    """CANCELLED of `CANCELLED by 1000`, FAILED of a FAILED that a column cut off."""
    word = coerce.text(text).split(" ")[0]
    return {"OUT_OF_ME+": "OUT_OF_MEMORY", "CANCELLED+": "CANCELLED"}.get(word, word.rstrip("+"))


def cards(values: dict[str, str], nodes: int | None) -> int | None:
    """Cards over all nodes. 0 where resources are listed and none of them is one; None where nothing is listed."""
    for column in ("alloctres", "reqtres"):
        listed = coerce.tres(values.get(column))
        whole = coerce.count(listed.get("gres/gpu"))
        typed = [coerce.count(amount) or 0 for name, amount in listed.items() if name.startswith("gres/gpu:")]
        if whole is not None or typed:
            return whole if whole is not None else sum(typed)
        if listed:
            return 0
    for column in ("allocgres", "reqgres"):  # of releases before 20.11, per node
        found = re.search(r"gpu(?::[\w.-]+)?:(\d{1,5})", values.get(column) or "")
        if found:
            return int(found[1]) * (nodes or 1)
    return None


def card(values: dict[str, str]) -> str:
    """The card's name as the cluster calls it."""
    listed = " ".join(values.get(column) or "" for column in ("alloctres", "reqtres", "allocgres", "reqgres"))
    found = re.search(r"gpu:([A-Za-z][\w.-]{0,60})[=:]", listed)
    return found[1] if found else ""


def memory_limit(values: dict[str, str], nodes: int | None) -> int | None:
    """Bytes of one node. ReqMem is of a node (4Gn), of a core (4Gc), or since 21.08 of the whole job (4G)."""
    asked = coerce.text(values.get("reqmem"))
    total = coerce.size(asked, plain=1 << 20)
    if total and asked[-1:] == "n":
        return total
    if total and asked[-1:] == "c":
        cores = coerce.count(values.get("alloccpus")) or coerce.count(values.get("reqcpus")) or coerce.count(values.get("ncpus"))
        if cores:
            return total * cores // (nodes or 1)
    for column in ("alloctres", "reqtres"):
        held = coerce.size(coerce.tres(values.get(column)).get("mem"), plain=1 << 20)
        if held:
            return held // (nodes or 1)
    return total // (nodes or 1) if total and asked[-1:] != "c" else None


# -- where its log is


def _logs(values: dict[str, str], number: str, task: str | None, raw: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Paths of the job's output that the record names; and where it is otherwise, by Slurm's own default."""
    task_number, name, user = task or "4294967294", coerce.text(values.get("jobname")), coerce.text(values.get("user"))
    fill = {"%": "%", "j": raw, "J": raw, "A": number, "a": task_number, "b": task_number[-1], "x": name, "u": user}
    fill |= {"n": "0", "t": "0", "S": "0", "s": "batch", "N": coerce.text(values.get("nodelist")).split(",")[0]}
    home = coerce.text(values.get("workdir"), 4096)
    named = [coerce.text(values.get(column), 4096) for column in ("stdout", "stderr")]
    paths = [_placed(_filled(path, fill), home) for path in named if path and path != "/dev/null"]
    asked = [_placed(_filled(path, fill), home) for path in _submitted(coerce.text(values.get("submitline"), 8192))]
    default = _placed(f"slurm-{number}_{task}.out" if task else f"slurm-{raw}.out", home)
    return tuple(dict.fromkeys(filter(None, paths))), tuple(dict.fromkeys(filter(None, (*asked, default))))


def _filled(path: str, fill: dict[str, str]) -> str:
    return _PATTERN.sub(lambda found: fill[found[2]].zfill(int(found[1] or 0)) if fill[found[2]].isdigit() else fill[found[2]], path)


def _placed(path: str, home: str) -> str:
    """The address of a path that is absolute, or begins in the job's folder; empty where that is not known."""
    if not path.startswith("/"):
        if not home:
            return ""
        path = os.path.join(home, path)  # noqa: PTH118
    return addresses.written(path)


def _submitted(line: str) -> list[str]:
    """The files that sbatch was told to write, of its command line; options behind the script are the script's."""
    try:
        words = shlex.split(line)[1:]
    except ValueError:
        return []
    found: list[str] = []
    before = ""
    for word in words:
        if word.startswith(("--output=", "--error=")):
            found.append(word.partition("=")[2])
        elif re.match(r"-[oe][^-=]", word):
            found.append(word[2:])
        elif not word.startswith("-"):
            if before in ("-o", "--output", "-e", "--error"):
                found.append(word)
            elif not before.startswith("-") or "=" in before:
                break
        before = word
    return found
