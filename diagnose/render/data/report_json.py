"""A diagnosis as plain data: the report of the contract, key by key."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite

from diagnose.budget.model.ledger import Attribution, Host, Ledger, Moment, Term, total
from diagnose.catalogue import Model
from diagnose.decide.verdict import Verdict as Ruling
from diagnose.diagnosis import Diagnosis, Json, Verdict
from diagnose.facts import Fact, Input, Notice, Value, Witness, declared
from diagnose.parse.model.event import Event
from diagnose.phrases import Lang
from diagnose.plan.pricing import fit
from diagnose.plan.rules.remedy import Edit, Plan, Question, Rejected, Remedy, Unsettled
from diagnose.units import Size, Version
from diagnose.version import __version__

SCHEMA = "oomdoctor.report/1"

#: A witness shows at most this many characters of its line.
WITNESS_LIMIT = 500

#: The sizes of an event, in the order of the contract.
FIGURES = (
    *("requested", "capacity", "free", "allowed", "process_in_use", "allocated", "reserved_unallocated", "reserved_total"),
    *("private_pools", "mps_allocated", "other_allocations", "max_allowed", "current_active"),
)


def to_dict(diagnosis: Diagnosis, lang: Lang = "en") -> dict[str, Json]:
    """The report of the contract, its keys in the contract's order."""
    judged, outcome = diagnosis.judgement, diagnosis.outcome
    report: dict[str, Json] = {
        "schema": SCHEMA,
        "tool": {"name": "oomdoctor", "version": __version__},
        "inputs": [of_input(each) for each in diagnosis.inputs],
        "verdict": of_verdict(diagnosis.verdict, lang),
        "events": [of_event(event) for event in diagnosis.events],
        "facts": [of_fact(fact) for fact in diagnosis.facts],
        "attributions": [of_attribution(each, diagnosis.events, lang) for each in diagnosis.attributions],
        "budgets": [of_ledger(ledger, lang) for ledger in diagnosis.ledgers],
        "causes": [of_cause(cause, lang) for cause in judged.causes],
        "undecided": [of_unsettled(each, lang) for each in outcome.unsettled],
        "remedies": [of_remedy(remedy, lang) for remedy in outcome.remedies],
        "rejected": [of_rejected(each, lang) for each in outcome.rejected],
        "plan": None if outcome.plan is None else of_plan(outcome.plan, lang),
        "questions": [of_question(question, lang) for question in outcome.questions],
        "notices": [of_notice(notice, lang) for notice in diagnosis.notices],
    }
    if diagnosis.snapshot is not None:
        from diagnose.render.parts.snapshot_view import of_snapshot

        report["snapshot"] = of_snapshot(diagnosis.snapshot, lang)
    if diagnosis.outlook is not None:
        from diagnose.render.data.outlook_data import of_outlook

        report["check"] = of_outlook(diagnosis.outlook, diagnosis, lang)
    return report


def of_size(size: Size | None) -> Json:
    if size is None:
        return None
    figures: dict[str, Json] = {"bytes": size.bytes, "low": size.low, "high": size.high}
    return {**figures, "text": size.text} if size.text else figures


def of_value(value: Value) -> Json:
    """A fact's value: a size, a number, a word, true or false, null for unknown; a shape by the id of its model."""
    if isinstance(value, Size):
        return of_size(value)
    if isinstance(value, Version):
        return str(value)
    if isinstance(value, Model):
        return value.id
    if isinstance(value, float) and not isfinite(value):
        return None  # JSON has no word for it
    return value


def of_witness(witness: Witness | None) -> Json:
    """A line of an input, a key of a file, or a word for what is neither."""
    if witness is None:
        return None
    if witness.key:
        return {"source": witness.source, "line": witness.line or None, "key": witness.key}
    text = witness.text[:WITNESS_LIMIT]
    if witness.line:
        return {"source": witness.source, "line": witness.line, "column": witness.column or 1, "text": text}
    return {"source": witness.source, "text": text}


def of_witnesses(evidence: Iterable[Witness]) -> Json:
    return [of_witness(witness) for witness in evidence]


def of_input(given: Input) -> Json:
    told: dict[str, Json] = {"name": given.name, "kind": given.kind, "bytes": given.bytes, "lines": given.lines}
    return {**told, "encoding": given.encoding, "notes": [*given.notes]}


def of_verdict(verdict: Verdict, lang: Lang) -> Json:
    return {
        "status": verdict.status,
        "family": verdict.family,
        "phase": verdict.phase,
        "headline": verdict.headline.to(lang),
        "event": verdict.event,
    }


def of_event(event: Event) -> Json:
    sizes: dict[str, Json] = {name: of_size(getattr(event, name)) for name in FIGURES}
    return {
        "family": event.family,
        "exception": event.exception,
        "fatal": event.fatal,
        "attempt": event.attempt,
        "rank": event.rank,
        "local_rank": event.local_rank,
        "ranks": [*event.ranks],
        "host": event.host,
        "pid": event.pid,
        "gpu": event.gpu,
        "step": event.step,
        "phase": event.phase,
        **sizes,
        "other_processes": [{"pid": other.pid, "in_use": of_size(other.in_use)} for other in event.other_processes],
        "frames": [{"file": frame.file, "line": frame.line, "function": frame.function} for frame in event.frames],
        "consequence_of": event.consequence_of,
        "count": event.count,
        "members": [of_event(member) for member in event.members],
        "evidence": of_witnesses(event.evidence),
        "role": event.role,
        "reason": event.reason or None,
    }


def unit_of(name: str) -> str | None:
    """The unit that a declared fact's number is in: bytes for a size, nothing for what is counted or named."""
    entry = declared(name)
    return "bytes" if entry is not None and entry.kind == "size" else None


def of_fact(fact: Fact) -> Json:
    return {"name": fact.name, "value": of_value(fact.value), "unit": unit_of(fact.name), "witness": of_witness(fact.witness)}


def of_attribution(claim: Attribution, events: tuple[Event, ...], lang: Lang) -> Json:
    """The witness is the line that prints the request."""
    evidence = events[claim.event].evidence if claim.event < len(events) else ()
    return {
        "event": claim.event,
        "tensor": claim.tensor.to(lang),
        "formula": claim.formula,
        "numbers": claim.numbers,
        "bytes": claim.bytes,
        "block_bytes": claim.block_bytes,
        "exact": claim.exact,
        "coincidence": claim.coincidence,
        "agrees": claim.agrees,
        "witness": of_witness(evidence[0] if evidence else None),
        "at_least": claim.at_least,
    }


def of_term(term: Term, whole: Size, lang: Lang) -> Json:
    """One line of the ledger; `share` is of the moment's sum."""
    return {
        "name": term.name.to(lang),
        "size": of_size(term.size),
        "share": round(term.size.bytes / whole.bytes, 4) if whole.bytes > 0 else None,
        "symbols": term.symbols,
        "numbers": term.numbers,
        "source": term.source,
        "key": term.key,
        "group": term.group,
    }


def of_moment(moment: Moment, lang: Lang) -> Json:
    whole = moment.total
    return {"name": moment.name, "total": of_size(whole), "terms": [of_term(term, whole, lang) for term in moment.terms]}


def of_host(host: Host, lang: Lang) -> Json:
    """What stays on the host, and the moments that take more."""
    whole = host.total
    return {
        "total": of_size(whole),
        "terms": [of_term(term, whole, lang) for term in host.terms],
        "moments": [of_moment(moment, lang) for moment in host.moments],
    }


def of_ledger(ledger: Ledger, lang: Lang) -> Json:
    return {
        "role": ledger.role,
        "gpus": ledger.gpus,
        "capacity": of_size(ledger.capacity),
        "usable": of_size(ledger.usable),
        "moments": [of_moment(moment, lang) for moment in ledger.moments],
        "peak_moment": ledger.peak.name if ledger.peak else None,
        "observed": of_size(ledger.observed),
        "unexplained": of_size(ledger.unexplained),
        "host": of_host(ledger.host, lang),
        "failing_moment": ledger.failing,
        "fits": fit.sits(ledger),
        "unknown": [*ledger.unknown],
        "complete": ledger.complete,
        "beside": [of_term(term, total([other.size for other in ledger.beside]), lang) for term in ledger.beside],
    }


def of_cause(ruling: Ruling, lang: Lang) -> Json:
    return {
        "id": ruling.cause,
        "rule": ruling.rule,
        "certainty": "certain" if ruling.outcome == "fires" else "likely",
        "also_true": ruling.also_true,
        "accounts_for": of_size(ruling.accounts_for),
        "title": ruling.title.to(lang),
        "explanation": ruling.explanation.to(lang),
        "evidence": of_witnesses(ruling.evidence),
        "url": ruling.url or None,
        "share": ruling.share,
    }


def of_unsettled(each: Unsettled, lang: Lang) -> Json:
    return {"rule": each.rule, "fact": each.fact, "how": each.how.to(lang)}


def of_edit(edit: Edit) -> Json:
    shown: dict[str, Json] = {"target": edit.target, "key": edit.key, "from": edit.frm, "to": edit.to}
    return {**shown, "renamed": edit.renamed} if edit.renamed else shown


def of_remedy(remedy: Remedy, lang: Lang) -> Json:
    price = remedy.price
    return {
        "id": remedy.id,
        "rule": remedy.rule,
        "title": remedy.title.to(lang),
        "why": remedy.why.to(lang),
        "saves": of_size(remedy.saves),
        "fits": remedy.fits,
        "price": {
            "results": price.results,
            "speed": price.speed,
            "effort": price.effort,
            "host_memory": of_size(price.host_memory),
        },
        "edits": [of_edit(edit) for edit in remedy.edits],
        "env": [*remedy.env],
        "command": remedy.command.to(lang) if remedy.command else None,
        "references": [*remedy.references],
        "url": remedy.url or None,
        "peak": of_size(remedy.peak),
    }


def of_rejected(rejected: Rejected, lang: Lang) -> Json:
    return {"id": rejected.id, "rule": rejected.rule, "reason": rejected.reason.to(lang)}


def of_plan(plan: Plan, lang: Lang) -> Json:
    ladder: list[Json] = [
        {"knob": rung.knob, "from": of_value(rung.frm), "to": of_value(rung.to), "predicted_peak": of_size(rung.predicted_peak)}
        for rung in plan.ladder
    ]
    return {
        "steps": [*plan.steps],
        "edits": [of_edit(edit) for edit in plan.edits],
        "env": [*plan.env],
        "predicted_peak": of_size(plan.predicted_peak),
        "margin": of_size(plan.margin),
        "fits": plan.fits,
        "ladder": ladder,
        "note": plan.note.to(lang) if plan.note else None,
    }


def of_question(question: Question, lang: Lang) -> Json:
    return {"fact": question.fact, "why": question.why.to(lang), "how": question.how.to(lang), "set": question.set}


def of_notice(notice: Notice, lang: Lang) -> Json:
    return {
        "level": notice.level,
        "code": notice.code,
        "message": notice.message.to(lang),
        "witness": of_witness(notice.witness),
    }
