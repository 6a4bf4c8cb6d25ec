"""Weights on one card from loading on: the base model, quantised or not, and what is trained beside it."""

from __future__ import annotations

from diagnose.budget.model.formulas import Number, Span, term
from diagnose.budget.model.ledger import Term
from diagnose.budget.model.role_setup import Setup
from diagnose.budget.model.software_table import table
from diagnose.catalogue import UNPACKED, Model
from diagnose.facts import FactBook
from diagnose.ternary import Truth
from diagnose.traits import Releases, during, traits_of
from diagnose.units import Version

#: Bytes per adapter parameter: PEFT's default is fp32, whatever the base.
ADAPTER = {"fp32": 4, "bf16": 2, "fp16": 2}

#: The first PEFT that casts adapters to fp32; before it tuners/lora/layer.py update_layer moved them to the dtype of the weight.
AUTOCASTS = Version("0.12.0")

ZERO = "DeepSpeed runtime/zero/stage3.py, stage_1_and_2.py"
CASTS = "PEFT autocast_adapter_dtype"


def letter(number: Number, name: str) -> str:
    """A width as it stands in a formula: the number, or the letter `name` where the number is only known as a range."""
    return name if isinstance(number, Span) else f"{number:g}"


def weights(job: Setup) -> list[Term]:
    """The base model: w*P bytes, /N under ZeRO-3 and FSDP, 0 where offloaded; with partly fp32 weights (freeze tuning) 2*P + 2*Pt."""
    if not job.knows("P") or (not job.sharding.whole_weights and not job.knows("N")):
        return []
    if (job.sharding.offload_param and not is_packed(job.book)) or job.role.offloaded:
        return [job.term("weights_offloaded", "weights", "0", source=ZERO)]
    if (job.trainable.lora or job.role.predicts) and is_quantised(job.book):
        return _quantized(job)
    width = letter(job.precision.weight, "w")
    if not job.sharding.whole_weights:
        return [job.term("weights_sharded", "weights", f"{width}*P/N", source=ZERO if job.sharding.zero else "torch FSDP: flat parameters")]
    upcast = job.book.word("train.finetuning") == "freeze" and (job.precision.weight, job.precision.gradient) == (2, 4)
    symbols = "2*P + 2*Pt" if upcast and job.knows("Pt") else f"{width}*P"
    return [job.term("weights_whole", "weights", symbols, source="model.parameters()")]


def is_quantised(book: FactBook) -> bool:
    """Whether the base is stored in fewer bits than it computes with."""
    return book.word("model.quantization") not in (None, "none", "other")


def is_packed(book: FactBook) -> bool:
    """Whether the base comes packed into integers, which nothing shards or moves as the weights that it shards."""
    stored = book.word("model.stored_quantization") or book.word("model.quantization") or ""
    return bool(table()["quantizations"].get(stored, {}).get("whole"))


def shardable(book: FactBook) -> bool:
    """Whether ZeRO-3 and FSDP can shard the base: a quantised one only where the framework stores it in a type that they take, and one
    that comes packed into integers, whatever a setting makes of others as they load, only where these are turned into floats."""
    if not is_quantised(book):
        return True
    if is_packed(book):
        return book.switch("model.shards_packed") is True
    if storage := book.word("model.quant_storage"):
        return storage != "uint8"
    release = book.version("version.bitsandbytes")
    old = release is not None and release < Version("0.43")
    return not old and book.word("model.quantization") != "int8" and traits_of(book.word("train.framework")).flattens_quantized


def _entry(job: Setup) -> dict[str, object]:
    entry: dict[str, object] = table()["quantizations"].get(job.book.word("model.quantization") or "", {"each": 0.5625, "source": ""})
    return entry


def is_prepared(job: Setup) -> bool:
    """Whether the weights of a quantised base that are not quantised were upcast to fp32 for training (PEFT
    prepare_model_for_kbit_training)."""
    told = job.book.switch("model.prepared")
    if told is not None:
        return told and is_quantised(job.book) and _entry(job).get("upcast") is not False
    sharded = not job.sharding.whole_weights and shardable(job.book)
    keeps_16_bit = (
        job.traits.keeps_16_bit_beside_quantized or is_left_alone(job) or (sharded and _during(job.traits.unprepared_sharded, job))
    )
    return is_quantised(job.book) and not keeps_16_bit and _entry(job).get("upcast") is not False


def is_left_alone(job: Setup) -> bool:
    """Whether the trainer prepares a quantised base no more and makes its adapters bf16, as the release says (TRL sft_trainer.py,
    grpo_trainer.py at v0.26.0, dpo_trainer.py at v0.29.0)."""
    spans = job.traits.unprepared_pairs if job.stage in table()["pairs"] else job.traits.unprepared
    return is_quantised(job.book) and _during(spans, job)


def _during(spans: Releases | None, job: Setup) -> bool:
    return spans is not None and during(spans, job.book) is True


def _scales(job: Setup) -> float:
    """Bytes per quantised parameter that stay whole where 4-bit weights are sharded: bitsandbytes keeps scales in quant_state, which is no
    parameter (functional.py QuantState)."""
    word = job.book.word("model.quantization") or ""
    return 0.0 if job.traits.shards_scales or word not in ("nf4", "nf4_double", "fp4") else round(float(str(_entry(job)["each"])) - 0.5, 5)


def unit_width(job: Setup) -> str:
    """Bytes per parameter of a layer that FSDP gathers: of a quantised base as it is stored."""
    if not (job.trainable.lora and is_quantised(job.book) and shardable(job.book)):
        return "2"
    return f"{float(str(_entry(job)['each'])) - _scales(job):g}"


def tower_linears(job: Setup, model: Model) -> int:
    """Parameters of a vision tower's linears, which bitsandbytes quantises like all others unless it is told to skip them (transformers
    integrations/bitsandbytes.py replaces every nn.Linear but the head)."""
    word = job.book.word("model.quantization")
    if model.vision is None or job.traits.spares_tower or word not in table()["dequantizes"]["words"]:
        return 0
    tower = model.vision
    matrices = 3 if table()["towers"].get(tower.kind, {}).get("gated") else 2
    return min(tower.params, tower.depth * (4 * tower.hidden**2 + matrices * tower.hidden * tower.width))


def merged_experts(job: Setup) -> bool:
    """Whether a layer's experts are one tensor: from transformers 5. PEFT turns adapters of gate_proj, up_proj and down_proj into
    adapters of that tensor (utils/transformers_weight_conversion.py), so the linears of a shared expert get none."""
    release = job.book.version("version.transformers")
    return release is not None and release >= Version("5")


def unquantised_experts(job: Setup) -> Truth:
    """Whether a quantised base has its experts in 16 bits: bitsandbytes takes linears alone, and these experts are one tensor. None where
    the release of transformers, from which they are, is not known."""
    model = job.model
    if model is None or not model.experts or job.book.word("model.quantization") not in table()["dequantizes"]["words"]:
        return False
    if job.book.switch("model.quantized_experts") or job.traits.quantizes_head:
        return False
    if model.family in table()["one_tensor"]["families"]:
        return True
    return None if job.book.version("version.transformers") is None else merged_experts(job)


def unpacked_experts(job: Setup) -> list[Term]:
    """The experts of one layer on their way from MXFP4 to 16 bits, always on the card: per weight half a byte packed, an eighth of
    scales, 2 unpacked, 8 of indices and 1 of what they look up; beside weights that stay there the last one's own 2 less."""
    path = job.book.word("model.path") or ""
    if (
        job.model is None
        or job.model.published != "mxfp4"
        or is_quantised(job.book)
        or UNPACKED.search(path)
        or not job.knows("h", "f_e", "E")
    ):
        return []
    each = "19.25" if job.sharding.whole_weights else "23.25"
    source = "transformers integrations/mxfp4.py convert_moe_packed_tensors: gate and up of all experts at a time"
    return [job.term("unpacked_experts", "weights", f"{each}*h*f_e*E", low="0", source=source)]


def dequantized_experts(job: Setup, count: str) -> list[Term]:
    """Quantised experts that are one tensor, as what multiplies with them and autograd until backward keep them in `count` layers: in 16
    bits, 2*3*h*f_e*E each."""
    if not job.book.switch("model.quantized_experts") or not job.trainable.lora or not job.knows("h", "f_e", "E"):
        return []
    source = "axolotl monkeypatch/moe_quant.py: bitsandbytes nn/parametrize.py dequantises on access"
    return [job.term("dequantized_experts", "weights", f"{count}*2*3*h*f_e*E", source=source)]


def _quantized(job: Setup) -> list[Term]:
    """A quantised base: its linears at e.g. 0.5625 bytes per parameter (nf4); embeddings, norms and mostly the head as loaded, or in fp32
    where the base was prepared for training."""
    entry, model = _entry(job), job.model
    source = str(entry["source"])
    if model is None:
        return [job.term("weights_quantized", "weights", f"{entry['each']}*P", source=source)]
    per = "" if job.sharding.whole_weights or not shardable(job.book) else "/N"
    layers = model.text_params - model.embedding_params
    if not job.traits.quantizes_head:
        layers -= model.head_params
    layers += tower_linears(job, model)
    experts = model.moe_layers * model.experts.count * model.experts.expert_params(model.h) if model.experts else 0
    as_loaded = unquantised_experts(job)
    if as_loaded:
        layers -= experts
    layers_here, all_params = -(-layers // job.sharding.model_parallel), job.values["P"]
    values = {
        **job.values,
        "P_lin": layers_here,
        "P_rest": max(0, all_params - layers_here) if isinstance(all_params, int) else model.params - layers,
    }
    scales = _scales(job) if per else 0.0
    linears = f"{float(str(entry['each'])) - scales:g}*P_lin{per}" + (f" + {scales:g}*P_lin" if scales else "")
    whole = f"{linears} + {2 - float(str(entry['each'])):g}*{-(-experts // job.sharding.model_parallel)}{per}" if as_loaded is None else ""
    rest_width = "4" if is_prepared(job) and job.role.trained else "2"
    return [
        term("weights_quantized", "weights", linears, values, high=whole, source=source),
        term(
            "weights_unquantized",
            "weights",
            f"{rest_width}*P_rest{per}",
            values,
            source="PEFT utils/other.py prepare_model_for_kbit_training",
        ),
    ]


def adapters(job: Setup) -> list[Term]:
    """LoRA's matrices: 4*Pt bytes as PEFT keeps them, 2*Pt as DeepSpeed casts them; /N under ZeRO-3 and FSDP. Resident copies (a reference
    adapter, former ones) count in full."""
    if not job.trainable.lora or not job.knows("Pt"):
        return []
    if job.sharding.scheme == "zero3":
        return [job.term("adapters", "weights", "2*Pt/N", source=ZERO)] if job.knows("N") else []
    if job.sharding.zero:
        return [job.term("adapters", "weights", "2*Pt", source=ZERO)]
    if job.sharding.scheme in ("fsdp", "fsdp_grad"):
        return [job.term("adapters", "weights", f"{trained_weights(job)}/N", source=CASTS)] if job.knows("N") else []
    resident = job.book.count("lora.resident") or 1  # beside the one that learns: a reference adapter, former ones
    times = f"{resident}*" if resident > 1 else ""
    return [job.term("adapters", "weights", f"{times}{trained_weights(job)}", source=CASTS)]


def adapter_width(job: Setup) -> Number:
    """Bytes per adapter parameter: as set; like the weights where the framework builds all in one precision, or where PEFT before 0.12
    moved adapters to the precision of their weight; else 4."""
    dtype = job.book.word("lora.dtype")
    if dtype in ADAPTER:
        return ADAPTER[dtype]
    release = job.book.version("version.peft")
    if is_left_alone(job):
        return 2
    moved = release is not None and release < AUTOCASTS and not is_quantised(job.book) and not job.traits.casts_trained
    return job.precision.weight if moved or job.traits.adapters_like_weights else 4


def trained_weights(job: Setup, copies: int = 1) -> str:
    """Formula of the bytes of `copies` of everything trained beside a frozen base: adapters, and modules trained whole (P_s) in the
    precision they were loaded in, or in fp32 where a framework casts what it trains or a quantised base was prepared."""
    adapter, whole = adapter_width(job), whole_module(job)
    if not job.trainable.saved or whole == adapter:
        return f"{_scaled_width(copies, adapter)}*Pt"
    return f"({_scaled_width(copies, adapter)}*(Pt - P_s) + {_scaled_width(copies, whole)}*P_s)"


def _scaled_width(copies: int, width: Number) -> str:
    """A number of copies times a width, as it stands in a formula; the letter w where the width is a range."""
    if isinstance(width, Span):
        return "w" if copies == 1 else f"{copies}*w"
    return f"{copies * width:g}"


def whole_module(job: Setup) -> Number:
    """Bytes per parameter of a module that is trained whole beside adapters."""
    return 4 if is_prepared(job) or job.traits.casts_trained else job.precision.weight


def _keeps_dequantized(job: Setup) -> bool:
    """Whether linears dequantise their weight with plain operators of torch, so that autograd keeps the 16-bit weight until their
    backward."""
    entry = table()["quantizations"].get(job.book.word("model.quantization") or "", {})
    return job.trainable.lora and is_quantised(job.book) and bool(entry.get("remade"))


def dequantized_in_layer(job: Setup) -> list[Term]:
    """Such weights of the layer being recomputed: all are kept, 2*P_layer bytes, and the largest takes 3*h*f more while it is made (4 bytes
    in fp32 and 1 beside them, of which 2 stay). The lower end is 0: Triton kernels keep none."""
    if not _keeps_dequantized(job) or not job.knows("P_layer", "h", "f") or (job.model and job.model.experts):
        return []
    symbols = "2*P_layer + 3*h*f"
    return [job.term("remade", "weights", symbols, low=f"0*({symbols})", source=table()["remakes"])]


def dequantized_in_all_layers(job: Setup) -> list[Term]:
    """Without checkpointing such weights of every layer, 2*P_layer*L bytes until backward."""
    if not _keeps_dequantized(job) or not job.knows("P_layer", "L") or (job.model and job.model.experts):
        return []
    return [job.term("remade", "weights", "2*P_layer*L", low="0*P_layer*L", source=table()["remakes"])]
