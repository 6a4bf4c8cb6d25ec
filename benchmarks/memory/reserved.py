"""What torch's allocator has reserved at a moment and not in use (blocks.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memory import blocks

from diagnose.budget.model.job_roles import roles
from diagnose.budget.model.ledger import Ledger, Moment, total
from diagnose.budget.model.role_setup import setup
from diagnose.budget.model.trainable_params import saved_params
from diagnose.budget.terms import activations
from diagnose.facts import FactBook
from diagnose.units import Size

#: Terms of an engine in the same process: it has a pool of its own.
NOT_TORCH = "rollout_engine"

#: Blocks of logits as large as all tokens times the vocabulary.
WHOLE = {"logits_16", "logits_fp32", "log_softmax"}


def left_over(book: FactBook, moment: Moment, ledger: Ledger, *, varying: bool) -> Size:
    """Blocks of the loss that nothing fits in, at its backward and in the optimizer's step, and those of shorter rows; the gaps in a layer
    that is computed again, and its blocks while the loss is computed."""
    used = _logits(moment)
    least = 0
    if moment.name == "loss_backward":
        least = max(0, sum(_laid(ledger)) - sum(used.values()))
    elif moment.name == "optimizer_step":
        least = _idle(book, moment, ledger)
    if book.switch("alloc.expandable_segments"):  # what is free lies together and serves any request of its stream
        return _other_streams(book, moment, ledger)
    beside = Size.between(0, least, least) + blocks.gaps(moment.only("layer_recomputed")) + _stuck(book, moment)
    beside += _other_streams(book, moment, ledger)
    return beside + blocks.outgrown(list(used.values())) if varying else beside


def _other_streams(book: FactBook, moment: Moment, ledger: Ledger) -> Size:
    """Blocks that FSDP takes on streams of its own: a block serves the stream that asked for it alone (c10/cuda/CUDACachingAllocator.cpp
    BlockPool, keyed by stream), so that the largest need of each stream adds up. Reduced gradients are made on the stream that reduces
    (torch 2.5 fsdp/_runtime_utils.py _post_backward_hook, _composable/fsdp/_fsdp_collectives.py foreach_reduce); FSDP2 gathers on one more,
    from which it copies the root as it does the layers."""
    if (book.word("fsdp.sharding") or "none") not in ("full_shard", "hybrid_shard", "shard_grad_op"):
        return Size.exactly(0)
    reduced = max((each.only("gradients_sharded") for each in ledger.moments), key=lambda size: size.bytes)
    waits = [] if moment.only("gradients_sharded").bytes else [reduced]
    if book.count("fsdp.version") == 2:
        waits.append(moment.only("fsdp_root", "fsdp_embedding"))
    return total(waits)


def _stuck(book: FactBook, moment: Moment) -> Size:
    """The blocks of a layer that is computed again while whole logits are there, none of which is as small as the widest block of a layer:
    that of the MLP, in fp32."""
    model, keys = book.shape("model.shape"), {term.key for term in moment.terms}
    if moment.name not in ("loss_call", "loss_backward") or not keys & {"checkpoints", "checkpoints_selective"} or not keys & WHOLE:
        return Size.exactly(0)
    if model is None or 2 * model.f >= model.V:
        return Size.exactly(0)
    job = setup(book, roles(book)[0])
    if book.switch("train.compile") and not job.traits.compiles_no_layers:
        job = replace(job, fused=True)
    return blocks.stuck(total([term.size for term in activations.recomputed_layer(job) if term.key == "layer_recomputed"]))


def _laid(ledger: Ledger) -> list[int]:
    """The blocks of the loss, from its call on."""
    call, backward = ledger.moment("loss_call"), ledger.moment("loss_backward")
    if call is None or backward is None:
        return []
    first = _logits(call)
    if "logits_fp32" in first and not first.get("logits_16"):  # what the head gave is gone when the loss is computed
        first["logits_16"] = first["logits_fp32"] // 2
    return blocks.laid(first, _logits(backward))


def _logits(moment: Moment) -> dict[str, int]:
    return {term.key: term.size.bytes for term in moment.terms if term.group == "logits"}


def _pool(step: Moment, ledger: Ledger) -> int:
    """The most that forward and backward take beside what is there in the step as well: its blocks stay cached, and the flat tensors of a
    step over whole partitions fit in none but the largest of them."""
    there = {term.key for term in step.terms}
    needs = [0]
    for name in ("loss_call", "loss_backward", "layer_backward"):
        if (moment := ledger.moment(name)) is None:
            continue
        rest = sum(term.size.bytes for term in moment.terms if term.key not in there and term.group not in ("logits", NOT_TORCH))
        needs.append(rest + (sum(_laid(ledger)) if name == "loss_backward" else sum(_logits(moment).values())))
    return max(needs)


def _served(free: Sequence[int], asked: Sequence[int]) -> int:
    """Bytes of `asked` tensors that find room in one of the free blocks each."""
    return sum(free) - blocks.idle(free, asked, 0)


def _flat_units(book: FactBook, moment: Moment) -> list[int]:
    """The temporaries of a step over the flat tensors of FSDP1, one per layer and one of the root unit; none elsewhere."""
    model, temporaries = book.shape("model.shape"), moment.only("step_foreach").bytes
    sharded = (book.word("fsdp.sharding") or "none") in ("full_shard", "hybrid_shard", "shard_grad_op")
    if model is None or not temporaries or not sharded or book.count("fsdp.version") != 1:
        return []
    layer = temporaries * (model.text_params - model.embedding_params - model.head_params) // (model.params * model.L)
    return [layer] * model.L + [max(0, temporaries - layer * model.L)]


def _idle(book: FactBook, moment: Moment, ledger: Ledger) -> int:
    """Bytes of the loss's blocks that serve no gradient and no temporary of a step. ZeRO's are flat: a copy of the gradients in 16 bits and
    one in fp32. Of a step that works tensor by tensor the large ones are the gradients and the temporaries of embedding and head, where
    those are trained."""
    flat = moment.only("step_flat", "step_group").bytes
    if flat:
        return max(0, _pool(moment, ledger) - _served(_laid(ledger), [flat // 3, flat - flat // 3]))
    if units := _flat_units(book, moment):
        return max(0, _pool(moment, ledger) - _served(_laid(ledger), units))
    asked = sum(term.size.bytes for term in moment.terms if term.key in ("gradients", "step_foreach"))
    model = book.shape("model.shape")
    if model is None or not any(term.key == "gradients" for term in moment.terms):
        return 0
    matrix, large = model.V * model.h, 1 if model.tied else 2
    if book.word("train.finetuning") == "lora":
        large = saved_params(model, book.word("lora.modules_to_save") or "") // matrix
    each = matrix * (4 if book.word("train.load_dtype") == "fp32" else 2)
    return blocks.idle(_laid(ledger), [each] * large * 2, max(0, asked - 2 * large * each))
