"""The output of `sacct -P` (or `--parsable2`, `--parsable`): one line per job and step, columns in any order, named by the first line."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator

from diagnose.cluster.find import addresses, coerce
from diagnose.cluster.find.job import About
from diagnose.cluster.find.job_index import JobRecord

#: 123, 123_4 (a task of an array), 123+1 (a component of a heterogeneous job); behind a point the step.
_ID = re.compile(r"(\d{1,12})(?:_(\d{1,9}))?(?:\+(\d{1,6}))?(?:\.(\S{1,40}))?$")
_PENDING = re.compile(r"\d{1,12}_\[")  # tasks of an array that never began
_PATTERN = re.compile(r"%(\d{0,2})([%AajJNnsStuxb])")

#: Steps that do not tell how the job went: what a login shell did beside it.
_IGNORED_STEPS = ("extern",)


def is_header(line: str) -> bool:
    """Whether a line names columns as sacct does."""
    names = [name.strip().lower() for name in line.strip().strip("|").split("|")]
    return len(names) > 1 and ("jobid" in names or "jobidraw" in names) and all(re.fullmatch(r"[a-z/%\d]{2,40}", name) for name in names)


def read_records(lines: Iterable[str]) -> Iterator[JobRecord | int]:
    """The jobs and steps of an export; the number of each invalid line instead."""
    columns: list[str] = []
    for number, line in enumerate(lines, 1):
        plain = line.rstrip("\r\n")
        if not plain.strip():
            continue
        if not columns or is_header(plain):  # exports may have been concatenated
            columns = [name.strip().lower() for name in plain.split("|")]
            continue
        cells = plain.split("|")
        if len(cells) > len(columns) and "submitline" in columns:  # the one column that may contain the separator
            start, extra = columns.index("submitline"), len(cells) - len(columns)
            cells[start : start + extra + 1] = ["|".join(cells[start : start + extra + 1])]
        row = dict(zip(columns, cells, strict=False))
        if _PENDING.match(row.get("jobid", "")):
            continue
        record = read_record(row) if len(cells) >= len(columns) - 1 else None
        yield number if record is None else record


def read_record(row: dict[str, str]) -> JobRecord | None:
    """One line by its columns; None if it is no job."""
    match = _ID.match(row.get("jobid") or row.get("jobidraw") or "")
    if match is None:
        return None
    number, task, component, step = match.groups()
    job = f"{number}_{task}" if task else number
    cluster = coerce.text(row.get("cluster"))
    about = _job_about(row, job) if not step else _step_about(row, step)
    raw = coerce.text(row.get("jobidraw")).partition(".")[0]
    aliases = tuple(dict.fromkeys(name for name in (job, raw) if name))
    id = f"slurm:{cluster}/{job}" if cluster else f"slurm:{job}"
    if step:
        return JobRecord(id, about, aliases=aliases)
    logs, default_logs = _logs(row, number, task, raw or number)
    return JobRecord(id, about, logs, default_logs, aliases=aliases, is_part=bool(component), name=coerce.text(row.get("jobname")))


def _job_about(row: dict[str, str], job: str) -> About:
    code, signal = coerce.exit_code(row.get("exitcode"))
    resources = coerce.tres(row.get("alloctres")) or coerce.tres(row.get("reqtres"))
    nodes = coerce.count(row.get("allocnodes")) or coerce.count(row.get("nnodes")) or coerce.count(resources.get("node"))
    return About(
        scheduler="slurm",
        id=job,
        user=coerce.text(row.get("user")),
        project=coerce.text(row.get("account")),
        state=parse_state(row.get("state", "")),
        reason=coerce.text(row.get("reason")),
        exit_code=code,
        signal=signal,
        nodes=nodes,
        gpus=gpu_count(row, nodes),
        gpu=gpu_name(row),
        submitted=coerce.timestamp(row.get("submit")),
        started=coerce.timestamp(row.get("start")),
        ended=coerce.timestamp(row.get("end")),
        elapsed=coerce.duration(row.get("elapsedraw")) if row.get("elapsedraw") else coerce.duration(row.get("elapsed")),
        memory_limit=memory_limit(row, nodes),
        memory_used=coerce.byte_size(row.get("maxrss")),
    )


def _step_about(row: dict[str, str], step: str) -> About:
    """What a step adds to its job: that memory ran out in it, and the largest memory use of a task."""
    if step in _IGNORED_STEPS:
        return About()
    state = parse_state(row.get("state", ""))
    return About("slurm", state=state if state.startswith("OUT_OF_ME") else "", memory_used=coerce.byte_size(row.get("maxrss")))


def parse_state(text: str) -> str:
    """The state without additions: CANCELLED of `CANCELLED by 1000`, OUT_OF_MEMORY of `OUT_OF_ME+` cut off by a narrow column."""
    word = coerce.text(text).split(" ")[0]
    return {"OUT_OF_ME+": "OUT_OF_MEMORY", "CANCELLED+": "CANCELLED"}.get(word, word.rstrip("+"))


def gpu_count(row: dict[str, str], nodes: int | None) -> int | None:
    """Cards over all nodes; 0 if resources are listed without any, None if none are listed."""
    for column in ("alloctres", "reqtres"):
        resources = coerce.tres(row.get(column))
        total = coerce.count(resources.get("gres/gpu"))
        by_type = [coerce.count(amount) or 0 for name, amount in resources.items() if name.startswith("gres/gpu:")]
        if total is not None or by_type:
            return total if total is not None else sum(by_type)
        if resources:
            return 0
    for column in ("allocgres", "reqgres"):  # of releases before 20.11, per node
        match = re.search(r"gpu(?::[\w.-]+)?:(\d{1,5})", row.get(column) or "")
        if match:
            return int(match[1]) * (nodes or 1)
    return None


def gpu_name(row: dict[str, str]) -> str:
    """The card's name as the cluster spells it."""
    resources = " ".join(row.get(column) or "" for column in ("alloctres", "reqtres", "allocgres", "reqgres"))
    match = re.search(r"gpu:([A-Za-z][\w.-]{0,60})[=:]", resources)
    return match[1] if match else ""


def memory_limit(row: dict[str, str], nodes: int | None) -> int | None:
    """The memory limit of a node in bytes. ReqMem is per node (4Gn), per core (4Gc) or, since 21.08, for the whole job (4G)."""
    reqmem = coerce.text(row.get("reqmem"))
    total = coerce.byte_size(reqmem, unit=1 << 20)
    if total and reqmem[-1:] == "n":
        return total
    if total and reqmem[-1:] == "c":
        cores = coerce.count(row.get("alloccpus")) or coerce.count(row.get("reqcpus")) or coerce.count(row.get("ncpus"))
        if cores:
            return total * cores // (nodes or 1)
    for column in ("alloctres", "reqtres"):
        memory = coerce.byte_size(coerce.tres(row.get(column)).get("mem"), unit=1 << 20)
        if memory:
            return memory // (nodes or 1)
    return total // (nodes or 1) if total and reqmem[-1:] != "c" else None


# -- where its log is


def _logs(row: dict[str, str], number: str, task: str | None, raw: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The logs that the record names, and likely ones by its command line or Slurm's default."""
    task_number, name, user = task or "4294967294", coerce.text(row.get("jobname")), coerce.text(row.get("user"))
    values = {"%": "%", "j": raw, "J": raw, "A": number, "a": task_number, "b": task_number[-1], "x": name, "u": user}
    values |= {"n": "0", "t": "0", "S": "0", "s": "batch", "N": coerce.text(row.get("nodelist")).split(",")[0]}
    home = coerce.text(row.get("workdir"), 4096)
    columns = [coerce.text(row.get(column), 4096) for column in ("stdout", "stderr")]
    recorded = [_resolve(_expand(path, values), home) for path in columns if path and path != "/dev/null"]
    options = [_resolve(_expand(path, values), home) for path in _output_options(coerce.text(row.get("submitline"), 8192))]
    default = _resolve(f"slurm-{number}_{task}.out" if task else f"slurm-{raw}.out", home)
    return tuple(dict.fromkeys(filter(None, recorded))), tuple(dict.fromkeys(filter(None, (*options, default))))


def _expand(path: str, values: dict[str, str]) -> str:
    """Expand a filename pattern of sbatch: %j, %4a, %x."""
    return _PATTERN.sub(lambda match: values[match[2]].zfill(int(match[1] or 0)) if values[match[2]].isdigit() else values[match[2]], path)


def _resolve(path: str, home: str) -> str:
    """The address of a path, absolute or relative to the job's folder; empty if that is unknown."""
    if not path.startswith("/"):
        if not home:
            return ""
        path = os.path.join(home, path)  # noqa: PTH118
    return addresses.to_address(path)


def _output_options(line: str) -> list[str]:
    """The output files that options of an sbatch command name; options after the script belong to the script."""
    try:
        words = shlex.split(line)[1:]
    except ValueError:
        return []
    paths: list[str] = []
    previous = ""
    for word in words:
        if word.startswith(("--output=", "--error=")):
            paths.append(word.partition("=")[2])
        elif re.match(r"-[oe][^-=]", word):
            paths.append(word[2:])
        elif not word.startswith("-"):
            if previous in ("-o", "--output", "-e", "--error"):
                paths.append(word)
            elif not previous.startswith("-") or "=" in previous:
                break
        previous = word
    return paths
