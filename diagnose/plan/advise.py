"""From verdicts to what is to be done: remedies, rejected advice, the plan, questions."""

from __future__ import annotations

from collections.abc import Sequence

from diagnose.adapters.settings import Document
from diagnose.budget.ledger import Ledger
from diagnose.facts import FactBook, Value
from diagnose.judge.verdict import Judgement
from diagnose.plan import load
from diagnose.plan.job import Editor, Job, Offer
from diagnose.plan.price import Reprice
from diagnose.plan.questions import questions
from diagnose.plan.rank import ranked, rejections
from diagnose.plan.remedy import Outcome, Rejected
from diagnose.plan.search import as_it_is, plan
from diagnose.plan.special import another_release, repaired
from diagnose.plan.weigh import weigh


def make(
    book: FactBook,
    ledgers: tuple[Ledger, ...],
    judgement: Judgement,
    documents: Sequence[Document],
    trial: bool = False,
    *,
    reprice: Reprice | None = None,
    edit: Editor | None = None,
) -> Outcome:
    """What to do about a failure. `reprice` and `edit` are the ledger and the edits of the job; tests bring their own."""
    from diagnose import budget
    from diagnose.plan import knobs

    known: dict[str, Value] = {"cause.first": next((cause.cause for cause in judgement.causes if not cause.also_true), None)}
    if book.word("log.family") is None:
        known["log.on_card"] = True  # before a run it is the card that is asked about
    job = Job(book.changed(known), ledgers, judgement, documents, reprice or budget.ledgers, edit or knobs.edits)
    if book.word("log.family") is None and job.bench.fits({}) not in ("unlikely", "no"):
        return Outcome(plan=as_it_is(job), questions=questions(job, (), None))
    offers: list[Offer] = []
    refused: list[Rejected] = []
    for rule in load.rules(trial):
        said = special(rule, job) if rule.remedy in SPECIAL else weigh(rule, job)
        if isinstance(said, Offer):
            offers.append(said)
        elif said is not None:
            refused.append(said)
    offers = ranked(offers)
    drawn = plan(offers, job)
    return Outcome(tuple(offer.remedy for offer in offers), tuple(rejections(refused, offers)), drawn, questions(job, offers, drawn))


#: Remedies that need more than a table of knobs.
SPECIAL = ("upgrade_library", "downgrade_library", "fix_config_not_applied")


def special(rule: load.Rule, job: Job) -> Offer | Rejected | None:
    """A release, or a key put right; other rules for the same words are weighed as all are."""
    if rule.remedy != "fix_config_not_applied":
        return another_release(rule, job)
    return repaired(rule, job) if rule.turns is None and not rule.where else weigh(rule, job)
