"""What the words of a command line name: logs, configs, settings."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from diagnose import shipped
from diagnose.adapters.settings import ConfigSource
from diagnose.complaints import Complaint
from diagnose.phrases import phrase

LOGS = (".log", ".out", ".err", ".txt")


def trouble(key: str, where: str = "", hint: str = "", **values: object) -> Complaint:
    """A complaint whose sentences are the command line's."""
    return Complaint(phrase(f"cli.{key}", **values), where, phrase(f"cli.{hint}", **values) if hint else None)


def logs(names: Sequence[str]) -> list[Path | BinaryIO]:
    """The logs of one job: files, `-` once for standard input, a folder for the logs in it. Raises Complaint for none."""
    if not names:
        raise trouble("no_log_given", hint="give_log")
    if names.count("-") > 1:
        raise trouble("one_stdin", hint="give_files")
    found: list[Path | BinaryIO] = []
    for name in names:
        found += [sys.stdin.buffer] if name == "-" else logs_in(Path(name)) if Path(name).is_dir() else [Path(name)]
    return found


def logs_in(folder: Path) -> list[Path]:
    """The logs that lie directly in a folder, in order."""
    found = sorted(path for path in folder.iterdir() if path.suffix in LOGS and path.is_file())
    if not found:
        raise trouble("folder_without_log", where=str(folder), hint="name_the_log")
    return found


def configs(specs: Sequence[str], logs: Sequence[str] = ()) -> list[Path | BinaryIO | ConfigSource]:
    """Configs as given: FILE, or KIND=FILE for a forced kind. Raises Complaint for a kind that does not exist."""
    if [*specs, *logs].count("-") > 1:
        raise trouble("one_stdin", hint="give_files")
    return [config(spec) for spec in specs]


def config(spec: str) -> Path | BinaryIO | ConfigSource:
    kind, equals, name = spec.partition("=")
    if spec == "-":
        return sys.stdin.buffer
    if not equals or Path(spec).exists() or "/" in kind:
        return Path(spec)
    if kind not in kinds():
        raise trouble("bad_config_kind", hint="known_kinds", kind=kind, kinds=", ".join(kinds()))
    return ConfigSource.file(Path(name), kind)


def kinds() -> list[str]:
    """The kinds of config that there are: one per file of rules/frameworks."""
    return sorted(shipped.table("frameworks"))


def settings(pairs: Sequence[str]) -> dict[str, str]:
    """NAME=VALUE pairs as a dict; the last one of a name holds."""
    values = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise trouble("bad_set", text=repr(pair))
        values[name.strip()] = value
    return values


def model(asked: str | None) -> str | Path | None:
    """A model id, or the config.json that a path names."""
    return Path(asked) if asked is not None and (asked.endswith(".json") or Path(asked).is_file()) else asked
