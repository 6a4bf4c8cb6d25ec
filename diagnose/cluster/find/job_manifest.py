"""Manifests of jobs: one JSON object per line, with the fields of docs/triage.md or their names in other systems."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from diagnose.cluster.find import addresses, coerce
from diagnose.cluster.find.job import About
from diagnose.cluster.find.job_index import JobRecord

#: The names of each field, its own first, as `fold_keys` writes them.
FIELD_NAMES: Mapping[str, tuple[str, ...]] = {
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
KNOWN_NAMES = frozenset(name for names in FIELD_NAMES.values() for name in names)


def is_record(value: object) -> bool:
    """Whether a JSON value describes a job: it has an id or a log, and another known field unless it has only one."""
    if not isinstance(value, dict):
        return False
    row = coerce.fold_keys(value)
    has_identity = any(coerce.first_value(row, FIELD_NAMES[key]) is not None for key in ("id", "logs"))
    return has_identity and len(KNOWN_NAMES & row.keys()) >= min(len(row), 2)


def read_record(value: dict[str, object], home: str) -> JobRecord | None:
    """The job of a record; None without id and log. Relative paths are based on the manifest's folder `home`."""
    row = coerce.fold_keys(value)

    def get(key: str) -> object:
        return coerce.first_value(row, FIELD_NAMES[key])

    logs = tuple(dict.fromkeys(resolve(path, home) for path in (*_paths(get("logs")), *_paths(get("stderr")))))
    id = coerce.text(get("id")) or (logs[0] if logs else "")
    if not id:
        return None
    code, signal = coerce.exit_code(get("exit_code"))
    started, ended = coerce.timestamp(get("started")), coerce.timestamp(get("ended"))
    elapsed = coerce.duration(get("elapsed"))
    if elapsed is None and started is not None and ended is not None and ended >= started:
        elapsed = ended - started
    gpu_number = coerce.count(get("gpu"))  # {"gpu": 8} is a number of cards and not their name
    about = About(
        scheduler="manifest",
        id=id,
        user=coerce.text(get("user")),
        project=coerce.text(get("project")),
        state=coerce.text(get("state")),
        reason=coerce.text(get("reason")),
        exit_code=code,
        signal=coerce.count(get("signal")) or signal,
        nodes=coerce.count(get("nodes")),
        gpus=coerce.count(get("gpus")) if gpu_number is None else gpu_number,
        gpu=coerce.text(get("gpu")) if gpu_number is None else "",
        submitted=coerce.timestamp(get("submitted")),
        started=started,
        ended=ended,
        elapsed=elapsed,
        memory_limit=coerce.byte_size(get("memory_limit")),
        memory_used=coerce.byte_size(get("memory_used")),
        restarts=coerce.count(get("restarts")),
    )
    configs = tuple(dict.fromkeys(resolve(path, home) for path in _paths(get("configs"))))
    return JobRecord(id, about, logs, configs=configs, aliases=(id,), name=coerce.text(get("name")))


def _paths(value: object) -> Iterator[str]:
    """The paths in a field with one path or a list."""
    for item in value if isinstance(value, list) else [value]:
        path = item.replace("\0", "") if isinstance(item, str) else ""
        if path.strip():
            yield path[:4096]


def resolve(path: str, home: str) -> str:
    """The address of a path relative to a folder; absolute paths and URLs stay."""
    if addresses.is_url(path):
        return path
    if addresses.is_url(home) and not path.startswith("/"):
        return f"{home}/{path}"
    return path if path.startswith("file://") else addresses.to_address(os.path.join(home, os.path.expanduser(path)))  # noqa: PTH118
