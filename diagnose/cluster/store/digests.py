"""The digest of a diagnosis that triage stores: a few KB of JSON, enough to group it, show it and follow its plan, in both languages.

All jobs with the same facts and configs share one digest, so it names no job, host or process, and configs and logs by their base names
only. docs/triage.md describes the fields.
"""

from __future__ import annotations

import json
from typing import Any

from diagnose import notebook
from diagnose.cluster.store import group_fingerprint
from diagnose.decide.verdict import Verdict as Ruling
from diagnose.diagnosis import Diagnosis, Json
from diagnose.facts import RANK, Notice, Witness
from diagnose.parse.model.event import Event, Frame
from diagnose.phrases import Text
from diagnose.plan.remedies.remedy import Edit, Plan, Remedy, Since
from diagnose.render.parts import card_bar
from diagnose.units import Size

#: The version of the fields.
VERSION = 1

#: The most causes, remedies, edits of one remedy, ranks, notices and places that are kept, and characters of a line of a log.
CAUSES, REMEDIES, EDITS, RANKS, NOTICES, PLACES, LINE = 6, 5, 12, 16, 4, 3, 320

#: Sizes in the message, as the JSON report calls them.
FIGURES = ("requested", "capacity", "free", "process_in_use", "allocated", "reserved_unallocated")


def digest(diagnosis: Diagnosis) -> str:
    """The digest of a failure, as JSON."""
    parts = group_fingerprint.parts(diagnosis)
    verdict, root, outcome = diagnosis.verdict, diagnosis.root, diagnosis.outcome
    steps = outcome.plan.steps if outcome.plan is not None else ()
    fields: dict[str, Json] = {
        "version": VERSION,
        "parts": None if parts is None else dict(parts._asdict()),
        "framework": _framework(diagnosis),
        "status": verdict.status,
        "family": verdict.family,
        "phase": verdict.phase,
        "headline": _text(verdict.headline),
        "event": None if root is None else _event(root),
        "card": _card(diagnosis),
        "request": _request(diagnosis),
        "causes": [_cause(ruling) for ruling in diagnosis.judgement.causes[:CAUSES]],
        "remedies": [_remedy(remedy, remedy.id in steps) for remedy in _kept_remedies(outcome.remedies, steps)],
        "plan": None if outcome.plan is None or not steps else _plan(outcome.plan),
        "question": None if not outcome.questions else {
            "why": _text(outcome.questions[0].why), "how": _text(outcome.questions[0].how), "set": outcome.questions[0].set},
        "notices": [_notice(notice) for notice in diagnosis.notices if notice.level != "info"][:NOTICES],
        "job": diagnosis.job,
        "tried": [[result, str(fact.value)] for result, name in notebook.FACTS.items() for fact in diagnosis.facts if fact.name == name],
    }  # fmt: skip
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    return _without_folders(text, [source.name for source in diagnosis.inputs])


def _without_folders(text: str, names: list[str]) -> str:
    """The digest with the inputs' base names in place of their paths, in sentences too."""
    for name in sorted(set(names), key=len, reverse=True):
        if base(name) != name:
            text = text.replace(json.dumps(name, ensure_ascii=False)[1:-1], json.dumps(base(name), ensure_ascii=False)[1:-1])
    return text


def read(text: str) -> dict[str, Any]:
    """Parse a digest."""
    fields: dict[str, Any] = json.loads(text)
    return fields


def base(name: str) -> str:
    """The last part of a path or URL."""
    return name.replace("\\", "/").rstrip("/").rpartition("/")[2] or name


def _text(text: Text) -> Json:
    return {"en": text.en, "zh": text.zh}


def _bytes(size: Size | None) -> int | None:
    return None if size is None else size.bytes


def _framework(diagnosis: Diagnosis) -> str | None:
    """The trainer, by the fact of the highest-ranked origin."""
    facts = [fact for fact in diagnosis.facts if fact.name == "train.framework" and isinstance(fact.value, str)]
    return str(min(facts, key=lambda fact: RANK[fact.origin]).value) if facts else None


def _event(event: Event) -> Json:
    """The failure: its sizes, its place in user code, and the first line of its evidence."""
    sizes: dict[str, Json] = {name: _bytes(getattr(event, name)) for name in FIGURES}
    line = event.evidence[0] if event.evidence else None
    ranks = event.ranks or (() if event.rank is None else (event.rank,))
    return {
        "exception": event.exception,
        "fatal": event.fatal,
        "attempt": event.attempt,
        "gpu": event.gpu,
        "ranks": [*ranks[:RANKS]],
        "count": event.count,
        "step": event.step,
        **sizes,
        "frame": _frame(group_fingerprint.user_frame(event.frames)),
        "line": None if line is None else _place(line),
    }


def _frame(frame: Frame | None) -> str | None:
    return None if frame is None else f"{base(frame.file)}:{frame.line} {frame.function}"[:LINE]


def _place(witness: Witness, with_text: bool = True) -> Json:
    place: dict[str, Json] = {"source": base(witness.source), "line": witness.line or None, "key": witness.key or None}
    text = witness.text if len(witness.text) <= LINE else witness.text[: LINE - 1] + "…"
    return {**place, "text": text} if with_text else place


def _card(diagnosis: Diagnosis) -> Json:
    """The bar of the card as in the report; segments from the ledger are marked as estimated."""
    bar = card_bar.build_card(diagnosis, "en")
    if bar is None:
        return None
    title = {"en": bar.title, "zh": (card_bar.build_card(diagnosis, "zh") or bar).title}
    return {"title": dict(title), "edge": bar.edge, "parts": [[part.kind, part.bytes, part.estimated] for part in bar.parts]}


def _request(diagnosis: Diagnosis) -> Json:
    """The tensor of the failed request; `named` if the log confirms it."""
    claim = next((attribution for attribution in diagnosis.attributions if attribution.event == diagnosis.verdict.event), None)
    if claim is None:
        return None
    return {"tensor": _text(claim.tensor), "numbers": claim.numbers, "bytes": claim.bytes, "named": claim.named, "also": claim.coincidence}


def _cause(ruling: Ruling) -> Json:
    return {
        "cause": ruling.cause,
        "rule": ruling.rule,
        "certainty": ruling.certainty,
        "also_true": ruling.also_true,
        "accounts_for": _bytes(ruling.accounts_for),
        "share": None if ruling.share is None else round(ruling.share, 4),
        "title": _text(ruling.title),
        "said": _text(ruling.explanation),
        "places": [_place(witness, with_text=False) for witness in dict.fromkeys(ruling.evidence) if witness.line or witness.key][:PLACES],
    }


def _kept_remedies(remedies: tuple[Remedy, ...], steps: tuple[str, ...]) -> list[Remedy]:
    """The plan's steps, then the best other remedies."""
    planned = [remedy for remedy in remedies if remedy.id in steps]
    return [*planned, *(remedy for remedy in remedies if remedy.id not in steps)][: max(REMEDIES, len(planned))]


def _remedy(remedy: Remedy, planned: bool) -> Json:
    price = remedy.price
    return {
        "remedy": remedy.id,
        "rule": remedy.rule,
        "planned": planned,
        "title": _text(remedy.title),
        "saves": _bytes(remedy.saves),
        "peak": _bytes(remedy.peak),
        "fits": remedy.fits,
        "price": {"results": price.results, "speed": price.speed, "effort": price.effort},
        "edits": [_edit(change) for change in remedy.edits[:EDITS]],
        "env": [*remedy.env],
        "command": None if remedy.command is None else _text(remedy.command),
    }


def _edit(change: Edit) -> Json:
    said: dict[str, Json] = {
        "target": base(change.target),
        "key": change.key,
        "from": change.frm,
        "to": change.to,
        "renamed": change.renamed,
    }
    return {**said, "written": change.written, "since": None if change.since is None else dict(change.since._asdict())}


def edit_of(said: dict[str, Any]) -> Edit:
    """An edit of a digest; older ones do not hold all of it."""
    since = said.get("since")
    return Edit(said["target"], said["key"], said["from"], said["to"], said["renamed"], said.get("written", ""), since and Since(**since))


def _plan(plan: Plan) -> Json:
    return {
        "steps": [*plan.steps],
        "edits": [_edit(change) for change in plan.edits[:EDITS]],
        "env": [*plan.env],
        "peak": _bytes(plan.predicted_peak),
        "margin": _bytes(plan.margin),
        "fits": plan.fits,
        "note": None if plan.note is None else _text(plan.note),
    }


def _notice(notice: Notice) -> Json:
    return {"level": notice.level, "message": _text(notice.message)}
