"""The moments of a step that trains a network that draws images."""

from __future__ import annotations

from collections.abc import Iterable

from diagnose.budget.model.ledger import Moment, Term
from diagnose.budget.model.role_setup import Setup
from diagnose.budget.moments import other_passes
from diagnose.budget.terms import comm_buffers, denoiser, training_states


def moments(job: Setup) -> list[Moment]:
    """Loading, the end of forward, backward with everything stored or with every gradient there, the optimizer's step."""
    resident = [*other_passes.resident(job, moments=True), *denoiser.beside(job)]
    live = [*resident, *comm_buffers.gathered_params(job)]
    stored, part = denoiser.stored(job), [*denoiser.recomputed(job), *comm_buffers.backward_bucket(job)]
    cached = [] if job.checkpointing == "disabled" else denoiser.autocast_copies(job)
    has_gradients = any(term.group == "gradients" and term.size.bytes for term in live)
    grown = [] if has_gradients else training_states.gradients(job, resident=False)
    step = [term for term in resident if term.group != "gradients"]
    return [
        Moment("load", (*other_passes.loading(job), *denoiser.beside(job))),
        Moment("init", (*other_passes.resident(job, moments=False), *denoiser.beside(job))),
        Moment("forward_end", (*live, *stored, *cached)),
        Moment("layer_backward", tuple(max([*live, *stored, *part], [*live, *grown, *part], key=_bytes))),
        Moment("optimizer_step", (*step, *training_states.gradients(job, resident=False), *training_states.step_transient(job))),
    ]


def _bytes(terms: Iterable[Term]) -> int:
    return sum(term.size.bytes for term in terms)
