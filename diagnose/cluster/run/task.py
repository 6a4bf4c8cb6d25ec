"""What workers receive: a job, the options that all jobs share, and limits."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from diagnose import rule_files
from diagnose.cluster.find.job import Job
from diagnose.inputs.materials import options
from diagnose.phrases import Lang
from diagnose.version import __version__

if TYPE_CHECKING:
    from diagnose.adapters.formats.settings import ConfigSource
    from diagnose.facts import Fact


@dataclass(slots=True)
class JobOptions:
    """What every job is diagnosed with. `reports`: each job's whole report is wanted, in this language; then equal jobs are not skipped."""

    configs: tuple[ConfigSource, ...] = ()
    model: str | None = None  # a catalogue id, or the text of a config.json
    gpu: str | None = None
    gpus: int | None = None
    set: Mapping[str, str] = field(default_factory=dict)
    rules: tuple[str, ...] = ()  # folders
    trial: bool = False
    reports: Lang | None = None
    redact: bool = False  # mask the reports
    basis: str = ""  # a hash of these options, the rules and the tool (see `with_basis`)

    def facts(self) -> list[Fact]:
        """The options as facts. Raises UserError for an impossible value."""
        return options(self.model, self.gpu, self.gpus, self.set)


def with_basis(job_options: JobOptions) -> JobOptions:
    """The same options with their `basis`, which changes when the tool, a rule or an option does."""
    digest = hashlib.sha256(repr((__version__, replace(job_options, basis="", reports=None, redact=False))).encode(errors="surrogatepass"))
    folders = [rule_files.home() / "rules", rule_files.home() / "grammars", *map(Path, job_options.rules)]
    for path in sorted(file for folder in folders for file in folder.rglob("*") if file.suffix in (".yaml", ".yml", ".lark")):
        digest.update(path.name.encode(errors="surrogatepass"))
        digest.update(path.read_bytes())
    return replace(job_options, basis=digest.hexdigest()[:16])


@dataclass(slots=True)
class Task:
    """A job to be read. `content`: the hash of what was read of it last time; empty for the first time."""

    job: Job
    content: str = ""


@dataclass(slots=True, frozen=True)
class Limits:
    """What one job may take: seconds, and bytes of address space. An idle process with more than `idle_memory` bytes is replaced."""

    seconds: float = 300.0
    memory: int = 4 << 30
    idle_memory: int = 200 << 20


LIMITS = Limits()
