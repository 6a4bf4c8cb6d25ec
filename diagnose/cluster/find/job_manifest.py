"""A manifest: one JSON object per line for every job, with the names of docs/triage.md or what people call them otherwise."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from diagnose.cluster.find import addresses, coerce
from diagnose.cluster.find.job import About
from diagnose.cluster.find.job_index import Listed

#: What a manifest says, by its own name and by those that other systems have for it (small letters, without dashes and underlines).
NAMES: dict[str, tuple[str, ...]] = {
    "id": ("id", "jobid", "job", "runid", "uid", "uuid"),
    "name": ("name", "jobname", "displayname", "title"),
    "logs": ("logs", "log", "logfile", "logfiles", "logpath", "logpaths", "logurl", "path", "paths", "stdout", "output", "outputfile"),
    "stderr": ("stderr", "errorfile"),
    "configs": ("configs", "config", "configfile", "configfiles", "configpath", "configpaths"),
    "user": ("user", "username", "owner", "submitter", "createdby"),
    "project": ("project", "account", "namespace", "team", "group", "queue", "workspace"),
    "state": ("state", "status", "jobstate", "phase"),
    "reason": ("reason", "message", "statemessage", "failurereason"),
    "exit_code": ("exitcode", "exit", "returncode", "rc", "exitstatus"),
    "signal": ("signal", "termsignal"),
    "nodes": ("nodes", "nnodes", "numnodes", "nodecount"),
    "gpus": ("gpus", "gpucount", "numgpus", "ngpus", "worldsize", "accelerators"),
    "gpu": ("gpu", "gputype", "gpumodel", "gpuname", "accelerator"),
    "submitted": ("submitted", "submittime", "submittedat", "submit", "created", "createdat", "creationtime"),
    "started": ("started", "starttime", "startedat", "start", "begin"),
    "ended": ("ended", "endtime", "endedat", "end", "finished", "finishedat", "finishtime", "completedat"),
    "elapsed": ("elapsed", "duration", "runtime", "walltime", "elapsedseconds", "durationseconds", "seconds"),
    "memory_limit": ("memorylimit", "memlimit", "reqmem", "memory", "mem"),
    "memory_used": ("memoryused", "maxrss", "peakmemory"),
    "restarts": ("restarts", "restartcount", "attempts"),
}
KNOWN = frozenset(name for names in NAMES.values() for name in names)


def is_row(value: object) -> bool:
    """Whether a JSON value describes a job: it names it or its log."""
    if not isinstance(value, dict):
        return False
    row = coerce.folded(value)
    return any(coerce.first(row, NAMES[key]) is not None for key in ("id", "logs")) and len(KNOWN & row.keys()) >= min(len(row), 2)


def row(value: dict[str, Any], home: str) -> Listed | None:
    """One job; None where neither an id nor a log is named. Paths begin in the manifest's own folder."""
    values = coerce.folded(value)

    def of(key: str) -> object:
        return coerce.first(values, NAMES[key])

    logs = tuple(dict.fromkeys(placed(path, home) for path in (*_paths(of("logs")), *_paths(of("stderr")))))
    id = coerce.text(of("id")) or (logs[0] if logs else "")
    if not id:
        return None
    code, signal = coerce.exit_code(of("exit_code"))
    started, ended = coerce.moment(of("started")), coerce.moment(of("ended"))
    elapsed = coerce.duration(of("elapsed"))
    if elapsed is None and started is not None and ended is not None and ended >= started:
        elapsed = ended - started
    number = coerce.count(of("gpu"))  # {"gpu": 8} says how many
    about = About(
        "manifest",
        id,
        coerce.text(of("user")),
        coerce.text(of("project")),
        coerce.text(of("state")),
        coerce.text(of("reason")),
        code,
        coerce.count(of("signal")) or signal,
        coerce.count(of("nodes")),
        coerce.count(of("gpus")) if number is None else number,
        coerce.text(of("gpu")) if number is None else "",
        coerce.moment(of("submitted")),
        started,
        ended,
        elapsed,
        coerce.size(of("memory_limit")),
        coerce.size(of("memory_used")),
        coerce.count(of("restarts")),
    )
    configs = tuple(dict.fromkeys(placed(path, home) for path in _paths(of("configs"))))
    return Listed(id, about, logs, configs=configs, names=(id,), said=coerce.text(of("name")))


def _paths(value: object) -> Iterator[str]:
    """One path or several."""
    for one in value if isinstance(value, list) else [value]:
        path = one.replace("\0", "") if isinstance(one, str) else ""
        if path.strip():
            yield path[:4096]


def placed(path: str, home: str) -> str:
    """The address of a path that begins in a folder, unless it begins at the root or in a store."""
    if addresses.is_stored(path):
        return path
    if addresses.is_stored(home) and not path.startswith("/"):
        return f"{home}/{path}"
    return path if path.startswith("file://") else addresses.written(os.path.join(home, os.path.expanduser(path)))  # noqa: PTH118
