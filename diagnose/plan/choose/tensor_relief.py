"""What a remedy does to the tensor that failed, by the tensor's own formula."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import prod

from diagnose import rule_files, vocabulary
from diagnose.budget.model.ledger import Attribution
from diagnose.decide.regime import LEARNING
from diagnose.decide.verdict import Verdict
from diagnose.facts import Value
from diagnose.phrases import Text, phrase, same
from diagnose.plan.choose.relevance import is_anybodys_script
from diagnose.plan.edits.sentences import join_texts
from diagnose.plan.pricing.context import TENSOR, Job, Offer
from diagnose.plan.remedies.remedy_rules import Rule
from diagnose.units import show

#: What a knob is taken to leave where nobody knows its value.
HALF = 0.5
#: Knobs with which a layer keeps nothing, or on the host; what they are taken to leave of a tensor that every layer keeps: that in hand.
KEEPS_LESS, IN_HAND = ("train.gradient_checkpointing", "train.activation_offload"), 0.1
#: Knobs of what surrounds the job: they make room, and no tensor is smaller for it.
SURROUNDINGS = ("alloc.", "hardware.", "version.")
#: Knobs of the rows of a pass, and of the cache of all layers: what lowers one of their tensors by them lowers all of them.
ROWS = frozenset(
    (
        *("train.max_seq_len", "train.micro_batch_size", "train.token_budget", "eval.batch_size"),
        *("rollout.logprob_batch", "rollout.micro_batch", "rollout.completion_len", "rollout.max_num_seqs", "rollout.prefill_tokens"),
        "rollout.gpu_memory_utilization",
        *("data.image_pixels", "data.image_size", "data.images_per_sample"),
    )
)
SAMPLES = frozenset(("train.max_seq_len", "data.image_pixels", "data.image_size", "data.frames"))
KNOBS_OF_BATCH = frozenset(("train.micro_batch_size", "eval.batch_size", "rollout.micro_batch", "rollout.logprob_batch"))
KNOBS_OF_IMAGES = frozenset(("data.image_pixels", "data.image_size"))
#: Of the memory in use, the share from which on a tensor says what filled the card, and not only what asked last.
MUCH = 0.15
#: Copies of one layer's tensor that a pass has at once: what goes in and what comes out; where it learns, a gradient too.
COPIES, COPIES_LEARNING = 2, 3
#: What most cards have, where nobody says which one it is.
MOST_CARDS = 16 << 30


def relief(rule: Rule, changes: Mapping[str, Value], job: Job) -> float | None:
    """The part of the tensor that failed, 0 to 1, which a remedy takes away. None where no tensor is known or nothing lowers it, and for
    remedies that repair, make room or bring other hardware: they are not judged by it."""
    tensor, knobs = job.identity, _turned(rule, changes)
    if tensor is None or not decides(tensor, job) or all(knob.startswith(SURROUNDINGS) for knob in knobs):
        return None
    if any(knob in tensor.avoided_by for knob in knobs):
        return 1.0
    if rule.remedy == vocabulary.any_sample() and follows_samples(tensor):
        return HALF
    keeps_less = KEEPS_LESS[:1] if tensor.by_frame else KEEPS_LESS  # of a model that nobody knows nothing tells what its layers keep
    left = IN_HAND if tensor.kept_by_layers and any(knob in keeps_less for knob in knobs) else 1.0
    parts = [_left(tensor, knob, changes.get(knob), job) for knob in knobs]
    left *= prod(parts) if changes else min(parts)  # of advice by hand one knob is followed
    return max(0.0, 1 - left)


def decides(tensor: Attribution | None, job: Job) -> bool:
    """Whether the tensor that failed decides what helps: something lowers it, and it is a good part of what is in use, or one of the many
    that the rows of a pass make, which all follow the same knobs. One of many weights or states asked last and fills nothing."""
    if tensor is None or not (tensor.lowered_by or tensor.avoided_by):
        return False
    filled = job.book.size("log.filled")
    return bool(ROWS.intersection(tensor.lowered_by)) or filled is None or tensor.block_bytes >= MUCH * filled.bytes


def follows_samples(tensor: Attribution) -> bool:
    """Whether smaller samples make it smaller: its formula has their size, or nobody knows more than that it has the rows of a batch."""
    return bool(SAMPLES.intersection(tensor.lowered_by)) or (tensor.by_frame and bool(KNOBS_OF_BATCH.intersection(tensor.lowered_by)))


def _turned(rule: Rule, changes: Mapping[str, Value]) -> tuple[str, ...]:
    """The knobs that a remedy turns; of advice that names no key, those that it acts on."""
    by_hand: Mapping[str, Iterable[str]] = rule_files.table("vocabulary")["acts_on"]
    return tuple(changes) or ((rule.turns,) if rule.turns is not None else tuple(by_hand.get(rule.remedy, ())))


def _left(tensor: Attribution, knob: str, after: Value, job: Job) -> float:
    """The part of the tensor that a new value of one knob leaves: half the value, or twice as much, where nobody knows it."""
    power, before = tensor.lowered_by.get(knob, 0.0), job.book.value(knob)
    if not power or (before is None and knob in rule_files.table("vocabulary")["one_at_once"].get(job.regime, ())):
        return 1.0
    if before is None and knob in KNOBS_OF_BATCH and tensor.rows:
        return float((1 / tensor.rows) ** power)
    known = isinstance(after, (int, float)) and isinstance(before, (int, float)) and before > 0 and after > 0
    return float((after / before) ** power) if known else HALF ** abs(power)  # type: ignore[operator]


def is_too_much_for_one_row(offer: Offer, job: Job) -> bool:
    """Whether it only lowers the number of rows, and the tensors of a single row are already more than the card holds."""
    tensor, knobs = job.identity, _turned(offer.rule, offer.changes)
    rows = [knob for knob in knobs if knob in KNOBS_OF_BATCH and tensor is not None and tensor.lowered_by.get(knob) == 1]
    if tensor is None or not rows or SAMPLES.intersection(knobs):
        return False
    count = job.book.count(rows[0]) or tensor.rows
    if not count:
        return False
    room = job.book.size("log.usable") or job.book.size("hardware.capacity") or job.book.size("log.capacity")
    copies = COPIES_LEARNING if job.regime in LEARNING else COPIES
    return copies * tensor.bytes / count > (room.bytes if room is not None else MOST_CARDS)


def verdict(job: Job) -> Verdict | None:
    """A verdict that calls for the settings that lower the tensor that failed, most first. It is no cause: where others lead, it is also
    true."""
    if job.identity is None:
        return None
    wanting = vocabulary.having("needs_evidence")
    if job.regime not in LEARNING:  # whoever learns from images takes fewer at once first
        wanting = wanting - frozenset(
            word for word in wanting if KNOBS_OF_IMAGES.intersection(rule_files.table("vocabulary")["acts_on"].get(word, ()))
        )
    settings = [rule for rule in reversed(job.rules) if rule.turns is not None and rule.remedy not in wanting]
    reliefs = {rule.remedy: part for rule in settings if (part := relief(rule, {}, job))}
    sure = vocabulary.having("any_program") if is_anybodys_script(job) else frozenset(reliefs)  # what the program may not have goes last
    costly = {rule.remedy for rule in settings if rule.results != "keep"}
    words = tuple(sorted(reliefs, key=lambda word: (word not in sure, -reliefs[word], word in costly)))
    table = rule_files.table("vocabulary")
    if words and not any(reliefs.get(word) for word in table["kind_of_samples"]) and follows_samples(job.identity):
        words = (*words, table["any_sample"])
    leads = any(cause.remedies and not cause.also_true for cause in job.judgement.causes)
    tensor, nothing = job.identity, same("")
    return Verdict(TENSOR, tensor.group, "likely", "", None, tensor.tensor, nothing, None, leads, (), words, "") if words else None


def judged(offer: Offer, job: Job) -> Offer:
    """The offer with what it takes off the tensor that failed, which is its price where the ledger knows none."""
    part = relief(offer.rule, offer.changes, job)
    if part == 0 and _answers_other_memory(offer, job):
        part = None
    if not part or offer.saving is not None or job.identity is None:
        return replace(offer, relief=part, falls_short=is_too_much_for_one_row(offer, job))
    more = (phrase("plan.next_sentence"), offer.remedy.why) if offer.rule.do is not None and offer.remedy.why.en else ()
    remedy = replace(offer.remedy, why=join_texts(_why(offer, part, job.identity), *more))
    return replace(offer, relief=part, remedy=remedy, falls_short=is_too_much_for_one_row(offer, job))


def _why(offer: Offer, part: float, tensor: Attribution) -> Text:
    if part == 1:
        return phrase("plan.tensor_avoided")
    if any(knob in KEEPS_LESS for knob in offer.changes):
        return phrase("plan.tensor_of_one_layer", tensor=tensor.tensor)
    return phrase("plan.tensor_left", left=show(round(tensor.bytes * (1 - part))), tensor=tensor.tensor)


def _answers_other_memory(offer: Offer, job: Job) -> bool:
    """Whether a proven cause about other memory calls for it, while the tensor is a small part of what is in use: it asked last, and did
    not fill the card."""
    tensor, filled = job.identity, job.book.size("log.filled")
    call = offer.call
    if tensor is None or call is None or not offer.leads or call.cause.outcome != "fires" or call.cause.cause == tensor.group:
        return False
    return filled is not None and tensor.block_bytes < MUCH * filled.bytes


def is_asked_by_tensor(offer: Offer) -> bool:
    """Whether no cause calls for it, only the tensor that failed."""
    return offer.call is not None and offer.call.cause.rule == TENSOR
