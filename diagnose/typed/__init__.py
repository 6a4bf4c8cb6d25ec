"""The report as a pydantic model: for schemas, servers and typed users; built only when asked for."""

from __future__ import annotations

import json
from typing import Literal

from pydantic import Field

from diagnose.diagnosis import Diagnosis, Json
from diagnose.typed.advised import Cause, Plan, Question, Rejected, Remedy, Undecided
from diagnose.typed.counted import Attribution, Budget
from diagnose.typed.outlook import Check
from diagnose.typed.parts import Part
from diagnose.typed.read import Event, Fact, Given, Notice, Tool, Verdict
from diagnose.typed.snapshot import Snapshot


class Report(Part):
    """One job's report, equal to `Diagnosis.to_dict()`."""

    schema_: Literal["oomdoctor.report/1"] = Field(alias="schema")
    tool: Tool
    inputs: list[Given]
    verdict: Verdict
    events: list[Event]
    facts: list[Fact]
    attributions: list[Attribution]
    budgets: list[Budget]
    causes: list[Cause]
    undecided: list[Undecided]
    remedies: list[Remedy]
    rejected: list[Rejected]
    plan: Plan | None
    questions: list[Question]
    notices: list[Notice]
    snapshot: Snapshot | None = None  # only where a memory snapshot was given
    check: Check | None = None  # only what `check` was asked about

    @classmethod
    def of(cls, diagnosis: Diagnosis, lang: Literal["en", "zh"] = "en") -> Report:
        """The typed form of a diagnosis."""
        return cls.model_validate(diagnosis.to_dict(lang))

    def to_dict(self) -> dict[str, Json]:
        """The report as `Diagnosis.to_dict` gives it."""
        report: dict[str, Json] = self.model_dump(by_alias=True, exclude_unset=True)
        return report


def schema() -> str:
    """The JSON Schema of the report."""
    return json.dumps(Report.model_json_schema(by_alias=True), indent=2)
