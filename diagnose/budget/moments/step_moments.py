"""Every moment of one role: which terms are alive at which instant of a training step."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from diagnose.budget.model.formulas import Number, Span
from diagnose.budget.model.job_roles import is_planned
from diagnose.budget.model.ledger import Moment, Term, total
from diagnose.budget.model.role_setup import Setup
from diagnose.budget.model.software_table import table
from diagnose.budget.moments import failure_moment, in_process_roles, other_passes
from diagnose.budget.terms import (
    activations,
    adapter_inputs,
    comm_buffers,
    dora,
    extra_models,
    kv_cache,
    logits,
    training_states,
    vision_tower,
)
from diagnose.budget.terms.training_states import accumulation_steps
from diagnose.phrases import phrase
from diagnose.units import Size, show


def training_moments(job: Setup) -> list[Moment]:
    """The moments of a trained role, as they are from the second optimizer step on."""
    resident = other_passes.resident(job, moments=True)
    live = [*resident, *comm_buffers.gathered_params(job)]
    vision_terms = [*vision_tower.pixels(job), *vision_tower.tower_activations(job), *in_process_roles.joint_activations(job)]
    stem = activations.stem(job)
    saved = [*compiled_layers(job, activations.stored_activations), *stem]
    one = [*live, *vision_terms, *saved]

    def waiting(stage: Setup) -> list[Term]:
        return one if stage is job else [*live, *vision_terms, *compiled_layers(stage, activations.stored_activations), *stem]

    forward = waiting(with_micro_batches_in_flight(job, last=True))
    moving, head_input = comm_buffers.exchanged_tokens(job), comm_buffers.gathered_sequence(job)
    tower = [*live, *vision_terms, *vision_tower.tower_transient(job)]
    copies = activations.autocast_cache(job)
    before, stale = adapter_inputs.of_last_micro_batch(job), training_states.stale_gradients(job)
    returns = [*forward, *stale, *copies, *moving, *dora.norm_transient(job)]
    if before:
        returns += [*before, *activations.dequantized_head(job)]
    step = [
        Moment("load", (*other_passes.loading(job),)),
        Moment("init", tuple(other_passes.resident(job, moments=False))),
        Moment("forward_end", tuple(max(returns, [*tower, *stale], key=_bytes))),  # the tower works before the decoder keeps anything
        Moment("loss_call", (*forward, *stale, *copies, *head_input, *activations.dequantized_head(job), *logits.during_loss_call(job))),
        Moment(
            "loss_backward",
            (*forward, *head_input, *activations.dequantized_head(job), *logits.at_backward_start(job), *comm_buffers.backward_bucket(job)),
        ),
        Moment("layer_backward", tuple(layer_backward(job, live, waiting(with_micro_batches_in_flight(job))))),
        Moment("optimizer_step", tuple(optimizer_step(job, resident))),
    ]
    compares = job.reference in ("copy", "adapter", "offload") or job.loss.always
    if compares and job.loss.beside and job.knows("T") and not logits.fused_kernel(job):
        after_loss = [*logits.block_terms(job, job.loss.kept), *_reference_logits(logits.block_terms(job, job.loss.beside))]
        step.append(Moment("reference_forward", (*forward, *after_loss, *kv_cache.of_reference(job))))
    if job.stage in table()["rollouts"] and job.role.policy:
        step.append(Moment("generate", tuple(other_passes.generating(job))))
        step += other_passes.scoring_pass(job, live)
        step += other_passes.weight_sync(job, resident)
    return _with_engine_share(
        job,
        step
        + other_passes.evaluation(job, in_process_roles.between_steps(job, live))
        + other_passes.saving(job, in_process_roles.between_steps(job, resident)),
    )


def compiled_layers(job: Setup, layers: Callable[[Setup], list[Term]]) -> list[Term]:
    """What compiled layers keep: torch's partitioner recomputes norms and activation functions and so keeps what fused kernels keep
    (torch/_functorch/partitioners.py min_cut_rematerialization_partition). Where a graph breaks it keeps more: plain PyTorch is the upper
    end."""
    plain = layers(job)
    if not job.book.switch("train.compile") or job.traits.compiles_no_layers:
        return plain
    upper = {term.key: term.size.high for term in plain}
    fused_terms = layers(replace(job, fused=True))
    return [
        term._replace(size=Size.between(term.size.low, max(term.size.high, upper.get(term.key, 0)), term.size.bytes))
        for term in fused_terms
    ]


def _with_engine_share(job: Setup, step: list[Moment]) -> list[Moment]:
    """Add what the engine gives back when it sleeps to the room of all moments but generation."""
    freed = extra_models.freed_by_sleep(job)
    usable = None if freed is None else failure_moment.usable_memory(job.book)
    if freed is None or usable is None:
        return step
    return [moment if moment.name == "generate" else replace(moment, room=usable + freed) for moment in step]


def _reference_logits(terms: list[Term]) -> list[Term]:
    """The same terms under the reference model's name."""
    return [term._replace(name=phrase("ledger.of_reference", name=term.name), key=f"reference_{term.key}") for term in terms]


def layer_backward(job: Setup, live: list[Term], forward: list[Term]) -> list[Term]:
    """The largest of three instants: the first layer of backward with everything stored, the last with every gradient there, and the
    embedding's gradient after it."""
    working = [*compiled_layers(job, activations.recomputed_layer), *comm_buffers.backward_units(job), *comm_buffers.backward_bucket(job)]
    working += [*comm_buffers.wide_reduction(job), *comm_buffers.exchanged_tokens(job), *in_process_roles.joint_gradients(job)]
    head = activations.prepared_head(job)  # its backward is over
    first = [term for term in [*forward, *working] if term not in head]
    alive = [term for term in live if term.key != "gradients_accumulated"]  # a part of all gradients
    has_gradients = any(term.group == "gradients" and term.size.bytes for term in alive)
    grown = [] if has_gradients else training_states.gradients(job, resident=False)
    alive += in_process_roles.joint_activations(job) if job.role.hosts else []  # its backward comes after this one
    last = [*alive, *grown, *working, *comm_buffers.root_gradients(job), *activations.checkpoints_held(job)]
    end = [
        *alive,
        *grown,
        *in_process_roles.joint_gradients(job),
        *comm_buffers.backward_bucket(job),
        *training_states.embedding_gradient(job, persists=has_gradients),
    ]
    return max(first, last, end, key=_bytes)


def _bytes(terms: Iterable[Term]) -> int:
    return sum([term.size.bytes for term in terms])


def optimizer_step(job: Setup, resident: list[Term]) -> list[Term]:
    """Terms of the optimizer step: what is on the card between two passes (`resident`), every gradient, and the step's temporaries."""
    static = [term for term in resident if term.group != "gradients"]
    gathered = comm_buffers.gathered_params(job) if job.sharding.scheme == "zero3" else []
    return [
        *static,
        *training_states.gradients(job, resident=False),
        *gathered,
        *training_states.step_transient(job),
        *in_process_roles.joint_step(job),
    ]


def prediction_moments(job: Setup) -> list[Moment]:
    """Moments of a job that does not train: loading, then generation or the logits of its batches. Layers keep nothing."""
    resident = [*training_states.weights(job), *comm_buffers.gathered_params(job)]
    generates = other_passes.generates(job)
    name = "generate" if generates and job.book.word("log.phase") != "eval" else "eval"
    passes = other_passes.generation_cache(job) if generates else other_passes.evaluation_pass(job)
    return [Moment("load", tuple(other_passes.loading(job))), Moment(name, (*resident, *passes))]


def frozen_moments(job: Setup) -> list[Moment]:
    """Moments of a model that only computes: reference, reward."""
    resident = [*training_states.weights(job), *comm_buffers.gathered_params(job), *in_process_roles.other_role_terms(job, moments=True)]
    passes = [Moment("load", tuple(training_states.weights(job)))]
    if not job.knows("T", "h", "V"):  # a reward model that no catalogue knows
        return [*passes, Moment("forward_end", tuple(resident))]
    if job.role.headless:
        return [*passes, Moment("forward_end", (*resident, job.term("in_flight", "activations", "3*2*h*T", source=activations.SAVED)))]
    return [
        *passes,
        Moment("loss_call", (*resident, job.term("logprob_logits", "logits", "8*T*V", source="fp32 logits and their log-softmax"))),
    ]


def engine_moments(job: Setup) -> list[Moment]:
    """Moments of a rollout engine: its weights, then with its cache, which has no size of its own where the weights are all that failed."""
    if job.role.apart and is_planned(job.book):
        from diagnose.budget.terms import engine_budget  # not loaded where nothing is served

        return engine_budget.moments(job)
    engine_weights, cache = extra_models.engine_weights(job), kv_cache.engine_cache(job)
    if not engine_weights:
        return []
    others = in_process_roles.other_role_terms(job, moments=True)
    loading = Moment("load", (*engine_weights, *others))
    alone = job.role.apart and failure_moment.engine_is_loading(job.book)
    return [loading] if alone else [loading, Moment("generate", (*engine_weights, *cache, *others))]


def failing_moment(job: Setup, role_moments: list[Moment]) -> tuple[str | None, list[Moment], Moment | None]:
    """(name of the moment of the failure, the moments with that one as it was when the request failed, the same moment had it gone on).
    (None, moments, None) where the failing moment is unknown."""
    name = failure_moment.MOMENT.get(job.book.word("log.phase") or "")
    if failure_moment.failed_while_scoring(job.book) and any(moment.name == "logprob" for moment in role_moments):
        name = "logprob"
    if name == "backward":  # a role that does not train has none
        backward = [moment for moment in role_moments if moment.name in ("loss_backward", "layer_backward")]
        name = max(backward, key=lambda moment: _bytes(moment.terms)).name if backward else None
    stands = next((moment for moment in role_moments if moment.name == name), None)
    if name is None or stands is None:
        return None, role_moments, None
    failed_moment = Moment(name, tuple(terms_at_failure(job, stands)), stands.room)
    return name, [failed_moment if moment.name == name else moment for moment in role_moments], stands


def terms_at_failure(job: Setup, stands: Moment) -> list[Term]:
    """The terms of a moment as of the failure: without optimizer states that no step has created, and only as far as the pass had come."""
    allocated = failure_moment.observed_allocation(job.book)
    exist = failure_moment.has_stepped(job.book, job)
    if exist is None:
        exist = _fits_with_states(job, stands, allocated)
    if stands.name == "optimizer_step" and not exist and allocated is not None:
        return _during_first_step(job, allocated)
    if stands.name in ("eval", "logprob") and not (job.role.predicts and other_passes.generates(job)):
        pass_job = other_passes.job_for_evaluation(job) if stands.name == "eval" else other_passes.job_for_scoring(job)
        return [*(term for term in stands.terms if term.group != "logits"), *failure_moment.before_loss_block(pass_job or job)]
    if stands.name not in ("forward_end", "loss_call"):
        alive = [term for term in stands.terms if term.key not in failure_moment.REQUESTED]
        return alive if exist else _without_states(job, alive)
    resident = [
        *other_passes.resident(job, moments=exist),
        *vision_tower.pixels(job),
        *vision_tower.tower_activations(job),
        *in_process_roles.joint_activations(job),
    ]
    static = [*resident, *comm_buffers.gathered_params(job)]
    if stands.name == "loss_call":
        return [
            *static,
            *activations.stored_activations(job),
            *activations.autocast_cache(job),
            *activations.stem(job),
            *failure_moment.before_loss_block(job),
        ]
    if any(term.key == "vision_layer" for term in stands.terms):
        return [*static, *(term for term in vision_tower.tower_transient(job) if term.key not in failure_moment.REQUESTED)]
    early = [*resident, *comm_buffers.gathered_params(job, early=True)]
    part = failure_moment.partial_forward(job, early, allocated) if allocated is not None else None
    return [*static, *activations.stored_activations(job), *activations.stem(job)] if part is None else [*early, *part]


def _during_first_step(job: Setup, allocated: Size) -> list[Term]:
    """The first step creates the optimizer's moments one by one: those made so far are what is allocated less everything else."""
    every = optimizer_step(job, other_passes.resident(job, moments=True))
    others = [term for term in every if term.key != "moments" and not term.key.startswith("step_")]
    full = total([term.size for term in training_states.optimizer_states(job)])
    everything_else = total([term.size for term in others])
    if not full.bytes:
        return others
    so_far = max(0, min(full.bytes, allocated.bytes - everything_else.bytes))
    symbols = f"max(0, min({full.bytes}, {allocated.bytes} - {everything_else.bytes}))"
    partial_moments = job.term(
        "moments_so_far", "optimizer_states", symbols, source="allocated less everything else", full=show(full.bytes)
    )
    return [*others, partial_moments._replace(size=Size.between(0, full.high, so_far))]


def _fits_with_states(job: Setup, stands: Moment, allocated: Size | None) -> bool:
    """Whether the optimizer's moments exist, without a step count: yes, unless what surely is on the card would then exceed what was
    allocated."""
    if allocated is None or stands.name in ("load", "init"):
        return stands.name not in ("load", "init")
    return total([term.size for term in other_passes.resident(job, moments=True)]).low <= allocated.high


def _without_states(job: Setup, terms: list[Term]) -> list[Term]:
    never = training_states.optimizer_states(job, exist=False)
    return [replacement for term in terms for replacement in (never if term.key == "moments" else [term])]


#: Chunks of a rank in an interleaved schedule, where nobody says how many.
CHUNKS = 2


def with_micro_batches_in_flight(job: Setup, *, last: bool = False) -> Setup:
    """The job with L counted for all micro batches that the first pipeline stage holds, or the `last`, which computes the loss.

    1F1B: a micro batch per stage, the last one. GPipe: every micro batch of the step. Interleaved, v chunks per rank: (pp - 1)/v more than
    1F1B on the first (arXiv 2104.04473, 2205.05198), pp less so much on the last (Megatron core/pipeline_parallel/schedules.py
    get_pp_rank_microbatches). Zero-bubble schedules keep those of 1F1B up to twice, as their backward of weights waits (arXiv 2401.10241).
    No schedule holds more micro batches than a step has.
    """
    stages, layers = job.sharding.pipeline, job.values.get("L")
    if stages < 2 or not isinstance(layers, int) or not job.traits.pipelined:
        return job
    micro_batches = job.book.count("train.gradient_accumulation") or job.book.count("train.global_batch")
    micro = accumulation_steps(job) if micro_batches else None
    dense = job.values.get("L_d")
    letters: dict[str, Number] = {"L": _layers_in_flight(job, layers, stages, micro, last)}
    if isinstance(dense, int):
        letters["L_d"] = _layers_in_flight(job, dense, stages, micro, last)
    return replace(job, values={**job.values, **letters})


def _layers_in_flight(job: Setup, layers: int, stages: int, micro: int | None, last: bool) -> Number:
    """Layers of this rank times the micro batches that it holds."""
    schedule, chunks = job.book.word("parallel.schedule"), model_chunks(job, layers)
    every = layers * micro if micro else None
    if schedule == "gpipe":
        return every or layers * stages
    plain = layers if last else layers * stages
    if schedule == "interleaved" or (schedule in (None, "1f1b") and chunks > 1):
        more = -(-layers * (stages - 1) // max(chunks, CHUNKS if chunks < 2 else 1))
        plain = layers * stages - more if last else plain + more
    bounded = min(plain, every) if every else plain
    if schedule != "zero_bubble":
        return bounded
    return Span(bounded, bounded, min(2 * plain, every) if every else 2 * plain)


def model_chunks(job: Setup, layers: int) -> int:
    """Model chunks per rank in an interleaved schedule; 1 unless set."""
    virtual_stages, chunk_layers = job.book.count("parallel.virtual"), job.book.count("parallel.chunk_layers")
    return virtual_stages or (max(1, layers // chunk_layers) if chunk_layers else 1)
