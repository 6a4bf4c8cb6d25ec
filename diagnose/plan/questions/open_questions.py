"""What the engine would most like to know: at most three facts, the one that could change most first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from diagnose.adapters.schema import framework_tables
from diagnose.facts import declared
from diagnose.phrases import Text, phrase
from diagnose.plan.edits.sentences import between, called, filled, keys_of
from diagnose.plan.pricing.context import Job, Offer
from diagnose.plan.pricing.spread import cards_that_do
from diagnose.plan.rules.remedy import Plan, Question
from diagnose.units import show

MOST = 3

#: What decides most of a ledger that needs more than was allocated, in this order; of a job on one card, which shards nothing.
_DECIDES, _DECIDES_ALONE = ("zero.stage", "train.precision"), ("train.gradient_checkpointing", "train.precision")

#: Phases in which no rows are on the card: their length explains nothing there.
_BEFORE_ROWS = ("model_load", "init", "dataset", "optimizer_step", "checkpoint_save", "weight_sync")

_OF_ROWS = ("train.max_seq_len", "train.micro_batch_size", "train.packing", "model.attention")

#: What a run that trains nothing has as well.
_OF_ANY_RUN = ("train.max_seq_len", "train.load_dtype", "train.precision")

#: Causes that fill a card: where host memory ran out, whether they also apply is of no interest.
_ON_THE_CARD = ("activations", "attention_scores", "logits", "fragmentation", "gradients", "comm_buffers", "kv_cache", "mm_inputs")

#: Knobs that only jobs with rollouts have, and the stages that have them.
_ROLES = ("rollout.", "actor.", "critic.", "reward.", "ref.", "colocate.", "grpo.")
_ROLLOUTS = ("ppo", "grpo", "rloo")


def questions(job: Job, offers: Sequence[Offer], plan: Plan | None) -> tuple[Question, ...]:
    """The first three of: what the ledger lacks, what would settle a verdict, what decides how good a remedy is."""
    asked: dict[str, Question] = {}
    for fact, why in wanted(job, offers, plan):
        if fact not in asked and declared(fact) is not None:
            asked[fact] = Question(fact, why, how(fact, job), option(fact))
        if len(asked) == MOST:
            break
    return tuple(asked.values())


def wanted(job: Job, offers: Sequence[Offer], plan: Plan | None) -> Iterator[tuple[str, Text]]:
    """Facts and why they matter, the most useful first."""
    trust, rowless = job.bench.trust, job.book.word("log.phase") in _BEFORE_ROWS
    certain = bool(job.judgement.causes) and job.judgement.causes[0].outcome == "fires"
    first = job.judgement.causes[0] if job.judgement.causes else None
    if job.on_host:
        yield from of_node(job)
    if first is not None and first.outcome == "likely" and first.missing and askable(first.missing, job):
        yield first.missing, phrase("plan.ask_presumed", fact=called(first.missing), title=first.title)
    if not (plan and plan.fits in ("yes", "likely") and keeps(plan, offers)) and (cards := cards_that_do(job)):
        yield "parallel.world", phrase("plan.ask_spread", fact=called("parallel.world"), cards=str(cards))
    if blind_to_card(job):
        yield "hardware.gpu", phrase("plan.ask_card", fact=called("hardware.gpu"))
    if trust == "over":
        deciding = _DECIDES_ALONE if job.book.count("parallel.world") == 1 else _DECIDES
        yield from ((fact, phrase("plan.ask_above", fact=called(fact))) for fact in deciding if not job.bench.stated(fact))
    if trust == "short" and not rowless and not of_training("model.attention", job):
        yield from gap(job)
    if trust in ("least", "none") and job.bench.before is not None and (not job.on_host or _offloads(job)):
        yield from (
            (fact, phrase("plan.ask_missing", fact=called(fact), what=phrase("plan.ask_ledger")))
            for fact in job.bench.before.unknown
            if not job.bench.stated(fact) and not of_training(fact, job) and not (rowless and fact in _OF_ROWS)
        )
    if job.book.word("log.family") is None:
        from diagnose.plan.questions.estimate_width import wide  # a failed run does not need it

        yield from wide(job)
    steps = [offer for step in (plan.steps if plan else ()) for offer in offers if offer.id == step]
    yield from verdicts(job, only_releases=certain)
    yield from about(steps, job)
    enough = plan is not None and plan.fits in ("yes", "likely") and keeps(plan, offers)  # then what else could be done need not be known
    yield from host(steps if enough else (*steps, *offers), job)
    yield from about([offer for offer in offers if offer not in steps], job, apart=True)


def of_node(job: Job) -> Iterator[tuple[str, Text]]:
    """What the node has, where the ledger says what the configuration keeps there, and how many processes share that."""
    size = job.book.size("ledger.host")
    if size is None or not _offloads(job):
        return
    if not job.bench.stated("host.ram") and job.book.size("log.container_limit") is None:
        yield "host.ram", phrase("plan.ask_ram", fact=called("host.ram"), kept=between(size))
    if job.bench.before is not None and "parallel.world" in job.bench.before.unknown:
        yield "parallel.world", phrase("plan.ask_world_of_host", fact=called("parallel.world"))


def keeps(plan: Plan, offers: Sequence[Offer]) -> bool:
    """Whether the plan leaves the results as they are."""
    return all(offer.remedy.price.results == "keep" for offer in offers if offer.id in plan.steps)


def blind_to_card(job: Job) -> bool:
    """Whether a card ran out, the ledger says what the job's model needs, and nothing says how much there was or was in use."""
    ledger = job.bench.before
    said = job.bench.usable is not None or job.book.size("log.allocated") is not None or job.bench.stated("hardware.gpu")
    return job.book.switch("log.on_card") is True and not said and ledger is not None and "model.shape" not in ledger.unknown


def _offloads(job: Job) -> bool:
    """Whether the configuration keeps states in host memory: only then does the ledger explain a host that ran out."""
    words = (job.book.word(name) for name in ("zero.offload_optimizer", "zero.offload_param", "rollout.offload_between_phases"))
    return bool(job.book.switch("fsdp.offload")) or any(word not in (None, "none") for word in words)


def gap(job: Job) -> Iterator[tuple[str, Text]]:
    """What would explain a ledger that falls short: eager attention, longer rows, another limit."""
    bench, before = job.bench, job.bench.before
    missing = before.unexplained if before else None
    size = show(missing.bytes) if missing else ""
    lengths = {str(each.get("model.attention", "")): f"{each['train.max_seq_len']:,}" for each in bench.explanations()}
    if not job.bench.stated("model.attention"):
        told = size and "eager" in lengths
        name = called("model.attention")
        why = phrase("plan.ask_attention", fact=name, gap=size, tokens=lengths["eager"]) if told else None
        yield "model.attention", why or phrase("plan.ask_attention_plain", fact=name)
    if not job.bench.stated("data.longest_sample") and job.book.word("train.stage") not in _ROLLOUTS:  # those rows are made, not read
        told = size and "" in lengths
        name = called("data.longest_sample")
        why = phrase("plan.ask_longest", fact=name, gap=size, tokens=lengths[""]) if told else None
        yield "data.longest_sample", why or phrase("plan.ask_longest_plain", fact=name)
    if not job.bench.stated("train.max_seq_len") and not job.book.count("train.token_budget"):  # else tokens are limited, not rows
        yield "train.max_seq_len", phrase("plan.ask_limit", fact=called("train.max_seq_len"))


def verdicts(job: Job, only_releases: bool) -> Iterator[tuple[str, Text]]:
    """The facts that would settle rules which could not be judged, and the releases that likely ones presume."""
    presuming = [cause for cause in job.judgement.causes if cause.missing and cause.missing.startswith("version.")]
    doubted = [*presuming, *(verdict for verdict in job.judgement.undecided if verdict.open <= 1)]  # more open: one answer decides nothing
    open_ = [
        (verdict.missing, verdict)
        for verdict in doubted
        if verdict.missing
        and askable(verdict.missing, job)
        and not (job.on_host and verdict.cause in _ON_THE_CARD)
        and not (verdict.missing.startswith("zero.") and not _deepspeed(job))
    ]
    for missing, verdict in sorted(open_, key=lambda pair: not pair[0].startswith("version.")):
        if missing.startswith("version.") or not only_releases:
            yield missing, phrase("plan.ask_verdict", fact=called(missing), title=verdict.title)


def _deepspeed(job: Job) -> bool:
    """Whether anything names DeepSpeed: few jobs run with it, and none would learn from a question that none of its texts calls for."""
    return any(fact.name == "version.deepspeed" or (fact.name.startswith("zero.") and fact.value is not None) for fact in job.book)


def askable(fact: str, job: Job) -> bool:
    """Whether a person can answer: what is run and on what, not what only the log or the ledger can say."""
    entry = declared(fact)
    if of_training(fact, job):
        return False
    if entry is None or entry.by == "budget" or (fact.startswith(_ROLES) and job.book.word("train.stage") not in _ROLLOUTS):
        return False
    if _of_another_engine(fact, job) or _of_another_framework(fact, job):
        return False
    answers = entry.is_knob or entry.how is not None or fact.startswith(("version.", "data.", "host."))
    return answers and not job.bench.stated(fact)


def _of_another_framework(fact: str, job: Job) -> bool:
    """Whether it is a setting of the trainer that the job's own trainer does not have."""
    framework = job.book.word("train.framework")
    if framework not in framework_tables.names() or not fact.startswith("train.") or (entry := declared(fact)) is None or not entry.is_knob:
        return False
    return not framework_tables.table(framework).of(fact)


def of_training(fact: str, job: Job) -> bool:
    """Whether it is about training, where nothing is trained; or about a trainer's model, where an engine ran out."""
    if not job.trains and fact.startswith(("train.", "lora.", "zero.", "fsdp.", "galore.")):
        return fact not in _OF_ANY_RUN
    return fact.startswith(("train.", "lora.", "zero.", "model.")) and (
        job.book.word("log.role") == "engine" or (job.book.word("log.family") or "") in ("vllm_kv", "sglang_kv")
    )


def _of_another_engine(fact: str, job: Job) -> bool:
    """Whether it belongs to the sharding engine that this job does not use."""
    if fact.startswith("zero."):
        return job.book.word("fsdp.sharding") not in (None, "none")
    return fact.startswith("fsdp.") and bool(job.book.count("zero.stage"))


def about(offers: Sequence[Offer], job: Job, apart: bool = False) -> Iterator[tuple[str, Text]]:
    """What the rules say decides how good a remedy is, even where a limit is written: the real figure is what counts.
    For remedies outside the plan (`apart`) only what does not hang on the value that they would set."""
    if apart and job.bench.trust == "none":
        return  # no price hangs on it
    shape = job.book.shape("model.shape")
    for offer in offers:
        for fact, why in offer.rule.asks:
            held = job.book.fact(fact)
            limit = (
                entry := declared(fact)
            ) is not None and entry.is_knob  # a knob is a limit, whoever states it; the real figure is asked for
            known = held is not None and held.value is not None and held.origin in (("given",) if limit else ("given", "log"))
            if fact.startswith("hardware."):  # which card it is matters only where a caveat hangs on it
                known = not any(job.true(caveat.all) is None for caveat in offer.rule.caveats)
            blind = fact.startswith("data.image") and (shape is None or shape.vision is None)
            blind = blind or (fact == "data.images_per_sample" and job.book.count("data.image_pixels") is None)  # times what?
            value = offer.changes.get(offer.rule.turns or "")
            if not known and not blind and not ((apart or value is None) and "{value}" in why.en):
                yield fact, filled(why, job, value=value)


def host(offers: Sequence[Offer], job: Job) -> Iterator[tuple[str, Text]]:
    """Host memory, where a remedy takes much of it."""
    for offer in offers:
        takes = offer.remedy.price.host_memory
        if takes is not None and takes.low > 8 * 2**30 and not job.bench.stated("host.ram"):  # else no node is known to be too small
            yield "host.ram", phrase("plan.ask_host", remedy=offer.remedy.title, host=show(takes.bytes))


def how(fact: str, job: Job) -> Text:
    """How a person finds it out: in so many words, or by the key that the framework has for it."""
    entry = declared(fact)
    if entry and entry.how:
        return Text(entry.how["en"], entry.how["zh"])
    if (keys := keys_of(fact, framework := job.book.word("train.framework"))) is not None:
        return keys
    example = keys_of(fact, framework_tables.of_role("general"), most=1) if framework is None and job.trains else None
    return phrase("plan.how_option") if example is None else phrase("plan.how_such_as", keys=example)


def option(fact: str) -> str:
    """The option that answers it."""
    if fact in ("model.shape", "model.path"):
        return "--model ID"
    return "--gpu NAME" if fact == "hardware.gpu" else f"--set {fact}={example(fact)}"


def example(fact: str) -> str:
    """What to write after the equals sign."""
    entry = declared(fact)
    if entry is None:
        return ""
    if entry.words:
        return "|".join(entry.words)
    return {"size": "'512 GiB'", "count": "N", "ratio": "0.9", "switch": "enabled|disabled", "version": "X.Y.Z"}.get(entry.kind, "TEXT")
