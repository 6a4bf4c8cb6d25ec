"""What workers receive: jobs, common options, limits."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from diagnose import rule_files
from diagnose.cluster.find.job import Job
from diagnose.inputs.caller_arguments import options
from diagnose.phrases import Lang
from diagnose.version import __version__

if TYPE_CHECKING:
    from diagnose.adapters.formats.settings import ConfigSource
    from diagnose.facts import Fact


@dataclass(slots=True)
class JobOptions:
    """Options common to all jobs. `reports`: the language of a full report per job; equal jobs are then diagnosed individually."""

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
        """The options as facts. Raises UserError for an invalid value."""
        return options(self.model, self.gpu, self.gpus, self.set)


def with_basis(job_options: JobOptions) -> JobOptions:
    """The options with their `basis`, a hash that changes with the version, rules and options."""
    digest = hashlib.sha256(repr((__version__, replace(job_options, basis="", reports=None, redact=False))).encode(errors="surrogatepass"))
    folders = [rule_files.home() / "rules", rule_files.home() / "grammars", *map(Path, job_options.rules)]
    for path in sorted(file for folder in folders for file in folder.rglob("*") if file.suffix in (".yaml", ".yml", ".lark")):
        digest.update(path.name.encode(errors="surrogatepass"))
        digest.update(path.read_bytes())
    return replace(job_options, basis=digest.hexdigest()[:16])


@dataclass(slots=True)
class Task:
    """A job to read. `content`: the content hash of its last read; empty for a new job."""

    job: Job
    content: str = ""


@dataclass(slots=True, frozen=True)
class Limits:
    """Limits of one job: seconds, and bytes of address space. An idle process larger than `idle_memory` bytes is replaced."""

    seconds: float = 300.0
    memory: int = 4 << 30
    idle_memory: int = 200 << 20


LIMITS = Limits()
