"""Host memory of a node that DeepSpeed and FSDP take for what they offload: parameters, master weights, moments, gradients. Alive from
initialisation on.

torch's allocator of pinned memory rounds every tensor up to a power of two (aten/src/ATen/core/CachingHostAllocator.h), so that what is
pinned takes up to twice its bytes; by how much is known where the tensor's size is. Which tensors are pinned, and in which releases, was
read in DeepSpeed's runtime/zero/stage3.py and stage_1_and_2.py.

In all functions `per` divides bytes of the whole job by its nodes ("/nodes", or "" for one node), and n_r are ranks on this node.
"""

from __future__ import annotations

from diagnose.budget.model.formulas import Number, term
from diagnose.budget.model.ledger import Term
from diagnose.budget.model.role_setup import Setup
from diagnose.budget.model.software_table import table
from diagnose.budget.terms.training_states import ZERO, accumulates_gradients, letter
from diagnose.release_spans import releases
from diagnose.ternary import Truth

#: The most that a pinned tensor takes of its own bytes.
ROUNDED = 2

FSDP = "torch FSDP: CPUOffload"


def parameters(job: Setup, values: dict[str, Number], per: str) -> Term:
    """Offloaded parameters, w*P bytes. ZeRO-3 lays those that learn into one pinned buffer per rank, whatever is asked (stage3.py
    _create_param_groups_fp16_flat_cpu_memory); frozen ones are partitioned one by one, and pinned where it is asked."""
    width = letter(job.precision.weight, "w")
    if not job.sharding.zero:
        return term("host_parameters", "weights", f"{width}*P{per}", values, source=FSDP)
    whole = job.role.trained and not job.trainable.lora
    if whole:
        return _rank_terms("host_parameters", "weights", f"{width}*P", values, per, True)
    upper = "" if job.book.switch("zero.pin_memory") is False else f"{ROUNDED}*{width}*P{per}"
    return term("host_parameters", "weights", f"{width}*P{per}", values, source=ZERO, high=upper)


def states(job: Setup, values: dict[str, Number], per: str) -> list[Term]:
    """Offloaded optimizer states and gradients."""
    if not job.sharding.zero:
        width = letter(job.precision.gradient, "g")
        moments = term("host_states", "optimizer_states", f"8*Pt{per}", values, source=FSDP)
        return [term("host_gradients", "gradients", f"{width}*Pt{per}", values, source=FSDP), moments]
    if job.sharding.scheme != "zero3":
        return _zero12_states(job, values, per)
    on_nvme = job.book.word("zero.offload_optimizer") == "nvme" and job.knows("N")
    return _nvme_states(job, values, per) if on_nvme else _zero3_states(job, values, per)


def _zero3_states(job: Setup, values: dict[str, Number], per: str) -> list[Term]:
    """ZeRO-3, 18 bytes per trained parameter: gradients in the model's precision (g), the fp32 gradients of every sub-group (4), master
    weights and moments (12). Gradients are pinned where it is asked, states never."""
    pins = job.book.switch("zero.pin_memory")
    partition = letter(job.precision.gradient, "g")
    size = job.book.count("zero.sub_group") or table()["zero_defaults"]["sub_group"]
    groups = f"((Pt/N//{size})*pow2(4*{size}) + pow2(4*(Pt/N - Pt/N//{size}*{size})))"
    return [
        _rank_terms("host_gradients", "gradients", f"{partition}*Pt", values, per, pins),
        _rank_terms("host_gradients_fp32", "gradients", "4*Pt", values, per, pins, groups),
        term("host_states", "optimizer_states", f"12*Pt{per}", values, source=ZERO),
    ]


def _nvme_states(job: Setup, values: dict[str, Number], per: str) -> list[Term]:
    """ZeRO-3 with states on NVMe: states and their gradients pass through pinned buffers of the largest sub-group; gradients in the model's
    precision stay in host memory."""
    size = job.book.count("zero.sub_group") or table()["zero_defaults"]["sub_group"]
    swapped = f"{table()['zero_defaults']['swap_buffers']}*4*min({size}, Pt/N)*n_r"
    source = "DeepSpeed runtime/swap_tensor/partitioned_optimizer_swapper.py: buffer_count"
    partition = letter(job.precision.gradient, "g")
    return [
        _rank_terms("host_gradients", "gradients", f"{partition}*Pt", values, per, job.book.switch("zero.pin_memory")),
        term("host_swap", "optimizer_states", swapped, values, source=source),
    ]


def _zero12_states(job: Setup, values: dict[str, Number], per: str) -> list[Term]:
    """ZeRO-1 and 2: fp32 gradients, master weights, moments; from DeepSpeed 0.17 on a 16-bit partition that updated weights pass through; a
    staging buffer of the largest parameter per rank; while gradients accumulate, those of earlier micro batches, parameter by parameter."""
    release, rule = job.book.version("version.deepspeed"), table()["deepspeed_host"]
    pins = job.book.switch("zero.pin_memory")
    master = pins if releases(rule["master_asked"]).holds(release) else releases(rule["master_pinned"]).holds(release)
    if release is None and pins:
        master = True
    terms = [
        _rank_terms("host_gradients", "gradients", "4*Pt", values, per, pins),
        _rank_terms("host_master", "optimizer_states", "4*Pt", values, per, master),
        term("host_states", "optimizer_states", f"8*Pt{per}", values, source=ZERO),
    ]
    if accumulates_gradients(job):
        upper = "" if pins is False else f"{ROUNDED}*2*Pt{per}"
        terms.append(term("host_accumulated", "gradients", f"2*Pt{per}", values, source=ZERO, high=upper))
    if release is None:
        terms.append(term("host_weights_buffer", "weights", f"0*2*Pt{per}", values, source=ZERO, high=f"2*Pt{per}"))
    elif releases(rule["weights_buffer"]).holds(release):
        terms.append(_rank_terms("host_weights_buffer", "weights", "2*Pt", values, per, pins))
    if not job.trainable.lora and job.knows("V", "h"):
        terms.append(term("host_staging", "gradients", "2*V*h*n_r", values, source=ZERO))
    return terms


def _rank_terms(key: str, group: str, symbols: str, values: dict[str, Number], per: str, pinned: Truth, rank_symbols: str = "") -> Term:
    """The term of one tensor on every rank of the node; `symbols`: bytes of all ranks of the job. `pinned` rounds each rank's tensor up to
    a power of two; None makes that the upper end. `rank_symbols`: a rank's pinned bytes where it has several tensors."""
    if pinned is False:
        return term(key, group, f"{symbols}{per}", values, source=ZERO)
    rounded = f"n_r*{rank_symbols or f'pow2({symbols}/N)'}" if "N" in values else f"{ROUNDED}*{symbols}{per}"
    if pinned and "N" in values:
        return term(key, group, rounded, values, source=ZERO)
    return term(key, group, f"{symbols}{per}", values, high=rounded, source=ZERO)
