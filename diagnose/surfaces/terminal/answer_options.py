"""Options of a diagnosis on the command line: its inputs, and how the answer is displayed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diagnose import notebook
from diagnose.phrases import Lang
from diagnose.records import NamedTuple
from diagnose.surfaces.terminal import path_arguments

if TYPE_CHECKING:
    from diagnose.diagnosis import Diagnosis

#: Formats that are made to be handed on: masked unless told otherwise.
SHARED = ("markdown", "html", "sarif")


class AnswerInputs(NamedTuple):
    """The inputs of a diagnosis as written on the command line."""

    configs: Sequence[str] = ()
    model: str | None = None
    gpu: str | None = None
    gpus: int | None = None
    set: Sequence[str] = ()
    rules: Sequence[str] = ()
    trial: bool = False
    snapshot: str | None = None

    def options(self, logs: Sequence[str] = ()) -> dict[str, Any]:
        """The keyword arguments for `explain` and `check`, without `trial` and `snapshot`, which only `explain` has."""
        return {
            "configs": path_arguments.configs(self.configs, logs),
            "model": path_arguments.model(self.model),
            "gpu": self.gpu,
            "gpus": self.gpus,
            "set": path_arguments.settings(self.set),
            "rules": [Path(folder) for folder in self.rules],
            "notes": notebook.read(),
        }


class DisplayOptions(NamedTuple):
    """How the answer is printed, and what is written to files."""

    format: str = "text"
    lang: Lang = "en"
    top: int = 3
    verbose: bool = False
    every_rule: bool = False
    budget: bool = False
    redact: bool | None = None
    strict: bool = False
    patch: str | None = None
    apply: bool = False
    check_with: str | None = None

    def masked(self, diagnosis: Diagnosis) -> Diagnosis:
        """The diagnosis with secrets masked if the format is meant for others, unless the user decides otherwise."""
        if not (self.format in SHARED if self.redact is None else self.redact):
            return diagnosis
        from diagnose.render.parts import redaction  # a terminal shows its user what is theirs

        return redaction.mask_diagnosis(diagnosis)


def split_options(values: Mapping[str, Any]) -> tuple[AnswerInputs, DisplayOptions]:
    """Split options by name into inputs and display options; None values are left out."""
    given = {name: value for name, value in values.items() if value is not None}
    asked = {name: given[name] for name in AnswerInputs._fields if name in given}
    shown = {name: given[name] for name in DisplayOptions._fields if name in given}
    return AnswerInputs(**asked), DisplayOptions(**shown)
