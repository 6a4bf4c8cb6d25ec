"""The moment of the failure: how far the job had come, and what was alive then."""

from __future__ import annotations

import re
from dataclasses import replace

from diagnose.budget.model.block_rounding import prints_as
from diagnose.budget.model.ledger import Term, total
from diagnose.budget.model.loss_table import Block
from diagnose.budget.model.role_setup import Setup
from diagnose.budget.terms import activations, logits
from diagnose.budget.terms.training_states import accumulation_steps
from diagnose.facts import FactBook
from diagnose.units import Size, not_negative

#: The phase that a log shows to the moment that it belongs to.
MOMENT = {
    "model_load": "load",
    "init": "init",
    "dataset": "init",
    "forward": "forward_end",
    "attention": "forward_end",
    "compile": "forward_end",
    "all_gather": "forward_end",
    "loss": "loss_call",
    "backward": "backward",
    "optimizer_step": "optimizer_step",
    "generation": "generate",
    "kv_cache": "generate",
    "weight_sync": "weight_sync",
    "eval": "eval",
    "checkpoint_save": "save",
}

#: The frames of torch, and of preference trainers, that compute a log-softmax.
TORCH_LOSS = r"log_softmax|cross_entropy|nll_loss|nn/modules/loss|batch_logps"

#: Terms that are the request itself where it failed: what is sent or reduced as one block.
REQUESTED = ("sample_copy", "fsdp_root_reduce", "vision_mask_16", "vision_dense_scores")

#: A further layer counts as stored if it overshoots the observed figure by at most this share of itself.
OVERSHOOT = 0.15


def engine_is_loading(book: FactBook) -> bool:
    """Whether an engine failed before its first pass."""
    return book.word("log.phase") in ("model_load", "init")


def has_stepped(book: FactBook, job: Setup) -> bool | None:
    """Whether an optimizer step had completed before the failure; None: the log does not say."""
    step, micro, rounds = (book.count(name) for name in ("log.step", "log.micro_step", "log.rounds_done"))
    if (step or 0) > 0 or (rounds or 0) > 0 or book.switch("log.resumed"):
        return True
    if micro is not None and job.stage in ("ppo", "grpo", "rloo"):
        return micro >= accumulation_steps(job)
    return None if step is None else False


def failed_while_scoring(book: FactBook) -> bool:
    """Whether the failed pass only computed log-probabilities of finished rollouts: by its frames, or by the rows of its request."""
    if book.word("attribution.pass") == "scoring":
        return True
    return book.word("log.doing") == "score_rollouts" and MOMENT.get(book.word("log.phase") or "") in ("forward_end", "loss_call")


def observed_allocation(book: FactBook) -> Size | None:
    """What torch had allocated on the card; in releases that print only the reserved total, that less its unallocated part."""
    allocated, asleep = book.size("log.allocated"), book.size("log.asleep")
    if allocated is not None:
        return allocated if asleep is None else not_negative(allocated - asleep)
    reserved, idle = book.size("log.reserved_total"), book.size("log.reserved_unallocated")
    return reserved - idle if reserved is not None and idle is not None else None


def memory_to_explain(book: FactBook) -> Size | None:
    """Bytes that a cause has to explain: allocated at the failure, else the card's capacity; None if neither is known."""
    return observed_allocation(book) or book.size("hardware.capacity") or book.size("log.capacity")


def usable_memory(book: FactBook) -> Size | None:
    """What torch could have had on this card at the failure, free memory included, and no more than a cap of the process; None where the
    message does not say."""
    free, allocated = book.size("log.free"), book.size("log.allocated")
    total_held = book.size("log.reserved_total")
    idle = book.size("log.reserved_unallocated")
    if free is None:
        return None
    reserved = allocated + idle if allocated is not None and idle is not None else total_held
    if reserved is None:
        return None
    asleep = book.size("log.asleep")
    room, cap_size = replace(free + reserved, text="") if asleep is None else not_negative(free + reserved - asleep), process_cap(book)
    return cap_size if cap_size is not None and cap_size.bytes < room.bytes else room


def process_cap(book: FactBook) -> Size | None:
    """The most that the process may take, if it set itself a share of the card."""
    allowed = book.size("log.allowed")
    return None if allowed is None else replace(allowed, text="")


def before_loss_block(job: Setup) -> list[Term]:
    """Logits that were alive when the failed block was requested. Where a what-if sets a fused loss, that loss's own terms."""
    kernel_fact = job.book.fact("train.loss_kernel")
    if kernel_fact is not None and kernel_fact.origin == "given" and job.book.word("log.phase") != "eval" and logits.fused_kernel(job):
        return logits.during_loss_call(job)
    blocks = [block for block in logits.loss_blocks(job, job.loss.call) if block.bytes]
    failed = _failed_block(job, blocks)
    return logits.block_terms(job, blocks[:failed])


def _failed_block(job: Setup, blocks: list[Block]) -> int:
    """Index of the block that was requested: the one that the frame names among those that print as the request.

    torch's own loss functions make the log-softmax; modelling and trainer code the copies before it.
    """
    requested, frame = job.book.size("log.requested"), job.book.word("log.frame") or ""
    alike = [i for i, block in enumerate(blocks) if requested is not None and prints_as(logits.block_bytes(job, block), requested)]
    if not frame:
        return alike[-1] if alike else max(0, len(blocks) - 1)
    named = [i for i, block in enumerate(blocks) if block.name == "log_softmax"] if re.search(TORCH_LOSS, frame) else []
    for index in named:
        if not alike or index in alike:
            return index
    return alike[0] if alike else max(0, len(blocks) - 1)


def partial_forward(job: Setup, static: list[Term], allocated: Size) -> list[Term] | None:
    """Activations of the layers done and of the layer in hand, as many whole layers as what was allocated has room for.

    None where the whole forward pass fits, or where layers keep next to nothing (checkpointing): then only scores of the layer in hand
    count.
    """
    if not job.knows("h", "L", "T", "q", "f"):
        return None
    if job.checkpointing not in ("disabled", "none", "false"):
        scored = job.attention == "eager" and job.book.word("log.phase") == "attention"
        return [*activations.stored_activations(job), *_current_layer(job)] if scored else None
    flight = [job.term("in_flight", "activations", "3*2*h*T", source=activations.SAVED), *_current_layer(job)]
    whole = int(job.values["L"])  # type: ignore[arg-type]
    dense = min(int(job.values.get("L_d", 0)), whole)  # type: ignore[arg-type]
    done = _layers_done(job, dense, whole, allocated.bytes - total([term.size for term in (*static, *flight)]).bytes)
    if done == whole:
        return None
    done_layers = activations.layers(job, dense=str(min(dense, done)), count=str(done)) if done else []
    return [*done_layers, *flight]


def _layers_done(job: Setup, dense: int, whole: int, room: int) -> int:
    """How many layers fit into `room` bytes; the last may overshoot a little."""

    def size(count: int) -> int:
        return total([term.size for term in activations.layers(job, dense=str(min(dense, count)), count=str(count))]).bytes if count else 0

    first = size(dense)
    if dense and room < first:
        dense_layer = first / dense
        return max(0, min(dense, int(room / dense_layer + OVERSHOOT)))
    dense_layer = size(dense + 1) - first if whole > dense else 1
    return max(0, min(whole, dense + int((room - first) / dense_layer + OVERSHOOT)))


def _current_layer(job: Setup) -> list[Term]:
    """The layer in hand: up to its scores where attention failed, else up to the product of its MLP."""
    decoder = activations.layer(job)
    if job.book.word("log.phase") == "attention":
        terms = [job.term("layer_before_attention", "activations", f"({_before_attention(job)})*T", low="0", source=activations.SAVED)]
        if job.attention == "eager" and job.knows("B", "a", "s"):
            terms.append(job.term("scores_in_hand", "attention_scores", "2*2*B*a*s*s", low="0", source=activations.SAVED))
        return terms
    parts = decoder.sparse or decoder.dense
    unsaved = "" if decoder.sparse else " - 3*f" if job.trainable.lora and job.trainable.dropout and job.trainable.inputs[2] else " - 2*f"
    return [job.term("layer_in_hand", "activations", f"({parts}{unsaved})*T", low="0", source=activations.SAVED)]


def _before_attention(job: Setup) -> str:
    if job.model and job.model.latent:
        return "8*h + 8*r_kv + 4*a*(d_n + d_r) + 2*a*(d_n + d_v)"
    return "8*h + 2*q + 4*k"
