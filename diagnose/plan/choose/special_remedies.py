"""Two remedies that no table can say: another release of a library, and a key put right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from diagnose import rule_files, vocabulary
from diagnose.adapters.formats.config_value import Leaf
from diagnose.adapters.formats.settings import Document, Entry
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.schema.value_meaning import NOTHING, meaning
from diagnose.decide.known_bad_releases import entries, ways_out
from diagnose.decide.verdict import Verdict
from diagnose.errors import UserError
from diagnose.facts import Fact, Value, declared, typed
from diagnose.phrases import phrase, same
from diagnose.plan.choose.evaluation import freed, offered
from diagnose.plan.edits.editability import edits_of
from diagnose.plan.edits.sentences import done_by, fill_facts, why_saves
from diagnose.plan.pricing.context import Job, Offer
from diagnose.plan.pricing.saving import Saving
from diagnose.plan.remedies.remedy import Edit, Rejected
from diagnose.plan.remedies.remedy_rules import Rule
from diagnose.units import Version


def _package(library: str) -> str:
    """What `pip install` calls a library."""
    entry = declared(f"version.{library}")
    return (entry.package if entry else "") or library


# -- releases


def another_release(rule: Rule, job: Job) -> Offer | Rejected | None:
    """Upgrade or downgrade where a release known to be bad is in use; None where none is."""
    direction = rule.remedy.partition("_")[0]
    for verdict, entry in known_bad(job):
        if rule.remedy in ways_out(entry):
            return release_offer(rule, job, verdict, entry)
    if rule.remedy in job.calls:
        return newer(rule, job)
    versions = [f"{fact.name.partition('.')[2]} {fact.value}" for fact in _versions(job)]
    if direction == "downgrade" and versions:
        return Rejected(rule.remedy, rule.id, phrase("plan.no_bad_release", releases=", ".join(versions[:4])), idle=True)
    return None


def newer(rule: Rule, job: Job) -> Offer | None:
    """A cause calls for another release although none is known to be bad: only what is in use can be named. An older one is offered where
    the report says that it worked."""
    library, cause = job.book.word("train.framework"), job.calls[rule.remedy].cause
    if rule.remedy == vocabulary.releases()["downgrade"]:
        said = next((fact for fact in job.book.all("report.helped") if fact.value == rule.remedy), None)
        return offered(rule, job, {}, None, None, "unknown", phrase("plan.older", said=said.witness.text)) if said is not None else None
    is_program = (
        "run.project" in job.book or "run.program" in job.book or cause.outcome == "fires"
    )  # which is not named, and yet the defect is its own for sure
    if library is None and not (is_program and cause.cause in vocabulary.having("in_code")):
        return None
    why = phrase("plan.newer", title=cause.title)
    command = same(f"pip install -U {_package(library)}") if library is not None else None  # a project may be a checkout
    offer = offered(rule, job, {}, None, None, "unknown", why, command=command)
    return replace(offer, remedy=replace(offer.remedy, title=phrase("plan.newer_title")))


def _versions(job: Job) -> list[Any]:
    """The releases that are known, each once."""
    named = {fact.name: fact for fact in job.book if fact.name.startswith("version.") and fact.value is not None}
    return list(named.values())


def known_bad(job: Job) -> Iterator[tuple[Verdict, Mapping[str, Any]]]:
    """The entries of rules/versions whose rule speaks, best first: those of the leading causes, then the others."""
    table = {entry["id"]: entry for entry in entries(rule_files.table("versions"))}
    speaking = [verdict for verdict in job.judgement.all if verdict.rule in table and verdict.outcome in ("fires", "likely")]
    for verdict in sorted(speaking, key=lambda verdict: verdict.outcome != "fires"):
        yield verdict, table[verdict.rule]


def release_offer(rule: Rule, job: Job, verdict: Verdict, entry: Mapping[str, Any]) -> Offer:
    """The other release, priced by the ledger where its terms depend on it, else by what the cause accounts for."""
    library = str(entry["library"])
    bound = (
        f">={entry['until']}"
        if rule.remedy == vocabulary.releases()["upgrade"] and "until" in entry
        else f"<{entry['since']}"
        if "since" in entry
        else ""
    )
    command = same(f"pip install '{_package(library)}{bound}'")
    titled = rule._replace(title=phrase(f"plan.{rule.remedy}", library=_package(library), release=bound.lstrip("<>="))) if bound else rule
    changes: dict[str, Value] = {f"version.{library}": Version(str(entry["until"]))} if bound.startswith(">=") else {}
    bench = job.bench
    saving = bench.saving(changes) if changes and bench.trust in ("full", "short") else None
    if saving is not None and not saving.moment and saving.bytes.bytes > job.bench.noticeable:
        after = bench.after(changes)
        peak = bench.need(after)
        return offered(titled, job, changes, saving, peak, bench.fits(changes), why_saves(job, saving, peak), command=command)
    gone = verdict.accounts_for
    why = phrase("plan.release", library=library, bound=bound, title=verdict.title)
    verdict_fits = freed(job, gone) if gone else "unknown"
    return offered(titled, job, changes, Saving(gone) if gone else None, None, verdict_fits, why, command=command)


# -- keys that are not read


def repaired(rule: Rule, job: Job) -> Offer | None:
    """The value that stands under a key the framework does not read, moved to the key it does read."""
    unread = {_place(fact): fact.value for fact in job.book.all("config.unknown_key")}
    meant = [(unread[_place(fact)], fact.value) for fact in job.book.all("config.wanted_knob") if _place(fact) in unread]
    changes: dict[str, Value] = {}
    edits: list[Edit] = []
    for key, knob in meant:
        found = written(str(key), job)
        if found is None or not isinstance(knob, str) or declared(knob) is None:
            continue
        document, entry = found
        value = meant_by(document, knob, entry)
        if value is None:
            continue
        changes[knob] = value
        new = edits_of({knob: value}, job)
        if new:
            edits.append(Edit(document.name, entry.key, entry.written, entry.written, renamed=new[0].key))
    if not changes and (cured := unlocked(job)):
        lever, changes = cured
        edits += edits_of(lever, job) or ()
    if not changes:
        call = job.calls.get(rule.remedy)
        if call is None:
            return None
        why = call.cause.put_right or (done_by(rule, job) or fill_facts(rule.title, job))
        return offered(rule, job, {}, None, None, "unknown", why)
    saving = job.bench.saving(changes) if job.bench.trust in ("full", "short") else None
    real = saving if saving is not None and saving.bytes.bytes > job.bench.noticeable and not saving.supposed else None
    peak = job.bench.after(changes)
    call = job.calls.get(rule.remedy)
    told = call.cause.put_right if call is not None and not meant else None
    why = told or phrase("plan.repair", keys=", ".join(str(key) for key in unread.values()))
    fits = job.bench.fits(changes) if real else "unknown"
    offer = offered(rule, job, changes, real, job.bench.need(peak) if real else None, fits, why)
    return replace(offer, remedy=replace(offer.remedy, edits=tuple(edits)))


def unlocked(job: Job) -> tuple[dict[str, Value], dict[str, Value]] | None:
    """Where a key is read and another setting keeps it from acting: that setting as it has to be, and with it what then acts."""
    knob = job.book.word("config.missed_knob") if job.book.switch("config.missed_other") is True else None
    for rule in rule_files.table("effective")["ineffective"]:
        if "cure" in rule and knob in rule["knob"]:
            lever: dict[str, Value] = {rule["real"]: typed(rule["real"], str(rule["cure"]))}
            return lever, {**lever, str(knob): typed(str(knob), str(rule["is"][0]))}
    return None


def meant_by(document: Document, knob: str, entry: Entry) -> Value:
    """What the value would mean under the framework's own key for the knob; None where that cannot be known."""
    text = entry.written.strip("\"'")
    for key in framework_tables.table(document.framework).of(knob):
        if key.addable:
            try:
                value = meaning(key, Leaf(key.key, text, entry.written, 0, 0, 1, 1))
            except ValueError:
                return None
            return None if value is NOTHING else cast("Value", value)
    try:
        return typed(knob, text)
    except UserError:
        return None


def _place(fact: Fact) -> tuple[str, int, int]:
    """Facts of one key stand in one place."""
    return fact.witness.source, fact.witness.line, fact.witness.column


def written(key: str, job: Job) -> tuple[Document, Entry] | None:
    """Where a key stands in the given documents."""
    for document in job.documents:
        for entry in document.entries:
            if entry.key == key:
                return document, entry
    return None
