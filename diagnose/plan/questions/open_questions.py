"""The questions of an answer: at most three unknown facts, the one that could change the answer most first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from diagnose import vocabulary
from diagnose.facts import declared
from diagnose.phrases import Text, phrase
from diagnose.plan.edits.sentences import asked, fill_facts, join_texts, range_text
from diagnose.plan.pricing.context import USUAL, Job, Offer
from diagnose.plan.pricing.spread import cards_that_do
from diagnose.plan.questions.askable_facts import (
    ROLLOUT_STAGES,
    answer_option,
    asked_first,
    how_to_learn,
    is_askable,
    is_irrelevant,
    is_of_no_catalogue,
)
from diagnose.plan.remedies.remedy import Plan, Question
from diagnose.units import show

MOST = 3

#: The facts that decide most about a ledger that exceeds what was allocated; on one card, where nothing is sharded, others.
_DECISIVE, _DECISIVE_ON_ONE_CARD = ("zero.stage", "train.precision"), ("train.gradient_checkpointing", "train.precision")

#: Phases in which no batch is on the card, so that its size explains nothing.
_PHASES_WITHOUT_ROWS = ("model_load", "init", "dataset", "optimizer_step", "checkpoint_save", "weight_sync")

#: Facts that decide how much memory a batch takes.
_ROW_FACTS = ("train.max_seq_len", "train.micro_batch_size", "train.packing", "model.attention")


def questions(job: Job, offers: Sequence[Offer], plan: Plan | None) -> tuple[Question, ...]:
    """Up to three questions: what the ledger lacks, what would settle a verdict, what decides how good a remedy is."""
    result: dict[str, Question] = {}
    for fact, why in useful_facts(job, offers, plan):
        if fact not in result and declared(fact) is not None:
            result[fact] = Question(fact, why, how_to_learn(fact, job), answer_option(fact))
        if len(result) == MOST:
            break
    return tuple(result.values())


def useful_facts(job: Job, offers: Sequence[Offer], plan: Plan | None) -> Iterator[tuple[str, Text]]:
    """Unknown facts, each with the reason why it matters, the most useful first; a fact may come twice."""
    has_no_rows = job.book.word("log.phase") in _PHASES_WITHOUT_ROWS
    certain = bool(job.judgement.causes) and job.judgement.causes[0].outcome == "fires"
    first = job.judgement.causes[0] if job.judgement.causes else None
    is_usual = any(offer.call is not None and offer.call.cause.rule == USUAL for offer in offers)
    if job.regime == "unknown" and is_usual:
        yield "run.regime", phrase("plan.ask_regime", fact=asked("run.regime"))
    if is_usual and not has_no_rows:
        yield from first_knobs(job, offers)
    if job.on_host:
        yield from node_facts(job)
    if first is not None and first.outcome == "likely" and first.missing and is_askable(first.missing, job):
        yield first.missing, phrase("plan.ask_presumed", fact=asked(first.missing))
    is_beside = is_beside_the_estimate(offers, job)
    if not is_beside:
        yield from estimate_facts(job, offers, plan, has_no_rows)
    steps = [offer for step in (plan.steps if plan else ()) for offer in offers if offer.id == step]
    if not is_beside:
        yield from verdict_facts(job, only_releases=certain)
    yield from remedy_facts(steps, job)
    is_enough = plan is not None and plan.fits in ("yes", "likely") and keeps_results(plan, offers)
    yield from host_memory_facts(steps if is_enough else (*steps, *offers), job)  # a plan that is enough needs no alternatives
    yield from remedy_facts([offer for offer in offers if offer not in steps], job, outside_plan=True)


def is_beside_the_estimate(offers: Sequence[Offer], job: Job) -> bool:
    """Whether no fact of the model changes the first thing to do: it answers a cause of which the estimate says nothing, or nobody can name
    the model, so that there is no estimate."""
    first = offers[0].call.cause.cause if offers and offers[0].call is not None else ""
    return first in vocabulary.having("beside_the_estimate") or is_of_no_catalogue(job)


def estimate_facts(job: Job, offers: Sequence[Offer], plan: Plan | None, has_no_rows: bool) -> Iterator[tuple[str, Text]]:
    """What the estimate lacks, the most useful first."""
    trust = job.bench.trust
    if not (plan and plan.fits in ("yes", "likely") and keeps_results(plan, offers)) and (cards := cards_that_do(job)):
        yield "parallel.world", phrase("plan.ask_spread", fact=asked("parallel.world"), cards=str(cards))
    if is_card_unknown(job):
        key = "plan.ask_card" if job.book.word("log.family") is not None else "plan.ask_card_of_check"
        yield "hardware.gpu", phrase(key, fact=asked("hardware.gpu"))
    if trust == "over":
        cards = job.book.count("parallel.world") or job.book.count("hardware.count")
        decisive = _DECISIVE_ON_ONE_CARD if cards == 1 else _DECISIVE
        yield from ((fact, phrase("plan.ask_above", fact=asked(fact))) for fact in decisive if not job.bench.stated(fact))
    if trust == "short" and not has_no_rows and not is_irrelevant("model.attention", job):
        yield from gap_facts(job)
    if trust in ("least", "none") and job.bench.before is not None and (not job.on_host or _uses_offload(job)):
        yield from (
            (fact, asked(fact))
            for fact in job.bench.before.unknown
            if not job.bench.stated(fact) and not is_irrelevant(fact, job) and not (has_no_rows and fact in _ROW_FACTS)
        )
    if job.book.word("log.family") is None:
        from diagnose.plan.questions.estimate_width import narrowing_facts  # only asked of a job that has not failed

        yield from narrowing_facts(job)


def first_knobs(job: Job, offers: Sequence[Offer]) -> Iterator[tuple[str, Text]]:
    """What everybody lowers first, where nobody tells its value and nothing rules it out: that it is to be lowered is said here unless a
    remedy says so already."""
    told = {offer.after for offer in offers}
    for remedy, knobs in asked_first(job).items():
        if remedy in told or any(offer.id == remedy for offer in offers):
            askable = [knob for knob in knobs if is_askable(knob, job)]
            yield from ((knob, asked(knob) if remedy in told else phrase("plan.ask_lowest", fact=asked(knob))) for knob in askable)


def node_facts(job: Job) -> Iterator[tuple[str, Text]]:
    """The node's memory and the number of processes on it, where the configuration offloads states to the host."""
    size = job.book.size("ledger.host")
    if size is None or not _uses_offload(job):
        return
    if not job.bench.stated("host.ram") and job.book.size("log.container_limit") is None:
        yield "host.ram", phrase("plan.ask_ram", fact=asked("host.ram"), kept=range_text(size))
    if job.bench.before is not None and "parallel.world" in job.bench.before.unknown:
        yield "parallel.world", phrase("plan.ask_world_of_host", fact=asked("parallel.world"))


def keeps_results(plan: Plan, offers: Sequence[Offer]) -> bool:
    """Whether no step of the plan changes the results of the training."""
    return all(offer.remedy.price.results == "keep" for offer in offers if offer.id in plan.steps)


def is_card_unknown(job: Job) -> bool:
    """Whether a card ran out and the ledger is known, but neither the card's size nor what was in use on it."""
    ledger = job.bench.before
    knows_size = job.bench.usable is not None or job.book.size("log.allocated") is not None or job.bench.stated("hardware.gpu")
    return job.book.switch("log.on_card") is True and not knows_size and ledger is not None and "model.shape" not in ledger.unknown


def _uses_offload(job: Job) -> bool:
    """Whether the configuration offloads states to host memory; otherwise the ledger cannot explain a host that ran out."""
    words = (job.book.word(name) for name in ("zero.offload_optimizer", "zero.offload_param", "rollout.offload_between_phases"))
    return bool(job.book.switch("fsdp.offload")) or any(word not in (None, "none") for word in words)


def gap_facts(job: Job) -> Iterator[tuple[str, Text]]:
    """What would explain that the ledger falls short of what was in use: eager attention, longer rows, another length limit."""
    bench, before = job.bench, job.bench.before
    missing = before.unexplained if before else None
    size = show(missing.bytes) if missing else ""
    lengths = {str(explanation.get("model.attention", "")): f"{explanation['train.max_seq_len']:,}" for explanation in bench.explanations()}
    if not job.bench.stated("model.attention"):
        explains = size and "eager" in lengths
        name = asked("model.attention")
        why = phrase("plan.ask_attention", fact=name, gap=size, tokens=lengths["eager"]) if explains else None
        yield "model.attention", why or phrase("plan.ask_attention_plain", fact=name)
    # The rows of rollouts are generated, not read from data.
    if not job.bench.stated("data.longest_sample") and job.book.word("train.stage") not in ROLLOUT_STAGES:
        explains = size and "" in lengths
        name = asked("data.longest_sample")
        why = phrase("plan.ask_longest", fact=name, gap=size, tokens=lengths[""]) if explains else None
        yield "data.longest_sample", why or phrase("plan.ask_longest_plain", fact=name)
    # With a token budget the sum of all rows is limited, not each row.
    if not job.bench.stated("train.max_seq_len") and not job.book.count("train.token_budget"):
        yield "train.max_seq_len", phrase("plan.ask_limit", fact=asked("train.max_seq_len"))


def verdict_facts(job: Job, only_releases: bool) -> Iterator[tuple[str, Text]]:
    """The facts that would settle undecided rules, and the releases that likely causes presume. `only_releases`: nothing else."""
    presuming = [cause for cause in job.judgement.causes if cause.missing and cause.missing.startswith("version.")]
    # A rule that lacks more than one fact is not decided by one answer.
    verdicts = [*presuming, *(verdict for verdict in job.judgement.undecided if verdict.open <= 1)]
    candidates = [
        (verdict.missing, verdict)
        for verdict in verdicts
        if verdict.missing
        and is_askable(verdict.missing, job)
        and not (job.on_host and verdict.cause in vocabulary.having("fills_card"))
        and not (verdict.missing.startswith("zero.") and not _names_deepspeed(job))
    ]
    for fact, verdict in sorted(candidates, key=lambda pair: not pair[0].startswith("version.")):
        if fact.startswith("version.") or not only_releases:
            yield fact, phrase("plan.ask_verdict", fact=asked(fact), title=verdict.title)


def _names_deepspeed(job: Job) -> bool:
    """Whether a log or config of the job mentions DeepSpeed. Few jobs use it, so others are not asked about ZeRO."""
    return any(fact.name == "version.deepspeed" or (fact.name.startswith("zero.") and fact.value is not None) for fact in job.book)


def remedy_facts(offers: Sequence[Offer], job: Job, outside_plan: bool = False) -> Iterator[tuple[str, Text]]:
    """The facts on which a remedy's effect depends (`asks` of its rule), even where a knob limits them: the real figure counts.

    For remedies outside the plan only those whose question does not name the value that the remedy would set.
    """
    if outside_plan and job.bench.trust == "none":
        return  # nothing is priced, so the fact would change no price
    shape = job.book.shape("model.shape")
    for offer in offers:
        for fact, why in offer.rule.asks:
            known, entry = job.book.fact(fact), declared(fact)
            origins = ("given",) if entry is not None and entry.is_knob else ("given", "log")  # a knob that a log prints is only a limit
            is_known = known is not None and known.value is not None and known.origin in origins
            if fact.startswith("hardware."):  # which card it is matters only where a caveat depends on it
                is_known = not any(job.true(caveat.all) is None for caveat in offer.rule.caveats)
            is_inapplicable = fact.startswith("data.image") and (shape is None or shape.vision is None)
            if fact == "data.images_per_sample" and job.book.count("data.image_pixels") is None:
                is_inapplicable = True  # the number of images says nothing without their size
            value = offer.changes.get(offer.rule.turns or "")
            if not is_known and not is_inapplicable and not ((outside_plan or value is None) and "{value}" in why.en):
                yield fact, join_texts(asked(fact), Text(" ", ""), fill_facts(why, job, value=value))


def host_memory_facts(offers: Sequence[Offer], job: Job) -> Iterator[tuple[str, Text]]:
    """The node's memory, where a remedy takes more than 8 GiB of it: no node is known to have less to spare."""
    for offer in offers:
        host_memory = offer.remedy.price.host_memory
        if host_memory is not None and host_memory.low > 8 * 2**30 and not job.bench.stated("host.ram"):
            yield "host.ram", phrase("plan.ask_host", fact=asked("host.ram"), remedy=offer.remedy.title, host=show(host_memory.bytes))
