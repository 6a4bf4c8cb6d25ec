"""A draft made into the plan that is shown: what goes with it, its edits, its peak, what each step adds, the ladder above it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from diagnose import rule_files, vocabulary
from diagnose.facts import Value
from diagnose.phrases import Text, phrase, same
from diagnose.plan.choose.evaluation import in_commands
from diagnose.plan.choose.plan_draft import Draft, is_hardware, is_release
from diagnose.plan.edits import step_rows
from diagnose.plan.edits.editability import edits_of, implied_changes
from diagnose.plan.edits.sentences import fill_facts, join_texts, value_text, why_saves
from diagnose.plan.pricing import larger_cards
from diagnose.plan.pricing.candidate_values import CAPACITY, WORLD, with_companions
from diagnose.plan.pricing.context import Job, Offer
from diagnose.plan.pricing.fit import ORDER, margin
from diagnose.plan.pricing.pricer import Changes
from diagnose.plan.pricing.spread import cards_that_do
from diagnose.plan.remedies.remedy import Edit, Plan, Remedy, Rung
from diagnose.units import Size, show


def with_extras(draft: Draft, offers: Sequence[Offer], job: Job) -> Draft:
    """The plan and what goes with it at no cost: keys that leading causes want put right, the allocator switch. In order of rank."""
    for offer in offers:
        if offer in draft.steps:
            continue
        together = {**draft.changes, **offer.changes}
        if offer.id in vocabulary.having("puts_right") and offer.leads and offer.changes:
            verdict = job.bench.fits({**together, **draft.beside})
            if ORDER.index(verdict) <= ORDER.index(draft.fits):
                draft = Draft((*draft.steps, offer), together, verdict, draft.beside)
        elif offer.id in vocabulary.having("joins_plans") and offer.call is not None:
            draft = Draft((*draft.steps, offer), together, draft.fits, draft.beside)
    return draft


def _ladder(draft: Draft, job: Job) -> tuple[Rung, ...]:
    from diagnose.plan.choose.growth_ladder import rungs  # only for plans that surely fit: not loaded at start

    return rungs(draft.all, job)


def finished(draft: Draft, job: Job) -> Plan:
    """The plan with its edits, its peak and margin, and the ladder above it."""
    bench = job.bench
    after = bench.after(draft.all)
    known = bench.trust in ("full", "short") and after is not None and after.complete
    peak = predicted(draft, job) if known else None
    usable = bench.room(after)
    if usable is not None:
        usable = sum((step.saving.bytes for step in draft.steps if step.saving and given_back(step)), usable)
    return Plan(
        steps=tuple(step.id for step in draft.steps),
        edits=edits(draft, job),
        env=tuple(dict.fromkeys(line for step in draft.steps for line in step.remedy.env)),
        predicted_peak=peak,
        margin=margin(peak, usable) if peak and usable else None,
        fits=draft.fits,
        ladder=_ladder(draft, job) if bench.trust == "full" and draft.fits == "yes" else (),
        note=note(draft, peak, job) if known else None,
        before=bench.largest(bench.before) if peak else None,
        after=bench.largest(after) if peak else None,
    )


def given_back(step: Offer) -> bool:
    """Whether it makes the card emptier rather than the job smaller: a figure of the message, not of the ledger."""
    return bool(step.rule.at) and not step.rule.bounded and not is_release(step) and not shrinks_states(step)


def shrinks_states(step: Offer) -> bool:
    """Whether it makes the job's own states smaller by a figure that no ledger prices."""
    return not step.by_ledger and step.id in rule_files.table("vocabulary")["remedy"]["states"]


def note(draft: Draft, peak: Size | None, job: Job) -> Text | None:
    """Where nothing that keeps the card fits, that this is so; where nothing at all does, that too."""
    if job.bench.trust != "full" or peak is None:
        return None
    if draft.fits == "yes" and any(map(is_hardware, draft.steps)):
        return spread_instead(job) or phrase("plan.only_hardware")
    usable = job.bench.room(job.bench.after(draft.all))
    if draft.fits in ("no", "unlikely") and usable is not None and not any(is_release(step) for step in draft.steps):
        return spread_instead(job) or phrase("plan.nothing_fits")
    return None


def spread_instead(job: Job) -> Text | None:
    """Where nobody says how many processes train, what is not enough holds for one card only."""
    cards = cards_that_do(job)
    return phrase("plan.nothing_on_one", cards=str(cards)) if cards else None


def predicted(draft: Draft, job: Job) -> Size | None:
    """The peak after all steps; a step that the ledger does not price takes off what its cause accounts for."""
    after = job.bench.after(draft.all)
    need = job.bench.need(after)
    if need is None:
        return None
    beyond = [
        step.saving.bytes for step in draft.steps if (is_release(step) or shrinks_states(step)) and step.remedy.peak is None and step.saving
    ]
    for size in beyond:
        need = need - size
    return need


def in_sequence(draft: Draft, job: Job) -> dict[str, Offer]:
    """The steps as they stand in the plan, by id: each with the value that it has there and what it takes off after those before it.
    Only where the ledger prices more than one of them."""
    told = [step for step in draft.steps if step.changes and step.by_ledger and step.rule.turns != CAPACITY]
    if len(draft.steps) < 2 or not told or job.bench.trust != "full":
        return {}
    found = {step.id: replace(step, remedy=as_card(step, draft, job)) for step in draft.steps if step.rule.turns == CAPACITY}
    if len(told) < 2:
        return found
    held: dict[str, Value] = {}
    for step in told:
        mine = share_of(step, draft)
        brought = implied_changes(edits_of(mine, job) or (), mine, job.documents, job.book) if draft.beside else {}
        then = {**held, **mine, **{knob: value for knob, value in brought.items() if knob in draft.beside}}
        before, after = job.bench.need(job.bench.after(held)), job.bench.need(job.bench.after(then))
        held = then
        if before is None or after is None:
            return {}
        elsewhere = step is told[0] and mine == step.changes and step.saving is not None and step.saving.moment
        found[step.id] = step if elsewhere else _as_step(step, mine, before, after, job, first=step is told[0])
    return found


def share_of(step: Offer, draft: Draft) -> dict[str, Value]:
    """What one step changes, with the values that it has in the plan."""
    return {knob: draft.changes[knob] for knob in step.changes if knob in draft.changes}


def in_order(draft: Draft, job: Job) -> Draft:
    """The steps in an order in which each takes something off the peak that those before it left, as far as there is one; else as they
    come. What leads goes before all others, and what the ledger does not price keeps its place."""
    rest = [step for step in draft.steps if step.changes and step.by_ledger]
    if len(rest) < 2 or job.bench.trust != "full":
        return draft
    ordered = [rest.pop(0)] if rest[0].leads else []
    held = share_of(ordered[0], draft) if ordered else {}
    while rest:
        gains = [_gain(held, share_of(step, draft), job) for step in rest]
        best = next((at for at, gain in enumerate(gains) if gain > job.bench.noticeable), gains.index(max(gains)))
        step = rest.pop(best)
        held |= share_of(step, draft)
        ordered.append(step)
    following = iter(ordered)
    return replace(draft, steps=tuple(next(following) if step in ordered else step for step in draft.steps))


def _gain(held: Changes, mine: Changes, job: Job) -> int:
    """What the changes take off the peak once the others are in effect."""
    before, after = job.bench.need(job.bench.after(held)), job.bench.need(job.bench.after({**held, **mine}))
    return before.bytes - after.bytes if before is not None and after is not None else 0


def as_card(step: Offer, draft: Draft, job: Job) -> Remedy:
    """A larger card, of the size that is enough beside the other steps."""
    why = larger_cards.told(draft.changes, job)
    peak = job.bench.need(job.bench.after(draft.changes))
    if why is None:
        return step.remedy
    title, knobs = larger_cards.titled(fill_facts(step.rule.title, job), draft.changes), ((CAPACITY, draft.changes[CAPACITY]),)
    return replace(step.remedy, title=title, why=why, peak=peak, fits=draft.fits, knobs=knobs)


def _as_step(step: Offer, mine: dict[str, Value], before: Size, after: Size, job: Job, *, first: bool) -> Offer:
    """One step with its value in the plan, and the peaks before and after it there."""
    from diagnose.plan.pricing.saving import Saving, beyond, difference

    gone = difference(before, after)
    figures = {"saves": show(max(0, gone.bytes)), "before": show(before.bytes), "after": show(after.bytes)}
    if first and mine == step.changes:
        why = why_saves(job, Saving(gone), after)
    elif step.rule.turns in mine and mine != step.changes:
        why = phrase("plan.step_value", value=value_text(mine[step.rule.turns or ""]), **figures)
    else:
        why = phrase("plan.step", **figures)
    asked = with_companions(step.rule, job.bench, mine[step.rule.turns]) if step.rule.turns in mine else mine
    made = edits_of(mine, job) or step.remedy.edits if mine != step.changes else step.remedy.edits
    why = join_texts(why, step_rows.lost_rows(asked, job) or same(""), in_commands(made, job))
    title = larger_cards.titled(fill_facts(step.rule.title, job), mine) if WORLD in mine else step.remedy.title
    remedy = replace(
        step.remedy, title=title, why=why, saves=gone, peak=after, edits=made, knobs=tuple(mine.items()), beyond=beyond(gone, job.book)
    )
    return replace(step, remedy=remedy)


def as_read_again(draft: Draft, job: Job) -> Draft:
    """The draft as the edited files will be read: an edit may set more than it was made for."""
    beside = implied_changes(edits(draft, job), draft.changes, job.documents, job.book)
    return replace(draft, beside=beside, fits=job.bench.fits({**draft.changes, **beside})) if beside else draft


def edits(draft: Draft, job: Job) -> tuple[Edit, ...]:
    """One edit for each key: what the steps say, with values sought anew where they were combined. Where one key holds what several
    steps set (an allocator's string, a word for stage and offload) it is written for all of them at once."""
    own = {
        step.rule.turns
        for step in draft.steps
        if step.changes and all(draft.changes.get(knob) == value for knob, value in step.changes.items())
    }
    found = [edit for step in draft.steps if step.rule.turns in own or not step.changes for edit in step.remedy.edits]
    for step in draft.steps:
        if step.rule.turns not in own and step.changes:
            found += edits_of({knob: draft.changes[knob] for knob in step.changes if knob in draft.changes}, job) or ()
    by_key: dict[tuple[str, str], list[Edit]] = {}
    for edit in found:
        by_key.setdefault((edit.target, edit.key), []).append(edit)
    together = edits_of(draft.changes, job) or () if len(draft.steps) > 1 else ()
    is_same = {(edit.target, edit.key) for edit in together} == by_key.keys()  # a number may count the cards that another step brings
    if is_same or any(len({edit.to for edit in same}) > 1 for same in by_key.values()):
        found += together
    return _renamed_once(tuple({(edit.target, edit.key): edit for edit in found}.values()))


def _renamed_once(edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
    """A key that one step would add and another gives to a misspelt line stands once: the line is renamed and takes the value."""
    added = {(edit.target, edit.key): edit.to for edit in edits if edit.frm is None and not edit.renamed}
    taken = {(edit.target, edit.renamed) for edit in edits if edit.renamed}
    return tuple(
        edit._replace(to=added.get((edit.target, edit.renamed), edit.to)) if edit.renamed else edit
        for edit in edits
        if edit.renamed or edit.frm is not None or (edit.target, edit.key) not in taken
    )
