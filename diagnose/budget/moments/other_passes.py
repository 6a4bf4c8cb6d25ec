"""Moments outside the training step: idle, loading, generation, scoring, weight synchronisation, evaluation, saving."""

from __future__ import annotations

from dataclasses import replace

from diagnose.budget.model.batch_shape import rows_at_once
from diagnose.budget.model.formulas import Number, term
from diagnose.budget.model.ledger import Moment, Term, total
from diagnose.budget.model.role_setup import Setup
from diagnose.budget.model.software_table import table
from diagnose.budget.moments import failure_moment, in_process_roles
from diagnose.budget.terms import activations, comm_buffers, extra_models, kv_cache, logits, training_states, weight_terms
from diagnose.budget.terms.weight_terms import adapter_width, is_quantised
from diagnose.facts import FactBook


def resident(job: Setup, *, moments: bool, engine: bool = False) -> list[Term]:
    """Everything on the card between two passes."""
    return [*in_process_roles.own_terms(job, moments=moments), *in_process_roles.other_role_terms(job, moments=moments, engine=engine)]


def generating(job: Setup) -> list[Term]:
    """Rollout: what stays of the trainer, the samples of the round and the copy in which they are sent, the trainer's own cache."""
    stays = in_process_roles.staying_terms(job, in_process_roles.own_terms(job, moments=True))
    return [
        *stays,
        *in_process_roles.other_role_terms(job, moments=True, engine=True),
        *extra_models.samples(job),
        *kv_cache.own_generation(job),
        *comm_buffers.gathered_params(job),
    ]


def loading(job: Setup) -> list[Term]:
    """Weights while they are loaded. A script that moves the model to the card first holds it whole; FSDP brings one unit at a time; a
    quantised base is quantised tensor by tensor."""
    if job.book.switch("script.cuda_before_shard") and not job.sharding.whole_weights and job.knows("P"):
        return [job.term("weights_before_shard", "weights", "2*P", source="model.to(cuda) before the engine exists")]
    resident = [*training_states.weights(job), *training_states.adapters(job), *extra_models.reference(job), *extra_models.teacher(job)]
    resident += weight_terms.unpacked_experts(job)
    if job.sharding.scheme in ("fsdp", "fsdp_grad") and job.knows("P_layer", "V", "h"):
        width = training_states.letter(job.precision.weight, "w")
        resident.append(
            job.term("load_unit", "weights", f"{width}*max(P_layer, V*h)", source="torch FSDP: one unit at a time is moved and sharded")
        )
    elif any(term.key == "weights_quantized" for term in resident) and job.knows("h", "f"):
        resident.append(job.term("load_tensor", "weights", "2*h*f", source="the tensor that is being quantised"))
    elif job.traits.main_weights and job.sharding.scheme == "zero1" and job.role.trained and job.knows("Pt"):
        source = "Megatron core/distributed/param_and_grad_buffer.py: what learns is copied into buffers beside those of the gradients"
        resident += [job.term("load_buffers", "weights", "2*Pt", source=source), *training_states.gradients(job, resident=True)]
    return resident


def weight_sync(job: Setup, resident: list[Term]) -> list[Moment]:
    """Weights on their way to the engine: an adapter is merged into the whole model, or into its shards; full weights, and those merged in
    shards, go one by one, or in buckets."""
    if (job.book.word("rollout.engine") or "none") in ("none", "hf") or job.sharding.whole_weights or not job.knows("P", "V", "h"):
        return []
    if job.trainable.lora and not job.traits.merges_shards:
        parts, layers = job.book.count("rollout.sync_batches"), job.values.get("L")
        some = f"max(2*P_layer*{-(-layers // parts)}, 2*2*V*h)" if parts and isinstance(layers, int) and job.knows("P_layer") else "2*P"
        whole_copy = job.term("sync_whole", "comm_buffers", some, source="gathered for the engine")
    else:
        high = f"2*V*h + {job.traits.sync_bucket}" if job.traits.sync_bucket else ""
        if not high and job.sharding.scheme == "fsdp" and not job.traits.syncs_one_by_one:
            high = "max(2*V*h, 4*P)"  # a whole fp32 state dict
        whole_copy = job.term("sync_one", "comm_buffers", "2*V*h", high=high, source="gathered for the engine")
    return [Moment("weight_sync", (*in_process_roles.staying_terms(job, resident), whole_copy))]


def job_for_evaluation(job: Setup) -> Setup | None:
    """The job with the batch of evaluation."""
    rows, length = job.book.count("eval.batch_size"), job.values.get("s")
    if rows is None or not isinstance(length, int):
        return None
    all_rows = 2 * rows if job.stage in table()["pairs"] else rows
    return replace(job, values={**job.values, "b": rows, "B": all_rows, "T": -(-all_rows * length // job.sharding.context)})


def evaluation(job: Setup, live: list[Term]) -> list[Moment]:
    """One evaluation forward of the policy, and the predictions that stay on the card until they are moved to the host. A critic has no
    such pass (trl experimental/ppo/ppo_trainer.py generate_completions)."""
    eval_job = job_for_evaluation(job) if job.role.policy else None
    if eval_job is None or not (job.book.switch("eval.enabled") or job.book.word("log.phase") == "eval"):
        return []
    scored = [*live, *evaluation_pass(eval_job)]
    generation_moments = generation(eval_job)
    if generation_moments and job.traits.generates_without_loss:
        return [Moment("eval", (*live, *generation_moments))]
    return [
        Moment("eval", tuple(max([scored, [*live, *generation_moments]], key=lambda terms: total([term.size for term in terms]).bytes)))
    ]


def evaluation_pass(job: Setup) -> list[Term]:
    """What one evaluation pass takes for itself, and the predictions that stay on the card."""
    return [*activations.stem(job), *logits.in_evaluation(job), *predictions(job)]


def generation(job: Setup) -> list[Term]:
    """What generation during evaluation takes on top of all that training keeps. The loss, if one is computed, comes when the cache is
    free."""
    return generation_cache(job) if generates(job) else []


def generates(job: Setup) -> bool:
    """Whether evaluation, or a job that only predicts, generates text."""
    book = job.book
    logged = book.word("log.doing") == "generate_in_evaluation" or (job.role.predicts and book.word("log.phase") == "generation")
    return logged or bool(book.switch("eval.generates"))


def generation_cache(job: Setup) -> list[Term]:
    """The KV cache of all rows at their longest, and what filling it takes."""
    rows, longest = job.values.get("b"), job.book.count("eval.generation_len") or job.values.get("s")
    return kv_cache.cache(job, rows, longest) if isinstance(rows, int) and isinstance(longest, int) else []


def predictions(job: Setup) -> list[Term]:
    """Logits that a transformers Trainer collects for metrics: of the steps it may keep before they go to the host
    (eval_accumulation_steps). Without a limit those of one step, growing with every further one. Every rank gathers those of all ranks."""
    book = job.book
    if book.switch("eval.loss_only") or not job.knows("T", "V") or not job.traits.collects_predictions or job.role.headless:
        return []
    key = "eval_kept" if book.count("eval.accumulation_steps") else "eval_kept_per_step"
    symbols, values = kept_predictions(job), {**job.values, **evaluating_ranks(job)}
    source = "transformers trainer.py evaluation_loop: all_preds until eval_accumulation_steps"
    if book.switch("eval.metrics"):
        return [term(key, "logits", symbols, values, source=source)]
    return [term(key, "logits", f"0*({symbols})", values, high=symbols, source=source)]


def kept_predictions(job: Setup) -> str:
    """Formula of the bytes of logits that every rank collects, those of all ranks."""
    steps = job.book.count("eval.accumulation_steps")
    width = "4" if any(block.name == "logits_fp32" for block in job.loss.call) else "2"
    return f"{f'{steps}*' if steps else ''}{width}*T*V{'*n_d' if evaluating_ranks(job) else ''}"


def evaluating_ranks(job: Setup) -> dict[str, Number]:
    """The letter n_d, ranks that evaluate rows of their own; empty on one card."""
    ranks = (job.sharding.ranks or 1) // job.sharding.context
    return {"n_d": ranks} if ranks > 1 else {}


def job_for_scoring(job: Setup) -> Setup | None:
    """The job with the rows of a forward pass that only scores rollouts; None where it has no batch of its own."""
    rows, length = rows_at_once(job.book, scoring_rows(job.book)), job.values.get("s")
    if rows is None or not isinstance(length, int) or job.stage not in table()["rollouts"]:
        return None
    return replace(job, values={**job.values, "b": rows, "B": rows, "T": -(-rows * length // job.sharding.context)})


def scoring_rows(book: FactBook) -> str:
    """The knob that sets how many rows are scored at a time."""
    return (
        "rollout.micro_batch" if book.count("rollout.micro_batch") and not book.count("rollout.logprob_batch") else "rollout.logprob_batch"
    )


def job_that_failed(job: Setup) -> Setup:
    """The job with the batch of the failed forward pass: that of scoring if only scoring was going on."""
    return (job_for_scoring(job) if failure_moment.failed_while_scoring(job.book) else None) or job


def scoring_pass(job: Setup, live: list[Term]) -> list[Moment]:
    """Log-probabilities of finished rollouts: a forward pass without backward, with those states away that leave the card between phases. A
    run that failed in training had got through it; one that has not begun has it before it."""
    begun = job.book.word("log.phase") is not None
    scoring_job = job_for_scoring(job) if failure_moment.failed_while_scoring(job.book) or not begun else None
    if scoring_job is None or job.role.headless or not job.knows("P", "V", "h"):
        return []
    staying = [term for term in live if term.group == "weights" or term.group not in training_states.away(job)]
    return [Moment("logprob", (*staying, *activations.stem(scoring_job), *logits.during_loss_call(scoring_job)))]


def saving(job: Setup, resident: list[Term]) -> list[Moment]:
    """Gathering for a checkpoint: one parameter at a time under ZeRO-3, one unit for a full FSDP state dict that goes to host memory,
    everything for one that does not. Only a failure there tells which."""
    if job.book.word("log.doing") == "merge_adapter" and job.trainable.lora and job.knows("h", "f"):
        return [Moment("save", (*resident, *merging(job)))]
    full = job.book.switch("save.gather_full")
    if job.sharding.whole_weights or not job.knows("P", "V", "h", "P_layer") or full is False:
        return []
    width = training_states.letter(job.precision.weight, "w")
    if job.sharding.scheme == "fsdp" and full:
        unit = f"{width}*max(P_layer, V*h)"
        if job.book.word("log.phase") != "checkpoint_save":
            return [Moment("save", (*resident, job.term("save_gather", "comm_buffers", unit, source="torch FSDP full state dict")))]
        whole = job.term("save_whole", "comm_buffers", f"{width}*P", low=f"{width}*P_layer", source="torch FSDP full state dict")
        return [Moment("save", (*resident, whole))]
    return [Moment("save", (*resident, job.term("save_gather", "comm_buffers", "2*V*h", source="parameters gathered one by one")))]


def merging(job: Setup) -> list[Term]:
    """Merging an adapter into its weights, one linear at a time: the product of its factors is as large as the largest matrix, in the
    adapter's precision; of a quantised base that matrix exists once more, in 16 bits."""
    width = 2 if adapter_width(job) == 2 else 4
    terms = [job.term("merge_delta", "weights", f"{width}*h*f", source="PEFT tuners/lora/layer.py get_delta_weight")]
    if is_quantised(job.book):
        terms.append(job.term("merge_base", "weights", "2*h*f", source="PEFT tuners/lora/bnb.py merge: the dequantised weight"))
    return terms
