"""From verdicts to what is to be done: remedies, rejected advice, the plan, questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from diagnose import rule_files, vocabulary
from diagnose.adapters.formats.settings import Document
from diagnose.budget.model.ledger import Attribution, Ledger
from diagnose.decide.verdict import Judgement, Verdict
from diagnose.errors import crashed
from diagnose.facts import FactBook, Value
from diagnose.phrases import Text, phrase, same
from diagnose.plan.choose import base_rates, gate, tensor_relief
from diagnose.plan.choose.evaluation import weigh
from diagnose.plan.choose.plan_completion import finished, in_sequence
from diagnose.plan.choose.plan_draft import Draft, is_beside_the_point
from diagnose.plan.choose.plan_search import as_it_is, draft_of
from diagnose.plan.choose.ranking import ranked, rejections
from diagnose.plan.choose.relevance import several
from diagnose.plan.choose.special_remedies import another_release, repaired
from diagnose.plan.edits.verified_edits import verified
from diagnose.plan.pricing.context import SAID, Editor, Job, Offer
from diagnose.plan.pricing.fit import may_exceed
from diagnose.plan.pricing.pricer import Reprice
from diagnose.plan.questions.askable_facts import asked_first
from diagnose.plan.questions.open_questions import is_beside_the_estimate, questions
from diagnose.plan.questions.unsettled_rules import unsettled
from diagnose.plan.remedies import remedy_rules
from diagnose.plan.remedies.remedy import Outcome, Price, Rejected

#: Fewer remedies than these are hardly a choice, and a cause of less of the card than this leaves open what filled it.
FEW, MOST = 3, 0.5


def make(
    book: FactBook,
    ledgers: tuple[Ledger, ...],
    judgement: Judgement,
    documents: Sequence[Document],
    trial: bool = False,
    folders: Sequence[Path] = (),
    *,
    identity: Attribution | None = None,
    reprice: Reprice | None = None,
    edit: Editor | None = None,
) -> Outcome:
    """What to do about a failure. `folders` hold the user's own remedies, which add to ours or replace them by id. `reprice` and `edit`
    are the ledger and the edits of the job; tests bring their own. `identity`: the tensor that failed."""
    rules, unread = remedy_rules.with_folders(folders, trial)
    job = replace(job_of(book, ledgers, judgement, documents, rules, reprice, edit), identity=identity)
    if book.word("log.family") is None and fits_as_it_is(job, ledgers):
        return Outcome(plan=as_it_is(job), questions=questions(job, (), None), faults=unread)
    if (lowering := tensor_relief.verdict(job)) is not None:
        job.listen(lowering)
    helped = tuple(str(fact.value) for fact in book.all("report.helped"))
    noted = {fact.value for fact in book.all("report.helped") if fact.origin == "given"}
    if helped:
        because = phrase("plan.noted_to_help" if noted else "plan.said_to_help")
        job.listen(Verdict(SAID, "unknown", "likely", "", None, because, same(""), None, True, (), helped, ""))
    offers, refused, faults = weighed(job, job.rules)
    before_a_run = book.word("log.family") is None
    usual = not any(offer.leads for offer in offers) and not (before_a_run and has_choice(offers))
    if usual or is_thin(offers, job):
        offers, refused = with_usual(job, offers, refused)
    tried = base_rates.tried(job)
    offers = either_way(ranked(offers, doubted=job.bench.trust == "over", tried=tried, helped=helped), job)
    offers = base_rates.in_judged_order(offers, job, {*tried, *helped})
    draft = draft_of([offer for offer in offers if offer.id not in tried] or offers, job)
    if (proven := next((offer for offer in offers if offer.id in noted), None)) is not None:  # who ran it knows better than the ledger
        draft = Draft((proven,), proven.changes, "unknown")
    drawn = finished(draft, job) if draft is not None else None
    offers, short = closing(arranged(offers, draft, job), draft, job)
    refused += short
    remedies, drawn = verified([offer.remedy for offer in offers], drawn, documents, book)
    return Outcome(
        remedies=remedies,
        rejected=tuple(rejections(refused, offers)),
        plan=drawn,
        questions=questions(job, offers, drawn),
        unsettled=unsettled(job),
        faults=(*unread, *faults),
        usual=usual and bool(offers) and base_rates.is_usual(offers[0]),
        beside=is_beside_the_estimate(offers, job),
    )


def fits_as_it_is(job: Job, ledgers: Sequence[Ledger]) -> bool:
    """Whether a run that has not begun needs no change. One whose estimate reaches beyond the card may need one."""
    verdict = job.bench.fits({})
    return verdict == "yes" or (verdict == "likely" and not may_exceed(ledgers))


def either_way(offers: list[Offer], job: Job) -> list[Offer]:
    """In an unknown regime, where the first offer helps only if it turns out that something is trained: without what also rests on cards
    that nobody has seen. The first that helps whatever runs and wherever it failed then comes before it, if it answers the same cause and
    costs no hardware, else in the second place if what stands there is such a one, too."""
    if job.regime != "unknown" or not offers or not gate.is_conditional(offers[0].rule, job):
        return offers
    seen = [offer for offer in offers if not offer.blind]
    offers = seen if len(seen) >= FEW else offers
    anyhow = (offer for offer in offers if offer.leads and not gate.is_conditional(offer.rule, job))
    second = next((offer for offer in anyhow if vocabulary.phases_of(offer.id) is None), None)
    if second is None or second is offers[0]:
        return offers
    alike = second.call is not None and offers[0].call is not None and offers[0].call.cause is second.call.cause
    if alike and second.rule.effort != "hardware":
        return [second, *(offer for offer in offers if offer is not second)]
    if len(offers) < FEW or not gate.is_conditional(offers[1].rule, job):
        return offers
    return [offers[0], second, *(offer for offer in offers[1:] if offer is not second)]


def has_choice(offers: Sequence[Offer]) -> bool:
    """Whether there are several remedies, or one of which it is known what it leads to."""
    return len(offers) >= FEW or any(offer.fits != "unknown" for offer in offers)


def is_thin(offers: Sequence[Offer], job: Job) -> bool:
    """Whether the causes call for hardly a choice, and account for so little that nobody knows whether it is enough: what helps most often
    then stands behind it."""
    shown = [offer for offer in offers if offer.leads and not offer.spare]
    sure = any(offer.fits in ("yes", "likely") for offer in shown)
    causes = [cause for cause in job.judgement.causes if not cause.also_true and cause.cause != "unknown"]
    shares = [cause.share for cause in causes if cause.share is not None]
    return 0 < len(shown) < FEW and not sure and not job.on_host and (not causes or (bool(shares) and max(shares) < MOST))


def closing(offers: Sequence[Offer], draft: Draft | None, job: Job) -> tuple[list[Offer], list[Rejected]]:
    """The offers without those that the finished answer refutes: what closes nothing and is no step of the plan, and what undoes an
    earlier one or says it again."""
    steps = {step.id for step in draft.steps} if draft is not None else set()
    reasons = {offer.id: reason for offer in offers if offer.id not in steps and (reason := gate.closes_nothing(offer, job)) is not None}
    kept = [*gate.once([*gate.opposites([offer for offer in offers if offer.id not in reasons])])]
    return kept, [Rejected(offer.id, offer.rule.id, reasons[offer.id]) for offer in offers if offer.id in reasons]


def with_usual(job: Job, offers: list[Offer], refused: list[Rejected]) -> tuple[list[Offer], list[Rejected]]:
    """The offers and refusals once what helps most often in the regime is called for too: for failures of which nothing that the evidence
    calls for is left. Only what is called for now is weighed again."""
    verdict = base_rates.usual(job)
    words = {word for word in verdict.remedies if word not in job.calls}
    job.listen(verdict)
    called, not_offered, _ = weighed(job, [rule for rule in job.rules if rule.remedy in words])
    if any(offer.relief for offer in (*offers, *called)):  # what leaves the failed tensor as it is helps less often than the table says
        called = [offer for offer in called if offer.relief != 0]
    last, often = len(job.judgement.causes) - 1, list(verdict.remedies)
    kept = [  # what is true beside no leading cause is ordered by how often it helps
        replace(offer, call=offer.call._replace(rank=last, listed=often.index(offer.id) if offer.id in often else len(often)))
        if offer.call is not None and not offer.leads and offer.relief is None
        else offer
        for offer in offers
        if offer.id not in words and (offer.leads or not offer.blind)
    ]
    listed = base_rates.listed(ranked(called), job)
    known = {offer.id for offer in listed} | base_rates.tried(job)
    cures = [offer for offer in called if offer.fits in ("yes", "likely") and offer.id not in known]
    return [*kept, *listed, *(cures if job.bench.fits({}) == "no" else ())], [
        *(entry for entry in refused if entry.id not in words),
        *not_offered,
    ]


def arranged(offers: list[Offer], draft: Draft | None, job: Job) -> list[Offer]:
    """What is shown: the steps of the plan, each with what it adds there, then the other remedies worth a line."""
    steps = draft.steps if draft is not None else ()
    taken = {step.id for step in steps}
    shown = [offer for offer in offers if offer in steps or not (offer.spare or offer.id in taken or is_beside_the_point(offer, job))]
    shown += [step for step in steps if step not in shown]  # those that only the others make possible, or of another value there
    if draft is None:
        return shown
    told = in_sequence(draft, job)
    first = [step for step in steps if step in shown]
    told |= {step.id: unsaid(told.get(step.id, step)) for step in steps if is_beside_the_point(step, job)}
    return [told.get(offer.id, offer) for offer in (*first, *(offer for offer in shown if offer not in first))]


def unsaid(step: Offer) -> Offer:
    """A step of which it is not said that it would do alone."""
    return replace(step, remedy=replace(step.remedy, fits="unknown"))


def weighed(job: Job, rules: Sequence[remedy_rules.Rule]) -> tuple[list[Offer], list[Rejected], list[Text]]:
    """What these rules have to say; one that crashes is a note about the rule and takes nothing else with it. A rule of which nobody
    knows whether it applies is not heard beside one for the same remedy that does."""
    offers: list[Offer] = []
    settled: set[str] = set()
    refused: list[Rejected] = []
    faults: list[Text] = []
    for rule in rules:
        try:
            said = special(rule, job) if is_special(rule) else weigh(rule, job)
        except Exception as error:  # whatever a rule does wrong, the others go on
            faults.append(crashed(rule.id, error))
            continue
        if said is not None and job.true(rule.where) is True:
            settled.add(rule.remedy)
        if isinstance(said, Offer):
            offers.append(tensor_relief.judged(replace(said, blind=is_blind(said, job)), job))
        elif said is not None:
            refused.append(said)
    outright = {said.id for said in refused if said.outright}
    doubtful = [offer for offer in offers if (offer.presumed and offer.id in settled) or (not offer.changes and offer.id in outright)]
    return fewer_or_smaller([offer for offer in offers if offer not in doubtful], job), refused, faults


def fewer_or_smaller(offers: list[Offer], job: Job) -> list[Offer]:
    """The offers where a batch of which nobody tells the size does not stand beside what makes its samples smaller: as often as not it is
    at its lowest already, so the one title says both."""
    batch = next((offer for offer in offers if is_asked_first(offer, job) and not offer.relief), None)
    samples = [offer for offer in offers if offer.id == vocabulary.any_sample() or vocabulary.kind_of_samples(offer.id)]
    if batch is None or not samples:
        return offers
    first = ranked(samples)[0]
    what = Text(first.remedy.title.en[:1].lower() + first.remedy.title.en[1:], first.remedy.title.zh)
    title = phrase("plan.fewer_or", price=in_words(batch.remedy.price), what=what)
    both = replace(first.remedy, title=title, command=batch.remedy.command or first.remedy.command)
    return [replace(offer, remedy=both, after=batch.id) if offer is first else offer for offer in offers if offer is not batch]


def in_words(price: Price) -> Text:
    """Results and speed of a price, for a title that names two acts: the price behind it is that of the second."""
    if price.wording is not None or price.speed == "same":
        return price.wording or phrase(f"render.results_{price.results}")
    return phrase("plan.serving_both", results=phrase(f"render.results_{price.results}"), speed=phrase(f"render.speed_{price.speed}"))


def is_asked_first(offer: Offer, job: Job) -> bool:
    """Whether it lowers what everybody lowers first, and nothing tells that this is not at its lowest already."""
    return offer.rule.turns in asked_first(job).get(offer.id, ())


def is_blind(offer: Offer, job: Job) -> bool:
    """Whether it rests on what nobody says: that there are several cards, room on the one to which offloaded states come back, or that
    what everybody lowers first is not at its lowest already."""
    return offer.blind or (offer.id in rule_files.table("vocabulary")["over_cards"] and not several(job)) or is_asked_first(offer, job)


def job_of(
    book: FactBook,
    ledgers: tuple[Ledger, ...],
    judgement: Judgement,
    documents: Sequence[Document],
    rules: tuple[remedy_rules.Rule, ...] | None = None,
    reprice: Reprice | None = None,
    edit: Editor | None = None,
) -> Job:
    """The job as the planner sees it: its first cause is a fact, and before a run it is the card that is asked about."""
    from diagnose.budget.moments import role_ledgers
    from diagnose.plan.edits import knob_edits

    known: dict[str, Value] = {"cause.first": judgement.leading.cause if judgement.leading is not None else "none"}
    if book.word("log.family") is None:
        known["log.on_card"] = True
    held = remedy_rules.rules() if rules is None else rules
    return Job(book.changed(known), ledgers, judgement, documents, reprice or role_ledgers.ledgers, edit or knob_edits.edits, held)


def is_special(rule: remedy_rules.Rule) -> bool:
    """Whether the remedy needs more than a table of knobs."""
    return rule.remedy in vocabulary.having("puts_right") or rule.remedy in vocabulary.releases().values()


def special(rule: remedy_rules.Rule, job: Job) -> Offer | Rejected | None:
    """A release, or a key put right; other rules for the same words are weighed as all are."""
    puts_right = rule.remedy in vocabulary.having("puts_right")
    if puts_right and (rule.turns is not None or rule.where):
        return weigh(rule, job)
    if (refused := gate.refusal(rule, job)) is not None:
        return gate.rejected(rule, refused, job)
    return repaired(rule, job) if puts_right else another_release(rule, job)
