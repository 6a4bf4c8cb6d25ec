"""Communication buffers: parameters gathered for use, gradients on their way to be reduced."""

from __future__ import annotations

from diagnose.budget.model.ledger import Term
from diagnose.budget.model.role_setup import Setup
from diagnose.budget.model.software_table import table
from diagnose.budget.terms import training_states
from diagnose.budget.terms.optimizer_step import steps_in_backward
from diagnose.budget.terms.training_states import ZERO
from diagnose.budget.terms.weight_terms import is_quantised, merged_experts, unit_width
from diagnose.release_spans import releases
from diagnose.ternary import not_
from diagnose.traits import during

#: From this prefetch size on the coordinator keeps gathering until the limit of live parameters: DeepSpeed's default.
EAGER_PREFETCH = 50_000_000


def resident_bucket(job: Setup) -> list[Term]:
    """ZeRO-3's reduce bucket: 2*reduce_bucket_size bytes from initialisation on."""
    return _bucket(job, "2") if job.role.trained and job.sharding.scheme == "zero3" else []


def backward_bucket(job: Setup) -> list[Term]:
    """The reduce bucket of ZeRO-1 and 2 in backward: 2*reduce_bucket_size bytes, twice that with overlap_comm."""
    if not job.role.trained or job.sharding.scheme not in ("zero1", "zero2") or job.traits.main_weights:
        return []
    return _bucket(job, "2*2" if job.book.switch("zero.overlap_comm") else "2")


def staging(job: Setup) -> list[Term]:
    """The buffer through which ZeRO-1 and 2 move gradients when the optimizer is offloaded: 2*V*h bytes, the largest parameter, from
    initialisation on."""
    away = job.sharding.offload_optimizer and job.sharding.scheme in ("zero1", "zero2")
    if not away or not job.role.trained or job.trainable.lora or job.traits.main_weights or not job.knows("V", "h"):
        return []
    source = "DeepSpeed zero/stage_1_and_2.py temp_grad_buffer_for_gpu_offload"
    return [job.term("offload_staging", "comm_buffers", "2*V*h", source=source)]


def stated_bucket(job: Setup, name: str) -> int | None:
    """A bucket size in elements that a file, log or user states. Under an HF integration a default states nothing: what is left out there
    may be DeepSpeed's default or the integration's own value from the hidden size."""
    fact = job.book.fact(name)
    if fact is None or (fact.origin == "default" and not job.sharding.hands_on):
        return None
    return job.book.count(name)


def _bucket(job: Setup, width: str) -> list[Term]:
    """The reduce bucket at `width` bytes per element: the stated size, DeepSpeed's default, or from h*h (accelerate's `auto`) up to that
    default."""
    size, default = stated_bucket(job, "zero.reduce_bucket"), table()["zero_defaults"]["reduce_bucket"]
    if size is not None:
        return [job.term("reduce_bucket", "comm_buffers", f"{width}*{size}", source="DeepSpeed zero/config.py reduce_bucket_size")]
    if job.sharding.hands_on or not job.knows("h"):
        return [job.term("reduce_bucket", "comm_buffers", f"{width}*{default}", source="DeepSpeed zero/config.py reduce_bucket_size")]
    high = f"max({width}*{default}, {width}*h*h)"
    return [job.term("reduce_bucket", "comm_buffers", f"{width}*h*h", high=high, source="accelerate: reduce_bucket_size auto = h*h")]


def secondary_partition(job: Setup) -> list[Term]:
    """ZeRO++'s second partition of the weights (hpZ), from which backward gathers within a node: 2*P/N_2 bytes from the first forward pass
    on. A quantised base has none."""
    if not job.knows("P", "N_2") or is_quantised(job.book):
        return []
    return [job.term("weights_second", "weights", "2*P/N_2", source="DeepSpeed zero/partition_parameters.py ds_secondary_tensor")]


def wide_reduction(job: Setup) -> list[Term]:
    """DeepSpeed that reduces 16-bit gradients in fp32 (communication_data_type): a bucket's cast and what it is reduced into, 8 bytes per
    element of the bucket, in backward. Sequence parallel groups do so by default; the lower end is then 0."""
    reduce_dtype, parallel = job.book.word("train.reduce_dtype"), job.sharding.context > 1
    if not job.role.trained or job.sharding.scheme not in ("zero1", "zero2", "zero3") or job.traits.main_weights:
        return []
    if reduce_dtype != "fp32" and not (reduce_dtype is None and parallel):
        return []
    size, default = stated_bucket(job, "zero.reduce_bucket"), table()["zero_defaults"]["reduce_bucket"]
    bucket = str(size) if size is not None else str(default) if job.sharding.hands_on or not job.knows("h") else "h*h"
    low, source = (
        "" if reduce_dtype == "fp32" else "0",
        "DeepSpeed runtime/engine.py communication_data_type; zero/stage3.py, stage_1_and_2.py",
    )
    return [job.term("reduce_wide", "comm_buffers", f"(4 + 4)*{bucket}", low=low, source=source)]


def ddp_buckets(job: Setup) -> list[Term]:
    """DDP's buckets of gradients, 2*Pt bytes (4 for fp32), from the first backward on; 0 where gradients are views of them."""
    if job.sharding.scheme != "ddp" or not job.role.trained or not job.knows("Pt"):
        return []
    width = "4" if job.trainable.lora or job.precision.weight == 4 else "2"
    source = "torch DistributedDataParallel: gradient_as_bucket_view=False"
    return [job.term("ddp_buckets", "comm_buffers", f"{width}*Pt", low="0", source=source)]


def gathered_params(job: Setup, *, early: bool = False) -> list[Term]:
    """16-bit parameters that are whole on the card while they are used, kept for reuse, or fetched ahead (ZeRO-3, FSDP).

    `early`: in the first layers of a forward pass nothing is kept yet, because its next use, in backward, is far away.
    """
    if not job.knows("P", "h", "V", "P_layer"):
        return []
    if job.sharding.scheme == "fsdp":
        return _fsdp_units(job)
    if job.sharding.scheme == "fsdp_grad":
        return [job.term("fsdp_whole", "comm_buffers", "2*P", source="torch FSDP SHARD_GRAD_OP: parameters stay gathered")]
    if job.sharding.scheme != "zero3":
        return []
    live, prefetch = stated_bucket(job, "zero.max_live_parameters"), stated_bucket(job, "zero.prefetch_bucket")
    default = table()["zero_defaults"]["max_live_parameters"]
    lower, upper = "2*max(V*h, P_layer)", f"2*min(P, {default if live is None else live})"
    if live is None and job.sharding.hands_on:
        live = default
    if live == 0:
        ends = "V*h" if job.model and job.model.tied else "2*V*h"
        return [job.term("gathered_in_use", "comm_buffers", f"2*{ends} + 2*2*P_layer", low="2*P_layer", source=ZERO)]
    if live is None or early:
        return [job.term("gathered_layers", "comm_buffers", "2*2*P_layer", low="2*P_layer", high=upper, source=ZERO)]
    if not job.sharding.hands_on and (prefetch is None or prefetch < EAGER_PREFETCH):
        return [job.term("gathered_largest", "comm_buffers", lower, high=upper, source=ZERO)]
    return [job.term("gathered_kept", "comm_buffers", upper, low=f"min({lower}, {upper})", source=ZERO)]


def _root_elements(job: Setup) -> str:
    """Elements of FSDP's root unit as a formula: embedding and head (V*h each), less what is wrapped as a unit of its own; "" where nothing
    is left. FSDP1 cannot part a head from the embedding whose weight it uses."""
    wrapped = (job.book.word("fsdp.wrap") or "").lower()
    embedding, head = "embed" in wrapped, any(name in wrapped for name in ("lm_head", "output"))
    if job.model and job.model.tied:
        return "" if head or (embedding and job.book.count("fsdp.version") != 1) else "V*h"
    return {0: "2*V*h", 1: "V*h", 2: ""}[embedding + head]


def _fsdp_units(job: Setup) -> list[Term]:
    """Gathered units of FSDP: two layers in flight, 2*2*P_layer bytes (of a quantised base as many as it is stored in), and the root unit
    from its forward to its backward, 2 bytes per
    element. FSDP2 copies a unit out of its all-gather buffer, so that a third may exist for a moment."""
    ends, width = _root_elements(job), unit_width(job)
    third = f"3*{width}*P_layer" if job.book.count("fsdp.version") == 2 else ""
    units = job.term("fsdp_units", "comm_buffers", f"2*{width}*P_layer", high=third, source="torch FSDP: two units with implicit prefetch")
    if not ends:
        return [units, job.term("fsdp_embedding", "comm_buffers", "2*V*h", low="0", source="torch FSDP: a unit of its own")]
    return [units, job.term("fsdp_root", "comm_buffers", f"2*{ends}", low="0", source="torch FSDP: the root unit stays gathered")]


def whole_gradients(job: Setup) -> list[Term]:
    """Unsharded gradients under FSDP's no_sync, 2*P bytes (LoRA: 4*Pt): micro batches before the last of a step add theirs up without
    reducing; before 1.11 accelerate had no such thing for FSDP2. A pipeline reduces with its last micro batch, and FSDP2 adds up in the
    type it reduces in. One process alone does not reduce, and an update within backward leaves nothing to add up."""
    if job.values.get("N") == 1 or steps_in_backward(job):
        return []
    if job.traits.gathered_in_pipeline and job.sharding.pipeline > 1 and job.sharding.scheme.startswith("fsdp") and job.knows("P"):
        source = "torch/distributed/pipelining/stage.py backward_maybe_with_nosync; _fsdp_param.py accumulate_unsharded_grad_if_needed"
        held = "Pt" if job.trainable.lora else "P"
        return [job.term("gradients_whole", "gradients", f"{_reduction_width(job)[1]}*{held}", source=source)]
    waits = training_states.accumulates_gradients(job)
    if job.sharding.scheme not in ("fsdp", "fsdp_grad") or not waits or not job.traits.unsynced_gradients or not job.knows("P", "Pt"):
        return []
    with_frozen = job.traits.unsynced_with_frozen and not is_quantised(job.book)  # 4 bits lie in no flat parameter that has gradients
    flat = "P" if not job.trainable.lora or with_frozen else "Pt"
    width = "2" if flat == "P" else "4"
    reduced = _reduced_each_time(job, table()["sync_each_batch_ignored"])
    if not reduced and job.traits.synced_fsdp2 and job.book.count("fsdp.version") == 2:
        reduced = during(job.traits.synced_fsdp2, job.book)
    if reduced:
        return []
    source = "torch FSDP no_sync: unsharded gradients (accelerate sync_each_batch)"
    least = f"{width}*{flat}/N" if reduced is None and job.knows("N") else ""
    return [job.term("gradients_whole", "gradients", f"{width}*{flat}", low=least, source=source)]


def _reduced_each_time(job: Setup, ignored: str) -> bool | None:
    """Whether sync_each_batch makes every micro batch reduce its gradients; None where the release is unknown and may ignore it."""
    if not job.book.switch("fsdp.sync_each_batch"):
        return False
    return not_(releases(ignored).holds(job.book.version("version.transformers")))


def root_gradients(job: Setup) -> list[Term]:
    """The root unit's gradients at the end of backward, for each element 2 bytes whole and 2 or 4 in the block in which they are
    reduced."""
    ends = _root_elements(job)
    if job.sharding.scheme not in ("fsdp", "fsdp_grad") or not ends or job.trainable.lora or not job.knows("V", "h"):
        return []
    source, (least, width) = "torch FSDP: post-backward of the root unit", _reduction_width(job)
    return [
        job.term("fsdp_root_gradient", "comm_buffers", f"2*{ends}", source=source),
        job.term("fsdp_root_reduce", "comm_buffers", f"{width}*{ends}", low=f"{least}*{ends}", source=source),
    ]


def _reduction_width(job: Setup) -> tuple[int, int]:
    """(least, figure): bytes per gradient when FSDP reduces it. As set; else in fp32 where the framework asks for it; else in the
    parameters' precision, as accelerate does. 2 to 4 where the framework is unknown."""
    stated_width = {"fp32": 4, "bf16": 2, "fp16": 2}.get(job.book.word("train.reduce_dtype") or "")
    if stated_width:
        return stated_width, stated_width
    width = job.traits.reduction_bytes
    return (2, 4) if width is None else (width, width)


def exchanged_tokens(job: Setup) -> list[Term]:
    """What ranks that share a sequence exchange in attention. A ring has the neighbour's keys and values twice, 8*k*T bytes; an exchange of
    heads (Ulysses) queries, keys, values and outputs as sent and as received, up to 2*(4*q + 4*k)*T."""
    terms: list[Term] = []
    if job.sharding.context > 1 and job.knows("q", "k", "T"):
        source = "ring attention: the neighbour's keys and values; DeepSpeed sequence/layer.py: all-to-all"
        terms.append(job.term("exchanged", "comm_buffers", "8*k*T", high="2*(4*q + 4*k)*T", source=source))
    return [*terms, *gathered_sequence(job)]


def gathered_sequence(job: Setup) -> list[Term]:
    """The whole input of a layer that sequence parallel ranks gather, 2*h*T_l: one at a time in Megatron's buffer, which stays; while the
    loss is computed that of the head."""
    if not job.knows("T_l", "h"):
        return []
    source = "Megatron core/tensor_parallel/layers.py: all_gather_buffer; torch tensor/parallel/style.py ColwiseParallel: saved by the head"
    return [job.term("sequence_gathered", "comm_buffers", "2*h*T_l", source=source)]


def backward_units(job: Setup) -> list[Term]:
    """Gradients of the layer in backward before they are reduced (ZeRO-3, FSDP): 2*P_layer bytes."""
    if job.sharding.scheme not in ("zero3", "fsdp", "fsdp_grad") or not job.knows("P_layer") or job.trainable.lora:
        return []
    source = ZERO if job.sharding.zero else "torch FSDP: gradients of the unit in hand, before reduce-scatter"
    return [job.term("layer_gradients", "comm_buffers", "2*P_layer", source=source), *indexed_gradient(job)]


def indexed_gradient(job: Setup) -> list[Term]:
    """Where experts are slices of one tensor, the gradient of one expert's slice as autograd makes it: as large as the tensor, 2*2*h*f_e*E
    of gate and up, beside the sum of those before. From transformers 5 on one product takes all experts."""
    indexed = job.model is not None and job.model.family in table()["indexed_experts"]["families"]
    if not indexed or merged_experts(job) or not job.knows("h", "f_e", "E"):
        return []
    return [job.term("indexed_gradient", "gradients", "4*h*f_e*E", source=table()["indexed_experts"]["source"])]
