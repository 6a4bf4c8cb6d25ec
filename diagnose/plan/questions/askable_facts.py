"""Facts that a user can be asked for: whether one makes sense for this job, how to learn it, which option states it."""

from __future__ import annotations

from diagnose import families, vocabulary
from diagnose.adapters.schema import framework_tables
from diagnose.facts import declared
from diagnose.phrases import Text, phrase
from diagnose.plan.edits.sentences import keys_text
from diagnose.plan.pricing.context import Job

#: Training knobs that a run without training has as well.
_KNOBS_OF_ANY_RUN = ("train.max_seq_len", "train.load_dtype", "train.precision")

#: Prefixes of knobs that only jobs with rollouts have, and the stages that have rollouts.
_ROLLOUT_KNOBS = ("rollout.", "actor.", "critic.", "reward.", "ref.", "colocate.", "grpo.")
ROLLOUT_STAGES = ("ppo", "grpo", "rloo")


def is_askable(fact: str, job: Job) -> bool:
    """Whether a user can state the fact: what is run and on what; not what only a log or the ledger can say."""
    entry = declared(fact)
    if is_irrelevant(fact, job):
        return False
    if entry is None or entry.by == "budget" or (fact.startswith(_ROLLOUT_KNOBS) and job.book.word("train.stage") not in ROLLOUT_STAGES):
        return False
    if _is_of_another_engine(fact, job) or _is_of_another_framework(fact, job):
        return False
    can_be_stated = entry.is_knob or entry.how is not None or fact.startswith(("version.", "data.", "host."))
    return can_be_stated and not job.bench.stated(fact)


def _is_of_another_framework(fact: str, job: Job) -> bool:
    """Whether it is a training knob that the job's trainer has no key for."""
    framework = job.book.word("train.framework")
    if framework not in framework_tables.names() or not fact.startswith("train.") or (entry := declared(fact)) is None or not entry.is_knob:
        return False
    return not framework_tables.table(framework).of(fact)


def is_irrelevant(fact: str, job: Job) -> bool:
    """Whether the fact is about training while the job trains nothing, about the trainer's model while an inference engine ran
    out, about a model and its samples where no network runs, about an evaluation where there is none, or about a model that a name or
    config.json does not describe."""
    if job.book.word("run.takes") == "none":
        return not fact.startswith(("hardware.", "host.", "run."))
    if fact in ("model.shape", "model.path") and is_of_no_catalogue(job):
        return True
    if fact.startswith("eval.") and job.regime in ("serve", "generate_media"):
        return True
    of_training = fact.startswith(("train.", "lora.", "zero.", "fsdp.", "galore.")) and fact not in _KNOBS_OF_ANY_RUN
    if not job.trains and of_training:
        return True
    return fact.startswith(("train.", "lora.", "zero.", "model.")) and (
        job.book.word("log.role") == "engine" or families.of(job.book.word("log.family")).engine != ""
    )


def is_of_no_catalogue(job: Job) -> bool:
    """Whether neither a name nor a config.json could tell the model's shape: it draws, or is one of pictures or sounds that no trainer
    known here loads."""
    is_seen = "drawing.model" in job.book or ("run.sees" in job.book and not job.book.word("train.framework"))
    return is_seen and job.book.shape("model.shape") is None


def asked_first(job: Job) -> dict[str, tuple[str, ...]]:
    """The remedies that whoever writes of a failure has tried first, with their knobs, of which nothing tells the value."""
    words = vocabulary.having("asked_first") - {str(fact.value) for fact in job.book.all("report.tried")}
    knobs = {word: vocabulary.knobs_of(word) for word in sorted(words)}
    return {word: names for word, names in knobs.items() if not any(map(job.book.fact, names))}


def _is_of_another_engine(fact: str, job: Job) -> bool:
    """Whether it is a knob of ZeRO while the job uses FSDP, or of FSDP while it uses ZeRO."""
    if fact.startswith("zero."):
        return job.book.word("fsdp.sharding") not in (None, "none")
    return fact.startswith("fsdp.") and bool(job.book.count("zero.stage"))


def how_to_learn(fact: str, job: Job) -> Text:
    """How a user learns the fact: by the fact's own instruction, else by the framework's key for it."""
    entry = declared(fact)
    if entry and entry.how:
        return Text(entry.how["en"], entry.how["zh"])
    if (keys := keys_text(fact, framework := job.book.word("train.framework"))) is not None:
        return keys
    is_anybodys = framework is None and job.trains and "run.project" not in job.book  # a project that is named has keys of its own
    example = keys_text(fact, framework_tables.of_role("general"), most=1) if is_anybodys else None
    return phrase("plan.how_option") if example is None else phrase("plan.how_such_as", keys=example)


def answer_option(fact: str) -> str:
    """The command-line option that states the fact."""
    if fact in ("model.shape", "model.path"):
        return "--model NAME"
    return "--gpu NAME" if fact == "hardware.gpu" else f"--set {fact}={example_value(fact)}"


def example_value(fact: str) -> str:
    """A placeholder for the value in that option."""
    entry = declared(fact)
    if entry is None:
        return ""
    if entry.words:
        return "|".join(entry.answers or entry.words)
    if entry.kind == "switch" and entry.ask:
        return "yes|no"
    return {"size": "'512 GiB'", "count": "N", "ratio": "0.9", "switch": "enabled|disabled", "version": "X.Y.Z"}.get(entry.kind, "TEXT")
