"""What a worker is given: a job, and what every job is diagnosed with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from diagnose.cluster.find.job import Job
from diagnose.phrases import Lang
from diagnose.record import field, record

if TYPE_CHECKING:
    from diagnose.adapters.formats.settings import ConfigSource
    from diagnose.facts import Fact


@record
class Asked:
    """What every job is diagnosed with. `reports`: each job's whole report, in this language (then every job is diagnosed itself)."""

    configs: tuple[ConfigSource, ...] = ()
    model: str | None = None  # a catalogue id, or the text of a config.json
    gpu: str | None = None
    gpus: int | None = None
    set: Mapping[str, str] = field(default_factory=dict)
    rules: tuple[str, ...] = ()  # folders
    trial: bool = False
    reports: Lang | None = None
    redact: bool = False  # mask the reports
    basis: str = ""  # stands for all of this, the rules and the tool (see `settled`)

    def given(self) -> list[Fact]:
        """The options as facts. Raises UserError for one that cannot be meant."""
        from diagnose.inputs.materials import options

        return options(self.model, self.gpu, self.gpus, self.set)


@record
class Task:
    """A job to be read. `content`: the digest of what was read of it last time; empty where nothing was."""

    job: Job
    content: str = ""
