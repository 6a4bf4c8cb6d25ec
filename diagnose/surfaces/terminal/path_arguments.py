"""Interprets words of the command line: logs, configs, settings."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from diagnose import rule_files
from diagnose.adapters.formats.settings import ConfigSource
from diagnose.phrases import Lang, phrase
from diagnose.render.parts.view import terminal
from diagnose.scan.source import Source
from diagnose.surfaces.terminal.console import language, trouble, warn

MATCHES = 1024  # files that one pattern may stand for

#: Endings of files that are never logs; of these others the content decides.
CONFIG_ENDINGS, OPEN_ENDINGS = (".yaml", ".yml", ".toml"), (".json", ".sh", ".bash", ".slurm", ".sbatch", ".py")


def apart(names: Sequence[str], shown: Lang) -> tuple[list[str], list[str]]:
    """The logs and the configs among the words for logs; configs are said to be taken as such."""
    found = [name for name in names if name.endswith(CONFIG_ENDINGS) or (name.endswith(OPEN_ENDINGS) and _configures(Path(name)))]
    if found:
        warn(phrase("cli.taken_as_config", names=", ".join(found)).to(shown))
    return [name for name in names if name not in found], found


def _configures(path: Path) -> bool:
    """Whether a file reads as a config: some logs have the same endings."""
    from diagnose.inputs.config_files import MAX_CONFIG_BYTES, configures  # few words for logs end so

    try:
        return path.is_file() and path.stat().st_size <= MAX_CONFIG_BYTES and configures(path.name, path.read_bytes())
    except OSError:
        return False


def logs(names: Sequence[str]) -> list[Path | BinaryIO | Source]:
    """The logs of one job: files, folders, archives, patterns, objects in stores, and at most one `-` for standard input. Raises
    UserError without any."""
    if not names:
        raise trouble("no_log_given", hint="give_log")
    if names.count("-") > 1:
        raise trouble("one_stdin", hint="give_files")
    if "-" in names and terminal(sys.stdin):
        warn(phrase("cli.paste_log", keys="Ctrl-Z, Enter" if os.name == "nt" else "Ctrl-D").to(language(None)))
    found: list[Path | BinaryIO | Source] = []
    for name in names:
        found += [sys.stdin.buffer] if name == "-" else stored(name) if "://" in name else matching(name)
    return found


def matching(name: str) -> list[Path]:
    """The path that a word names, or the paths matching it as a pattern which the shell did not expand."""
    path = Path(name)
    if not any(sign in name for sign in "*?[") or os.path.lexists(name):
        return [path]
    import glob

    found = sorted(islice(glob.iglob(os.path.expanduser(name), recursive=True), MATCHES + 1))  # noqa: PTH207 - Path.glob refuses absolute ones
    if not found:
        raise trouble("no_match", where=name, hint="quote_pattern")
    if len(found) > MATCHES:
        raise trouble("too_many_matches", where=name, hint="narrow_pattern", most=MATCHES)
    return [Path(each) for each in found]


def stored(url: str) -> list[Source]:
    """An object in a store, or those matching a pattern. Raises UserError if the extra is missing or nothing matches."""
    from diagnose.cluster.find import object_stores  # few logs lie in a store

    store, path = object_stores.connect(url)
    try:
        paths = sorted(store.glob(path))[: MATCHES + 1] if any(sign in path for sign in "*?[") else [path]
    except Exception as error:  # each store has errors of its own
        raise object_stores.store_error(url, error) from error
    if not paths:
        raise trouble("no_match", where=url, hint="check_url")
    if len(paths) > MATCHES:
        raise trouble("too_many_matches", where=url, hint="narrow_pattern", most=MATCHES)
    scheme = object_stores.scheme_of(url)
    return [Source(f"{scheme}://{path}", opener=partial(object_stores.open_object, store, path), place="") for path in paths]


def configs(specs: Sequence[str], logs: Sequence[str] = ()) -> list[Path | BinaryIO | ConfigSource]:
    """Configs: FILE, or KIND=FILE for a forced kind. Raises UserError for an unknown kind."""
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
    """The known kinds of config: one per file of rules/frameworks."""
    return sorted(rule_files.table("frameworks"))


def settings(pairs: Sequence[str]) -> dict[str, str]:
    """NAME=VALUE pairs as a dict; of a repeated name the last counts."""
    values = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise trouble("bad_set", text=repr(pair))
        values[name.strip()] = value
    return values


def model(asked: str | None) -> str | Path | None:
    """A model id, or the path of a config.json."""
    return Path(asked) if asked is not None and (asked.endswith(".json") or Path(asked).is_file()) else asked
