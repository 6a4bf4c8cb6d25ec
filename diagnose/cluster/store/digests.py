"""What is kept of a diagnosis: enough to group it, to show it, and to follow its plan; a few KB of JSON, its sentences in both languages.

One digest answers every job with the same facts and configs, so nothing in it belongs to one of them alone: configs and logs are called by
their base names, and no job, host or process is named. docs/triage.md describes the fields.
"""

from __future__ import annotations

import json
from typing import Any

from diagnose.cluster.store import fingerprints
from diagnose.decide.verdict import Verdict as Ruling
from diagnose.diagnosis import Diagnosis, Json
from diagnose.facts import Notice, Witness
from diagnose.parse.model.event import Event, Frame
from diagnose.phrases import Text
from diagnose.plan.rules.remedy import Edit, Plan, Remedy
from diagnose.render.parts import card
from diagnose.units import Size

#: The version of the fields below.
VERSION = 1

#: So many causes, remedies, edits of one remedy, ranks, notices and places; a line of a log is cut at so many characters.
CAUSES, REMEDIES, EDITS, RANKS, NOTICES, PLACES, LINE = 6, 5, 12, 16, 4, 3, 320

#: Figures of the message, as the report of the contract calls them.
FIGURES = ("requested", "capacity", "free", "process_in_use", "allocated", "reserved_unallocated")


def digest(diagnosis: Diagnosis) -> str:
    """The digest of a failure, as JSON."""
    found = fingerprints.parts(diagnosis)
    verdict, root, outcome = diagnosis.verdict, diagnosis.root, diagnosis.outcome
    steps = outcome.plan.steps if outcome.plan is not None else ()
    kept: dict[str, Json] = {
        "version": VERSION,
        "parts": None if found is None else dict(found._asdict()),
        "framework": _framework(diagnosis),
        "status": verdict.status,
        "family": verdict.family,
        "phase": verdict.phase,
        "headline": _text(verdict.headline),
        "event": None if root is None else _event(root),
        "card": _card(diagnosis),
        "request": _request(diagnosis),
        "causes": [_cause(ruling) for ruling in diagnosis.judgement.causes[:CAUSES]],
        "remedies": [_remedy(each, each.id in steps) for each in _first(outcome.remedies, steps)],
        "plan": None if outcome.plan is None or not steps else _plan(outcome.plan),
        "question": None if not outcome.questions else {
            "why": _text(outcome.questions[0].why), "how": _text(outcome.questions[0].how), "set": outcome.questions[0].set},
        "notices": [_notice(said) for said in diagnosis.notices if said.level != "info"][:NOTICES],
    }  # fmt: skip
    return _without_folders(json.dumps(kept, ensure_ascii=False, separators=(",", ":")), [given.name for given in diagnosis.inputs])


def _without_folders(text: str, names: list[str]) -> str:
    """The digest with the inputs called by their base names in sentences too."""
    for name in sorted(set(names), key=len, reverse=True):
        if base(name) != name:
            text = text.replace(json.dumps(name, ensure_ascii=False)[1:-1], json.dumps(base(name), ensure_ascii=False)[1:-1])
    return text


def read(text: str) -> dict[str, Any]:
    """A digest as plain data."""
    held: dict[str, Any] = json.loads(text)
    return held


def base(name: str) -> str:
    """The last part of a path or address: what the files of many jobs have in common."""
    return name.replace("\\", "/").rstrip("/").rpartition("/")[2] or name


def _text(text: Text) -> Json:
    return {"en": text.en, "zh": text.zh}


def _bytes(size: Size | None) -> int | None:
    return None if size is None else size.bytes


def _framework(diagnosis: Diagnosis) -> str | None:
    """The trainer, as the best-placed witness calls it."""
    from diagnose.facts import RANK

    said = [fact for fact in diagnosis.facts if fact.name == "train.framework" and isinstance(fact.value, str)]
    return str(min(said, key=lambda fact: RANK[fact.origin]).value) if said else None


def _event(event: Event) -> Json:
    """The failure's figures and its place in user code; its line is the first that proves it."""
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
        "frame": _frame(fingerprints.user_frame(event.frames)),
        "line": None if line is None else _place(line),
    }


def _frame(frame: Frame | None) -> str | None:
    return None if frame is None else f"{base(frame.file)}:{frame.line} {frame.function}"[:LINE]


def _place(witness: Witness, quoted: bool = True) -> Json:
    held: dict[str, Json] = {"source": base(witness.source), "line": witness.line or None, "key": witness.key or None}
    text = witness.text if len(witness.text) <= LINE else witness.text[: LINE - 1] + "…"
    return {**held, "text": text} if quoted else held


def _card(diagnosis: Diagnosis) -> Json:
    """The card as the report draws it: its parts in order, `estimated` where the ledger says so and not the log."""
    shown = card.of(diagnosis, "en")
    if shown is None:
        return None
    title = {"en": shown.title, "zh": (card.of(diagnosis, "zh") or shown).title}
    return {"title": dict(title), "edge": shown.edge, "parts": [[part.kind, part.bytes, part.estimated] for part in shown.parts]}


def _request(diagnosis: Diagnosis) -> Json:
    claim = next((each for each in diagnosis.attributions if each.event == diagnosis.verdict.event), None)
    if claim is None:
        return None
    named = claim.agrees and (claim.exact or claim.at_least)
    return {"tensor": _text(claim.tensor), "numbers": claim.numbers, "bytes": claim.bytes, "named": named, "also": claim.coincidence}


def _cause(ruling: Ruling) -> Json:
    return {
        "cause": ruling.cause,
        "rule": ruling.rule,
        "certainty": "certain" if ruling.outcome == "fires" else "likely",
        "also_true": ruling.also_true,
        "accounts_for": _bytes(ruling.accounts_for),
        "share": None if ruling.share is None else round(ruling.share, 4),
        "title": _text(ruling.title),
        "said": _text(ruling.explanation),
        "places": [_place(each, quoted=False) for each in dict.fromkeys(ruling.evidence) if each.line or each.key][:PLACES],
    }


def _first(remedies: tuple[Remedy, ...], steps: tuple[str, ...]) -> list[Remedy]:
    """The steps of the plan, then the best of the others."""
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
    return {"target": base(change.target), "key": change.key, "from": change.frm, "to": change.to, "renamed": change.renamed}


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


def _notice(said: Notice) -> Json:
    return {"level": said.level, "message": _text(said.message)}
