"""The report as JSON for scripts; unknown figures are null. `--export` writes the jobs themselves."""

from __future__ import annotations

import json

from diagnose.cluster.report.summary_types import Cost, Group, Named, Plan, Summary
from diagnose.diagnosis import Json
from diagnose.phrases import Lang
from diagnose.render.data.part import Edit, mapping
from diagnose.render.parts.strings import escaped
from diagnose.render.parts.view import PLAIN, View

#: The version of the fields.
SCHEMA = "oomdoctor.triage/1"


def data(summary: Summary, lang: Lang = "en", _: View = PLAIN) -> str:
    """The summary as JSON. Times are seconds since 1970 in UTC, costs GPU-seconds with the number of jobs for which they are known."""
    counts = summary.counts
    report: dict[str, Json] = {
        "schema": SCHEMA,
        "tool": {"name": "oomdoctor", "version": summary.tool},
        "by": summary.by,
        "since": summary.since,
        "jobs": {
            "read": counts.jobs,
            "oom": counts.oom,
            "suspected": counts.suspected,
            "lookalike": counts.lookalike,
            "none": counts.none,
            "unread": counts.unread,
            "states": _named(summary.states),
        },
        "cost": _cost(summary.cost),
        "first": summary.period.first,
        "last": summary.period.last,
        "group_count": summary.total,
        "groups": [_group(group, lang) for group in summary.groups],
        "causes": [{"cause": cause.cause or None, "jobs": cause.jobs, "cost": _cost(cause.cost)} for cause in summary.causes],
        "missing_memory": {"known": summary.lack.known, "median": summary.lack.median},
        "unread": [{"job": lost.job, "fault": lost.fault, "message": lost.message.to(lang)} for lost in summary.unread],
    }
    return escaped(json.dumps(report, ensure_ascii=False, indent=2)) + "\n"


def _cost(cost: Cost) -> Json:
    return {"gpu_seconds": round(cost.seconds, 3) if cost.known else None, "known": cost.known, "jobs": cost.jobs}


def _named(entries: tuple[Named, ...]) -> Json:
    return [{"name": entry.name, "jobs": entry.jobs} for entry in entries]


def _group(group: Group, lang: Lang) -> Json:
    return {
        "key": group.key,
        "parts": None if group.parts is None else dict(group.parts._asdict()),
        "title": group.title.to(lang) or None,
        "jobs": group.jobs,
        "new": group.change == "new",
        "change": group.change or None,
        "cost": _cost(group.cost),
        "first": group.period.first,
        "last": group.period.last,
        "dated": group.period.dated,
        "cause_certain": group.certain,
        "user_count": group.user_count,
        "users": _named(group.users),
        "project_count": group.project_count,
        "projects": _named(group.projects),
        "frameworks": _named(group.frameworks),
        "median_lack": group.short,
        "plan": None if group.plan is None else _plan(group.plan, lang),
        "example": {"job": group.example.job, "headline": group.example.headline.to(lang)},
        "near": [
            {"key": near.key, "similarity": round(near.similarity, 3), "same": [*near.same], "different": [*near.other]}
            for near in group.near
        ],
        "tried": [{"remedy": tried.remedy, "worked": tried.worked, "failed": tried.failed} for tried in group.tried],
    }


def _plan(plan: Plan, lang: Lang) -> Json:
    return {
        "steps": [
            {"remedy": step.remedy, "title": step.title.to(lang), "results": step.results, "speed": step.speed} for step in plan.steps
        ],
        "fits": {entry.name: entry.jobs for entry in plan.fits},
        "variants": [
            {
                "framework": entry.framework or None,
                "jobs": entry.jobs,
                "alike": entry.alike,
                "fitting": entry.fitting,
                "steps": [*entry.steps],
                "edits": [mapping(edit, Edit, lang) for edit in entry.edits],
                "env": [*entry.env],
            }
            for entry in plan.variants
        ],
        "more_jobs": plan.more,
    }
