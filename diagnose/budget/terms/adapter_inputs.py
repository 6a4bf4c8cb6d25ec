"""What LoRA and LLaMA-Adapter keep for backward beside what the layer keeps, in bytes per token of a layer."""

from __future__ import annotations

from collections.abc import Mapping

from diagnose.budget.model.ledger import Term
from diagnose.budget.model.role_setup import Setup
from diagnose.budget.model.software_table import table
from diagnose.budget.terms import dora
from diagnose.budget.terms.expert_activations import adapts_experts, has_shared_expert
from diagnose.budget.terms.layer_mode import Mode, adapter_copies, runs_autocast
from diagnose.budget.terms.weight_terms import adapter_width, merged_experts
from diagnose.catalogue import Model
from diagnose.units import Version


def dense_inputs(job: Setup, how: Mode) -> list[str]:
    """The summands for a layer with one MLP."""
    parts = [_inputs(job, how, sparse=False), _masks_of_outputs(job), _quantised_inputs(job, how), _padded_outputs(job, how)]
    return [part for part in [*parts, *dora.outputs(job, how), *prompt_adapter_values(job, how)] if part]


def sparse_inputs(job: Setup, how: Mode) -> list[str]:
    """The summands for a layer with experts."""
    inputs = _inputs(job, how, sparse=True)
    return [inputs] if inputs else []


def count_inputs(model: Model | None) -> int:
    """How many tensors the linears of attention and MLP read: 1 where both follow the same norm (parallel blocks), else 2."""
    return 1 if model and model.parallel and model.norms == 1 else 2


def _inputs(job: Setup, how: Mode, *, sparse: bool) -> str:
    """Inputs that LoRA keeps for its gradients. An adapter in the precision of what it reads shares the linear's input; another keeps a
    copy per linear in its own or autocast's precision. Dropout adds a mask of one byte per element. Where sequence parallel ranks divide
    the tokens, adapters on linears whose output is divided read those of all ranks (ms-swift megatron/tuners/lora.py, Megatron-Bridge
    peft/utils.py return_layernorm_output_gathered)."""
    if not how.lora:
        return ""
    names, model = job.trainable.names, job.model
    if job.trainable.kind in ("ia3", "vera"):
        return _scaled_outputs(names, job.trainable.kind, how)
    merged = sparse and merged_experts(job)
    into = _wrapped_reads(names, model, shared=not merged, sparse=sparse)
    out = "a*d_v" if model and model.latent else "q"
    ranks = job.sharding.tensor if job.knows("T_l") else 1
    widths = [f"{sum(into) * ranks}*h"] if sum(into) else []
    widths += [out] if "o" in names else []
    if model and model.latent:
        widths += ["r_q"] if model.latent.q_rank and "q" in names else []
        widths += ["r_kv"] if "k" in names or "v" in names else []
    if "down" in names:
        widths += ([] if merged or not has_shared_expert(model) else ["f_s"]) if sparse else ["f"]
    if sparse and adapts_experts(job) and not merged_experts(job):
        reads = sum(name in names for name in ("gate", "up"))
        widths += [f"{reads}*k_e*h"] if reads else []
        widths += ["k_e*f_e"] if "down" in names else []
    if how.cast == 0 and not job.trainable.dropout:
        distinct = min(sum(count > 0 for count in into), count_inputs(model))
        low = [f"{how.each}*{width}" for width in widths if width.startswith("r_")]
        return " + ".join(part for part in [f"{how.each * distinct * ranks}*h" if distinct else "", *low] if part)
    if not widths:
        return ""
    return f"{adapter_copies(job, how)}*({' + '.join(widths)})"


#: How wide each linear's output is.
_OUTPUTS = {"q": "q", "k": "k", "v": "k", "o": "h", "gate": "f", "up": "f", "down": "h"}


def _masks_of_outputs(job: Setup) -> str:
    """Masks of adapters whose outputs are dropped, one byte per element (NeMo Automodel components/_peft/lora.py dropout_position)."""
    return " + ".join(_OUTPUTS[name] for name in job.trainable.names if name in _OUTPUTS) if job.trainable.drops_outputs else ""


def _scaled_outputs(names: tuple[str, ...], kind: str, how: Mode) -> str:
    """What a scale that learns keeps of each linear: IA3 its output, of down_proj the input in fp32 (PEFT tuners/ia3/layer.py forward);
    VeRA the update before its scale, in fp32 (tuners/vera/layer.py). Inputs are kept by neither: their matrices are frozen."""
    each = 4 if kind == "vera" else how.each
    parts = [f"{each}*{_OUTPUTS[name]}" for name in names if not (kind == "ia3" and name == "down")]
    return " + ".join([*parts, *(["4*f"] if kind == "ia3" and "down" in names else [])])


def _quantised_inputs(job: Setup, how: Mode) -> str:
    """Inputs of 4-bit linears, which bitsandbytes before 0.43.2 keeps (autograd/_functions.py MatMul4Bit), but for that of o_proj, which
    attention keeps, and those that an adapter shares. A mixture of experts counts as dense here."""
    if not how.lora or not _keeps_quantised_inputs(job):
        return ""
    names = job.trainable.names if how.cast == 0 and not job.trainable.dropout else ()
    reads = [f"{how.each}*h" for group in (("q", "k", "v"), ("gate", "up")) if not any(name in names for name in group)]
    return " + ".join(part for part in [*reads, "" if "down" in names else f"{how.each}*f"] if part)


def _keeps_quantised_inputs(job: Setup) -> bool:
    """Whether 4-bit linears keep their input as an attribute of the autograd node: hooks for saved tensors do not see it."""
    release = job.book.version("version.bitsandbytes")
    return release is not None and release < Version("0.43.2") and job.book.word("model.quantization") in ("nf4", "nf4_double", "fp4")


def kept_despite_checkpoints(job: Setup) -> list[Term]:
    """Inputs of 4-bit linears that survive checkpointing, 2*(2*h + q + f)*L*T bytes. Checkpointing that is not reentrant runs the forward
    pass with a graph and takes the saved tensors out of it, but not what a node keeps as an attribute (`_quantised_inputs`)."""
    keeps_inputs = job.trainable.lora and job.traits.not_reentrant and _keeps_quantised_inputs(job)
    if not keeps_inputs or not job.knows("h", "q", "f", "L", "T"):
        return []
    source = "bitsandbytes autograd/_functions.py MatMul4Bit ctx.tensors; torch/utils/checkpoint.py _checkpoint_without_reentrant_generator"
    reads = "h" if count_inputs(job.model) == 1 else "2*h"
    return [job.term("quantised_inputs", "activations", f"2*({reads} + q + f)*L*T", source=source)]


LOOP = "the loop's own reference to its logits"


def of_last_micro_batch(job: Setup) -> list[Term]:
    """Inputs of 4-bit linears of the micro batch before, 2*(2*h + q + f)*L*T bytes, and its logits beside the new ones: a loop that holds
    what the model returned holds the graph behind it, and with it what nodes keep as attributes, until the next forward pass returns. The
    rows before may have been short: from 0."""
    held = job.traits.holds_outputs and job.checkpointing == "disabled" and job.trainable.lora and _keeps_quantised_inputs(job)
    if not held or not job.knows("h", "q", "f", "L", "T", "V"):
        return []
    inputs, source = (
        f"({'h' if count_inputs(job.model) == 1 else '2*h'} + q + f)*L*T",
        "bitsandbytes autograd/_functions.py MatMul4Bit ctx.tensors",
    )
    if job.book.switch("train.packing"):
        return [
            job.term("quantised_inputs_before", "activations", f"2*{inputs}", source=source),
            job.term("logits_returned", "logits", "10*T*V", source=LOOP),
        ]
    return [
        job.term("quantised_inputs_before", "activations", inputs, low=f"0*{inputs}", high=f"2*{inputs}", source=source),
        job.term("logits_returned", "logits", "8*T*V", low="6*T*V", high="10*T*V", source=LOOP),
    ]


def _padded_outputs(job: Setup, how: Mode) -> str:
    """Outputs of adapters on some of q, k and v, where these are one matrix: they are copied into a tensor of full width, and backward
    keeps them."""
    names = job.trainable.names
    widths = [letter for name, letter in (("q", "q"), ("k", "k"), ("v", "k")) if name in names]
    if not how.lora or not job.traits.pads_qkv or not 0 < len(widths) < 3:
        return ""
    return f"{how.each}*({' + '.join(widths)})"


def _wrapped_reads(names: tuple[str, ...], model: Model | None, *, shared: bool, sparse: bool) -> tuple[int, int]:
    """How many linears with an adapter read attention's input, and the MLP's (in a sparse layer the shared expert's)."""
    attention = sum(name in names for name in ("q", "k", "v"))
    if model and model.latent:
        attention = ("q" in names) + ("k" in names or "v" in names)
    elif model and model.fused_qkv:
        attention = min(1, attention)
    reads = sum(name in names for name in ("gate", "up"))
    if sparse:
        return attention, reads if shared and has_shared_expert(model) else 0
    if model and (model.fused_gate_up or not model.gated):
        reads = min(1, reads)
    return attention, reads


PROMPT_SOURCE = "LitGPT litgpt/adapter.py, litgpt/adapter_v2.py"


def prompt_adapter_values(job: Setup, how: Mode) -> list[str]:
    """LLaMA-Adapter: the attention output over the prompt, before its gate scales it; in version 2 also every linear's output before its
    scale."""
    entry = _prompt_entry(job)
    if entry is None or "scales" not in entry:
        return []
    linears = f"{how.each}*(q + 2*k + 2*h + {2 if job.model is None or job.model.gated else 1}*f)"
    return [f"{how.each}*q", *([linears] if entry["scales"] else [])]


def has_learned_scales(job: Setup) -> bool:
    """Whether linears have a learned scale and bias, and norms learn (LLaMA-Adapter v2)."""
    entry = _prompt_entry(job)
    return entry is not None and bool(entry.get("scales"))


def has_prefix(job: Setup) -> bool:
    """Whether every layer attends to learned keys and values, which come with a mask (PEFT's prefix tuning)."""
    entry = _prompt_entry(job)
    return entry is not None and bool(entry.get("prefix"))


def _prompt_entry(job: Setup) -> Mapping[str, int] | None:
    entry: Mapping[str, int] | None = table()["prompts"].get(job.trainable.kind)
    return entry


def remade_weights(job: Setup, count: str) -> list[Term]:
    """What other kinds of adapters make of the weights of `count` layers ("": one) and keep for backward: LoHa and LoKr the update as a
    whole matrix, OFT and BOFT what they rotate with (rules/ledger.yaml, adapter_kinds), of which autocast keeps a 16-bit copy."""
    if not job.role.trained or not job.knows("P_a"):
        return []
    width = 4 if adapter_width(job) == 4 and not runs_autocast(job) and not job.sharding.zero else 2
    source = f"PEFT tuners/{job.trainable.kind}/layer.py forward"
    return [job.term("remade_weights", "weights", f"{count}*{width}*P_a" if count else f"{width}*P_a", source=source)]


def prefix_values(job: Setup) -> list[Term]:
    """Keys and values of a learned prefix in every layer, 4*q + 12*k bytes per row and token: repeated for the heads, in the precision of
    the prompt, and cast (PEFT peft_model.py get_prompt)."""
    if not has_prefix(job) or not job.knows("L", "B", "q", "k", "n_p"):
        return []
    return [job.term("prefix_values", "activations", "L*B*n_p*(4*q + 12*k)", source="PEFT peft_model.py get_prompt")]
