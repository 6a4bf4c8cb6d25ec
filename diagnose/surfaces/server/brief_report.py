"""The small form of a report for agents: at most 6 KB that hold the verdict, the causes, the plan and the first question."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

#: Causes, remedies and edits that are told, and characters of a text.
CAUSES, REMEDIES, EDITS, LENGTH = 3, 3, 8, 400


class Brief(BaseModel):
    """What an answer comes to."""

    job: str = Field(description="Handle of this job for further questions.")
    status: str = Field(description="oom, suspected, lookalike, none, or fits of a check: yes, likely, unlikely, no, unknown.")
    headline: str
    causes: list[dict[str, Any]] = Field(description="id, certainty, title, what it assumes.")
    plan: dict[str, Any] | None = Field(
        description="steps, edits (target, key, from, to, since: the first release with the key), env, peak after it in bytes, fits."
    )
    remedies: list[dict[str, Any]] = Field(description="id, title, bytes saved at most, fits.")
    question: dict[str, Any] | None = Field(description="The fact that would help most, and how to learn it.")
    report: dict[str, Any] | None = Field(default=None, description="The whole report, with detail=full.")


def brief(report: dict[str, Any]) -> dict[str, Any]:
    """The fields of Brief but for the handle, from a report as JSON."""
    plan, check = report["plan"], report.get("check")
    first = next(iter(report["questions"]), None)
    return {
        "status": check["fits"] if check else report["verdict"]["status"],
        "headline": report["verdict"]["headline"][:LENGTH],
        "causes": [
            {"id": cause["id"], "certainty": cause["certainty"], "title": cause["title"][:LENGTH], "assumes": cause["assumes"]}
            for cause in report["causes"][:CAUSES]
        ],
        "plan": None
        if plan is None
        else {
            "steps": plan["steps"],
            "edits": [
                {name: edit[name] for name in ("target", "key", "from", "to", "since") if name in edit} for edit in plan["edits"][:EDITS]
            ],
            "env": plan["env"],
            "peak": _bytes(plan["predicted_peak"]),
            "fits": plan["fits"],
        },
        "remedies": [
            {"id": remedy["id"], "title": remedy["title"][:LENGTH], "saves": _bytes(remedy["saves"]), "fits": remedy["fits"]}
            for remedy in report["remedies"][:REMEDIES]
        ],
        "question": first and {"fact": first["fact"], "why": first["why"][:LENGTH], "how": first["how"][:LENGTH]},
    }


def _bytes(size: dict[str, Any] | None) -> int | None:
    return None if size is None else int(size["bytes"])
