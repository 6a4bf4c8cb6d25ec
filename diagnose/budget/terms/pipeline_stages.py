"""What the first stage of a pipeline holds: the micro batches whose backward has not come back to it yet."""

from __future__ import annotations

from diagnose.budget.model.formulas import Number, Span
from diagnose.budget.model.role_setup import Setup
from diagnose.budget.terms.training_states import accumulation
from diagnose.record import replace

#: Chunks of a rank in an interleaved schedule, where nobody says how many.
CHUNKS = 2


def in_flight(job: Setup) -> Setup:
    """The job with the layers of all micro batches that the first stage holds. The last stage, which computes the loss, holds one.

    1F1B: a micro batch per stage. GPipe: every micro batch of the step. Interleaved, v chunks per rank: (pp - 1)/v more than 1F1B
    (arXiv 2104.04473, 2205.05198). Zero-bubble schedules keep those of 1F1B up to twice, as their backward of weights waits
    (arXiv 2401.10241). No schedule holds more micro batches than a step has.
    """
    stages, layers = job.sharding.pipeline, job.values.get("L")
    if stages < 2 or not isinstance(layers, int) or not job.traits.pipelined:
        return job
    micro_batches = job.book.count("train.gradient_accumulation") or job.book.count("train.global_batch")
    micro = accumulation(job) if micro_batches else None
    dense = job.values.get("L_d")
    letters: dict[str, Number] = {"L": _held(job, layers, stages, micro)}
    if isinstance(dense, int):
        letters["L_d"] = _held(job, dense, stages, micro)
    return replace(job, values={**job.values, **letters})


def _held(job: Setup, layers: int, stages: int, micro: int | None) -> Number:
    """Layers of this rank times the micro batches that it holds."""
    schedule, chunks = job.book.word("parallel.schedule"), chunks_of(job, layers)
    every = layers * micro if micro else None
    if schedule == "gpipe":
        return every or layers * stages
    plain = layers * stages
    if schedule == "interleaved" or (schedule in (None, "1f1b") and chunks > 1):
        plain += -(-layers * (stages - 1) // max(chunks, CHUNKS if chunks < 2 else 1))
    bounded = min(plain, every) if every else plain
    if schedule != "zero_bubble":
        return bounded
    return Span(bounded, bounded, min(2 * plain, every) if every else 2 * plain)


def chunks_of(job: Setup, layers: int) -> int:
    """Model chunks per rank, by their number or by the layers of each; 1 where nobody says."""
    virtual_stages, chunk_layers = job.book.count("parallel.virtual"), job.book.count("parallel.chunk_layers")
    return virtual_stages or (max(1, layers // chunk_layers) if chunk_layers else 1)
