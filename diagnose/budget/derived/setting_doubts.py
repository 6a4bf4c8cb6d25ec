"""Facts about settings that may not be in effect: what the job would need without them, and keys that were meant to save memory."""

from __future__ import annotations

from diagnose.budget.model.ledger import Ledger
from diagnose.budget.moments.role_ledgers import ledgers
from diagnose.facts import Fact, FactBook, Value, Witness, derived_fact
from diagnose.phrases import same
from diagnose.units import Size, Version

#: Knobs that bear on memory; of the others it does not matter here whether log and files agree.
ON_MEMORY = (
    "train.m",
    "train.p",
    "train.l",
    "train.g",
    "train.o",
    "train.a",
    "train.t",
    "zero.",
    "fsdp.",
    "lora.r",
    "rollout.",
    "eval.",
    "parallel.",
)

#: What decides how much a micro batch takes, and nothing else.
OF_ROWS = frozenset(("train.max_seq_len", "train.micro_batch_size", "train.stage", "model.attention", "train.gradient_checkpointing"))
#: Moments at which a micro batch is on the card.
WITH_ROWS = ("forward_end", "loss_call", "loss_backward", "layer_backward")
#: Groups that a micro batch does not change.
STATES = ("weights", "gradients", "optimizer_states")
BESIDE_ROWS = (*STATES, "extra_models", "comm_buffers")

#: From this release on torch names the exception torch.OutOfMemoryError, before torch.cuda.OutOfMemoryError (torch/csrc/Exceptions.cpp).
RENAMED = Version("2.5")


def setting_facts(book: FactBook) -> list[Fact]:
    """The first memory setting whose value in the log differs from the files; an engine's file that is named but missing; whether adapters
    were merged; and how old torch is."""
    doubts: list[Fact] = []
    differing = book.all("config.disagreement")
    knob = next((fact for fact in differing if str(fact.value).startswith(ON_MEMORY)), None)
    if differing:
        doubts.append(_fact("config.overridden", knob is not None, "log and files disagree"))
    if knob is not None:
        doubts.append(Fact("config.overridden_knob", knob.value, "derived", knob.witness))
        doubts.append(_fact("config.overridden_value", _format_value(book.value(str(knob.value))), "what the log shows of it"))
    missing = "zero.config" in book and "zero.stage" not in book
    if "config.engine_file_missing" not in book and (missing or book.switch("config.given")):
        doubts.append(_fact("config.engine_file_missing", missing, "a DeepSpeed file that is named and its stage"))
    step, every, total = (book.count(name) for name in ("log.step", "save.every", "log.total_steps"))
    if step and (every or step == total):
        due = step == total or bool(every and step % every == 0)
        doubts.append(_fact("log.save_due", due, "the last step, or one that the steps between checkpoints divide"))
    doing = book.word("log.doing")
    if doing is not None or "run.merges" in book:
        merging = doing == "merge_adapter" or book.switch("run.merges") is True
        doubts.append(_fact("log.merging", merging, "what the frames show, or what the command does"))
    torch = book.version("version.torch")
    if torch is not None:
        doubts.append(_fact("log.torch_before_2_5", torch < RENAMED, "release of torch"))
    return doubts


def ledger_facts(book: FactBook, ledger: Ledger) -> list[Fact]:
    """Facts that need further ledgers: unsharded gradients between micro batches; modules trained whole beside adapters; attention scores,
    had attention been eager."""
    moments = (*ledger.moments, *([ledger.whole] if ledger.whole else []))
    doubts = _micro_batch_facts(ledger)
    waiting = max((moment.only("gradients_whole") for moment in moments), key=lambda size: size.bytes, default=None)
    if waiting is not None and (waiting.bytes or ledger.complete):
        doubts.append(_fact("ledger.gradients_whole", waiting, "largest moment of gradients_whole"))
    doubts += _saved_module_facts(book, ledger)
    if book.switch("model.attention_maybe_eager") and ledger.complete:
        eager = ledgers(book.changed({"model.attention": "eager"}))
        scores = [moment.of("attention_scores") for moment in eager[0].moments] if eager else []
        if scores:
            largest: Size = max(scores, key=lambda size: size.bytes)
            doubts.append(_fact("ledger.scores_if_eager", largest, "attention_scores with eager attention"))
    return [*doubts, *_unseen_stage_facts(book)]


def _unseen_stage_facts(book: FactBook) -> list[Fact]:
    """The least that states take under a DeepSpeed file that was not provided: what they take at stage 3."""
    if book.switch("config.engine_file_missing") is not True or "zero.stage" in book:
        return []
    least = ledgers(book.changed({"zero.stage": 3}))
    moment = least[0].moment("optimizer_step") if least and least[0].complete else None
    if moment is None:
        return []
    return [_fact("ledger.states_if_sharded", moment.of(*STATES), "weights + gradients + optimizer_states with zero.stage 3")]


def _saved_module_facts(book: FactBook, ledger: Ledger) -> list[Fact]:
    """How much smaller the largest moment would be if adapters alone were trained."""
    if ledger.peak is None or not ledger.complete or "lora.modules_to_save" not in book:
        return []
    without_copies = ledgers(book.changed({"lora.modules_to_save": "none"}))
    alone = without_copies[0].peak if without_copies else None
    if alone is None:
        return []
    saved = Size.exactly(max(0, ledger.peak.total.bytes - alone.total.bytes))
    return [_fact("ledger.saved_modules", saved, "the largest moment less the same with adapters alone")]


def _micro_batch_facts(ledger: Ledger) -> list[Fact]:
    """What a micro batch of unknown size takes: what torch has allocated less all that does not depend on it."""
    moment = ledger.moment(ledger.failing)
    if (
        moment is None
        or moment.name not in WITH_ROWS
        or ledger.observed is None
        or ledger.complete
        or not OF_ROWS.issuperset(ledger.unknown)
    ):
        return []
    return [_fact("ledger.rows", ledger.observed - moment.of(*BESIDE_ROWS), "allocated - weights - gradients - optimizer states")]


def _fact(name: str, value: Value, formula: str) -> Fact:
    return Fact(name, value, "derived", Witness("derived", text=formula))


#: Knobs that people set to save memory.
SAVING = ("train.", "zero.", "fsdp.", "lora.", "model.a", "model.q", "rollout.", "eval.", "data.image", "alloc.", "parallel.")

#: Details of a method, and the knob that chooses it: where that is set to another one, they are left over and nobody meant them.
DETAILS_OF = {"lora.": "train.finetuning"}

#: Knobs by which engine and trainer make room for each other: they save nothing where each has cards of its own.
OF_SHARED_CARDS = ("rollout.sleep", "rollout.offload_between_phases")


def missed_savings(book: FactBook) -> list[Fact]:
    """The first key without effect that was meant to set a memory-saving knob: an unread key, else an ineffective one."""
    keys = {_position(key): key for name in ("config.unknown_key", "config.ignored_key") for key in book.all(name)}
    if not keys:
        return []
    real, reader, in_force, other_value = (
        {_position(key_fact): key_fact.value for key_fact in book.all(f"config.{name}")}
        for name in ("wanted_key", "reader", "wanted_value", "wanted_other")
    )
    for knob in sorted(book.all("config.wanted_knob"), key=lambda knob: _position(knob) in in_force):
        place = _position(knob)
        key = keys.get(place)  # a key without a knob has no partner
        if key is not None and isinstance(knob.value, str) and knob.value.startswith(SAVING) and not _is_left_over(knob.value, book):
            key_fact = f"{key.value} was meant as {knob.value}"
            return [
                derived_fact("config.missed_memory", True, key_fact),
                Fact("config.missed_key", key.value, "derived", key.witness._replace(text=key_fact)),
                derived_fact("config.missed_knob", knob.value, key_fact),
                derived_fact("config.missed_real", real.get(place, knob.value), key_fact),
                derived_fact("config.missed_value", in_force.get(place) or _format_value(book.value(knob.value)), key_fact),
                derived_fact("config.missed_reader", reader.get(place, same("-")), key_fact),
                derived_fact("config.missed_other", other_value.get(place) is True, key_fact),
            ]
    return [derived_fact("config.missed_memory", False, "no unread key names a knob that saves memory")]


def _is_left_over(knob: str, book: FactBook) -> bool:
    """Whether it is a detail of a method, and somebody set the knob that chooses the method; or of cards that are not shared."""
    if knob in OF_SHARED_CARDS and book.word("rollout.placement") == "separate":
        return True
    chosen = (book.fact(chooser) for details, chooser in DETAILS_OF.items() if knob.startswith(details))
    return any(fact is not None and fact.origin in ("config", "given") for fact in chosen)


def _position(fact: Fact) -> tuple[str, int, int]:
    """Facts of one key stand in one place."""
    return fact.witness.source, fact.witness.line, fact.witness.column


def _format_value(value: Value) -> str:
    """A value as a config would write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "unset" if value is None else str(value)
