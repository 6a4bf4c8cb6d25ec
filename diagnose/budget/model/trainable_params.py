"""How many parameters a model has, how many are trained, and which linears carry adapters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from diagnose import rule_files
from diagnose.budget.model.formulas import formula
from diagnose.budget.model.job_roles import Role
from diagnose.budget.model.software_table import table
from diagnose.catalogue import Model
from diagnose.catalogue.parameter_count import Uneven
from diagnose.facts import FactBook
from diagnose.traits import traits_of

#: The rank that PEFT, LLaMA-Factory and Axolotl take when none is set.
DEFAULT_RANK = 8

#: A printed count of trainable parameters below this share of the model is adapters, above it is (nearly) everything.
ADAPTERS_AT_MOST = 0.3


@dataclass(slots=True)
class Trainable:
    """`params`: parameters of the base model; `count`: trained ones (under LoRA those of the adapters); None: unknown.

    `saved`: the part of `count` in modules trained whole beside adapters. `kind`: which adapters; `names`: linears of a layer that carry
    one; `inputs`: how many of these read the hidden state, the attention output, the MLP product; `remade`: elements that they make of a
    layer's weights in every forward. `lora`: the base is frozen. `dropout`: adapters drop parts of what they read; `drops_outputs`: of what
    they give.
    """

    params: int | None
    count: int | None
    lora: bool
    rank: int = 0
    dropout: bool = False
    saved: int = 0
    inputs: tuple[int, int, int] = (0, 0, 0)
    unknown: tuple[str, ...] = ()
    kind: str = ""
    names: tuple[str, ...] = ()
    remade: int = 0
    drops_outputs: bool = False


def trainable(book: FactBook, role: Role, framework: str) -> Trainable:
    """What a role trains."""
    model = role.model
    params = model.params if model else _counted_params(book) if role.policy else None
    if params is not None and model is not None and role.headless:
        params = model.headless_params
    if not role.trained:
        return Trainable(params, 0, False)
    printed = book.count("model.trainable_params") if role.policy else None
    method = tuning(book, params) or ""
    if method in table()["prompts"]:
        count = printed or (prompt_params(model, method, book) if model is not None else None)
        return Trainable(params, count, True, kind=method)
    if method in table()["adapters"]:
        return _adapters(book, model, params, printed)
    if printed and params and printed >= ADAPTERS_AT_MOST * params:
        return Trainable(params, min(printed, params), False)
    if method in ("freeze", "lisa", "llama_pro"):
        return _some_layers(book, model, params, method, printed)
    frozen = model.vision.params if model and model.vision and tower_frozen(book, framework) else 0
    return Trainable(params, None if params is None else params - frozen, False)


def _counted_params(book: FactBook) -> int | None:
    """The parameters of a model without known dimensions: as the log counts them, else by the size in its name."""
    return book.count("model.total_params") or book.count("model.likely_params")


def _some_layers(book: FactBook, model: Model | None, params: int | None, method: str, printed: int | None) -> Trainable:
    """Only a few layers are trained: of the model's own; of those at a time, with embedding, head and last norm (LISA, arXiv 2403.17919);
    or new ones in between (LLaMA Pro, arXiv 2401.02415)."""
    layers = book.count("train.trainable_layers")
    if model is None or not layers:
        return Trainable(params, printed, False, unknown=() if printed else ("model.trainable_params",))
    count = (layers if method == "llama_pro" else min(layers, model.L)) * model.layer_params()
    if method == "lisa":
        count += model.embedding_params + model.head_params + model.norm_params
    if method == "llama_pro" and params is not None:
        params += count
    return Trainable(params, printed or count, False)


def tuning(book: FactBook, params: int | None) -> str | None:
    """The tuning method (full, lora, freeze, ...). Where it is not stated: lora if the base is quantised or the log counts few trainable
    parameters (under FSDP and ZeRO-3 it may count the shard of one rank, which says nothing); None if unknown."""
    method, printed = book.word("train.finetuning"), book.count("model.trainable_params")
    sharded = book.count("zero.stage") == 3 or (book.word("fsdp.sharding") or "none") != "none"
    few_trained = not sharded and printed is not None and params is not None and printed < ADAPTERS_AT_MOST * params
    quantised = book.word("model.quantization") not in (None, "none", "other")
    return method or ("lora" if few_trained or quantised else None)


def tower_frozen(book: FactBook, framework: str) -> bool:
    """Whether the vision tower is frozen: some frameworks freeze it unless told otherwise, others only when asked."""
    word = (book.word("model.freeze") or "").lower()
    if word in ("none", "disabled", "false"):
        return False
    return traits_of(framework).freezes_vision or any(part in word for part in ("vision", "vit", "tower", "visual", "enabled", "true"))


def _adapters(book: FactBook, model: Model | None, params: int | None, printed: int | None) -> Trainable:
    rank = book.count("lora.rank")
    targets = book.word("lora.targets") or ""
    small = printed if printed and (params is None or printed <= ADAPTERS_AT_MOST * params) else None
    saved = saved_params(model, book.word("lora.modules_to_save") or "") if model is not None else 0
    kind, kinds = book.word("lora.kind") or "lora", table()["adapter_kinds"]
    if kind == "lora" and (method := book.word("train.finetuning")) in kinds:
        kind = str(method)
    names = () if trains_norms(kind) else wrapped_linears(targets)
    rankless = kinds[kind].get("rankless", False)
    block = book.count("lora.block") or (kinds[kind].get("block") if rankless or rank is None else None)
    count = small
    if model is not None and (rank is not None or small is None) and (targets or small is None):
        apart = traits_of(book.word("train.framework")).pads_qkv
        count = adapter_params(model, rank or DEFAULT_RANK, targets, kind, apart=apart, block=block)
        count += saved
    if count is None and (network := rule_files.table("denoiser_layers").get(book.word("model.denoiser") or "")):
        count = (rank or DEFAULT_RANK) * network["linears" if targets == "all-linear" else "adapter"]
    unknown = () if rank is not None or small or block or rankless else ("lora.rank",)
    remade = remade_params(model, rank or DEFAULT_RANK, targets, kind, block) if model is not None else 0
    drops, after = (book.ratio("lora.dropout") or 0) > 0, traits_of(book.word("train.framework")).drops_adapter_outputs
    whole, inputs = rank or DEFAULT_RANK, _count_inputs(names)
    return Trainable(params, count, True, whole, drops and not after, saved, inputs, unknown, kind, names, remade, drops and after)


def saved_params(model: Model, names: str) -> int:
    """Parameters of the modules trained whole beside adapters (`names`, as in modules_to_save): embedding, head and vision tower; small
    heads count as nothing."""
    words = set(re.findall(r"[a-z]+", names.lower()))
    tower = model.vision.params if model.vision and words & {"vision", "visual", "vit"} else 0
    return tower + model.V * model.h * (bool(words & {"embed", "wte", "embedding", "embeddings", "tok"}) + bool(words & {"head", "output"}))


_LINEARS = ("q", "k", "v", "o", "gate", "up", "down")
#: Those of an expert that every token meets.
_SHARED = ("shared_gate", "shared_up", "shared_down")


def wrapped_linears(targets: str) -> tuple[str, ...]:
    """Which of the seven linears of a decoder layer the targets wrap; all where the targets name none of them."""
    names = _linears_by_name(targets)
    return tuple(name for name in _LINEARS if name in names) if names else _LINEARS


def _linears_by_name(targets: str) -> set[str]:
    """The linears of a decoder layer that the targets name one by one, in any family's spelling. PEFT matches the end of a module's path
    (tuners/tuners_utils.py check_target_module_exists): `down_proj` is that of every expert and of the shared one,
    `shared_expert.down_proj` that of the shared one alone."""
    modules = targets.lower().split(",")
    of_shared = [module for module in modules if "shared_expert" in module]
    if of_shared:
        others = [module for module in modules if module not in of_shared]
        rest = _linears_by_name(",".join(others)) if others else set()
        return rest | {name for module in of_shared for name in _SHARED if f"{name.removeprefix('shared_')}_proj" in module}
    words = set(re.findall(r"[a-z0-9]+(?:_[a-z0-9]+)*", targets.lower()))
    linears = {name for name in _LINEARS if {f"{name}_proj", name} & words}
    for fused, parts in (("qkv", "qkv"), ("query_key_value", "qkv"), ("qkv_proj", "qkv"), ("w_pack", "qkv"), ("c_attn", "qkv")):
        if fused in words:
            linears |= set(parts)
    for plain, name in (("query", "q"), ("key", "k"), ("value", "v"), ("fc1", "up"), ("fc2", "down")):  # BERT and its kin; BART, Whisper
        if plain in words:
            linears.add(name)
    if "gate_up_proj" in words:
        linears |= {"gate", "up"}
    return linears | {f"shared_{name}" for name in linears & {"gate", "up", "down"}}


def every_linear(targets: str) -> bool:
    """Whether adapters lie on all linears of a model, also outside attention and MLP."""
    return not _linears_by_name(targets)


def _count_inputs(names: tuple[str, ...]) -> tuple[int, int, int]:
    """How many of these linears read the hidden state, the attention output, the MLP product."""
    return sum(name in names for name in ("q", "k", "v", "gate", "up")), int("o" in names), int("down" in names)


def adapter_params(model: Model, rank: int, targets: str, kind: str = "lora", *, apart: bool = False, block: int | None = None) -> int:
    """Parameters of adapters of one kind and rank over the wrapped linears of all layers, every expert's included. `apart`: a fused linear
    has an adapter for each of its parts; `block`: the side of an orthogonal adapter's blocks; without it the rank is their number."""
    if trains_norms(kind):
        return model.norm_params * (model.L * model.norms + 1)
    wrapped = _wrapped(model, targets, apart=apart)
    return sum(count * _of_linear(kind, rank, block, name, wide, out) for name, wide, out, count in wrapped)


def remade_params(model: Model, rank: int, targets: str, kind: str, block: int | None) -> int:
    """Elements that adapters of a kind make of the weights of one layer in every forward and keep for backward."""
    if (remade := table()["adapter_kinds"][kind].get("remade")) is None:
        return 0
    made, elements = formula(remade), 0
    for _, wide, out, count in _wrapped(model, targets, apart=False):
        elements += count * int(made.evaluate({"i": wide, "o": out, "n": block or wide // max(rank, 1)}))  # type: ignore[arg-type]
    return elements // model.L


def trains_norms(kind: str) -> bool:
    """Whether this kind of adapter is the norms themselves, and no linear carries one."""
    return bool(table()["adapter_kinds"].get(kind, {}).get("params") == "norms")


def _wrapped(model: Model, targets: str, *, apart: bool) -> list[tuple[str, int, int, int]]:
    """The linears that the targets wrap; a fused one is one unless its parts have adapters of their own."""
    names = (*_LINEARS, *_SHARED, OF_THE_LAYER) if every_linear(targets) else _linears_by_name(targets)
    linears = [linear for linear in _linears(model) if linear[0] in names]
    return linears if apart else _fuse_linears(model, linears)


def _of_linear(kind: str, rank: int, block: int | None, name: str, wide: int, out: int) -> int:
    """What an adapter trains of one linear of `wide` inputs and `out` outputs."""
    entry = table()["adapter_kinds"][kind]
    if entry["params"] == "kronecker":
        (rows, other_rows), (columns, other_columns) = _factors(out), _factors(wide)
        whole = other_rows * other_columns
        return rows * columns + (rank * (other_rows + other_columns) if rank < max(other_rows, other_columns) / 2 else whole)
    symbols = entry.get("down", entry["params"]) if name == "down" else entry["params"]
    return int(formula(symbols).evaluate({"i": wide, "o": out, "r": rank, "n": block or wide // max(rank, 1)}))  # type: ignore[arg-type]


def _factors(number: int) -> tuple[int, int]:
    """The smaller and the larger of the two factors nearest to each other (PEFT tuners/lokr/layer.py factorization)."""
    small = next(each for each in range(int(number**0.5), 0, -1) if number % each == 0)
    return small, number // small


def expert_adapters(model: Model, learnt: Trainable) -> int:
    """Those of the adapters' parameters that lie on experts."""
    if model.experts is None:
        return 0
    each = sum(learnt.rank * (model.h + model.experts.width) for name in ("gate", "up", "down") if name in learnt.names)
    return each * model.experts.count * model.moe_layers


def _fuse_linears(model: Model, linears: list[tuple[str, int, int, int]]) -> list[tuple[str, int, int, int]]:
    """The linears with those joined that are one matrix in the model's family, where all parts are in the list."""
    for parts, families in ((("q", "k", "v"), "qkv"), (("gate", "up"), "gate_up")):
        within = [linear for linear in linears if linear[0] in parts]
        if model.family in table()["in_one"][families] and len(within) == len(parts):
            whole = (families, within[0][1], sum(out for _, _, out, _ in within), within[0][3])
            linears = [whole, *(linear for linear in linears if linear[0] not in parts)]
    return linears


def prompt_params(model: Model, method: str, book: FactBook) -> int | None:
    """Parameters of a prompt. LLaMA-Adapter: `length` rows and a gate per head in layers from `from` on; in version 2 also a scale and a
    bias per output of every linear, and the norms. PEFT's: rows of the hidden width, with the network that makes them, or of keys and
    values in every layer; None where their number is unknown."""
    entry = table()["prompts"][method]
    if "length" not in entry:
        tokens, width = book.count("prompt.tokens"), book.count("prompt.width") or model.h
        if not tokens:
            return None
        network = model.h * width + width + width * width + width + width * model.h + model.h if entry.get("network") else 0
        return tokens * (2 * model.L * model.k if entry.get("prefix") else model.h) + network
    count = max(0, model.L - entry["from"]) * (entry["length"] * model.h + model.a)
    if entry["scales"]:
        outputs = model.q + 2 * model.k + model.h + (2 if model.gated else 1) * model.f + model.h
        vectors = model.norm_vectors * model.h
        count += 2 * (model.L * outputs + model.V) + vectors * (model.L * model.norms + 1)
    return int(count)


def frozen_leading_layers(kind: str) -> int:
    """Leading layers that keep nothing for backward, since nothing in or before them is trained (LLaMA-Adapter); else 0."""
    entry = table()["prompts"].get(kind)
    return 0 if entry is None or entry.get("scales") else int(entry.get("from", 0))


def wrapped_params(model: Model, names: tuple[str, ...]) -> int:
    """Parameters of these linears in one layer, averaged over the layers."""
    return sum(wide * out * count for name, wide, out, count in _linears(model) if name in names) // model.L


def projected_sides(model: Model) -> tuple[int, int]:
    """The sums of the shorter and of the longer sides of all linears in all layers (ranks of GaLore's projections multiply them)."""
    sides = [(min(wide, out) * count, max(wide, out) * count) for name, wide, out, count in _linears(model) if name != OF_THE_LAYER]
    return sum(short for short, _ in sides), sum(long for _, long in sides)


#: The linears to and from the embedding that a layer has for itself.
OF_THE_LAYER = "per_layer"


def _linears(model: Model) -> Iterator[tuple[str, int, int, int]]:
    """(name, inputs, outputs, how many in the model) of every kind of linear in the layers."""
    if model.uneven:
        yield from _uneven_linears(model, model.uneven)
        return
    yield from (("q", model.h, model.q, model.L), ("k", model.h, model.k, model.L), ("v", model.h, model.k, model.L))
    yield "o", model.q, model.h, model.L
    for prefix, width, count in _mlps(model):
        yield from ((f"{prefix}up", model.h, width, count), (f"{prefix}down", width, model.h, count))
        if model.gated:
            yield f"{prefix}gate", model.h, width, count
    if model.source:
        yield from (("q", model.h, model.q, model.L), ("k", model.h, model.k, model.L), ("v", model.h, model.k, model.L))
        yield "o", model.q, model.h, model.L
        yield from _linears(model.source)


def _mlps(model: Model) -> Iterator[tuple[str, int, int]]:
    """(prefix of its linears' names, width, how many in the model) of every kind of MLP: dense ones, experts, shared experts."""
    if model.moe_layers < model.L:
        yield "", model.f, model.L - model.moe_layers
    if model.experts:
        yield "", model.experts.width, model.moe_layers * model.experts.count
        if model.experts.shared:
            yield "shared_", model.experts.shared, model.moe_layers


def _uneven_linears(model: Model, uneven: Uneven) -> Iterator[tuple[str, int, int, int]]:
    """The same for layers of different widths (Gemma 4)."""
    for wide, borrows, count in uneven.kinds(model.L):
        d, width = uneven.wide_d if wide else model.d, model.f * (uneven.widening if borrows else 1)
        yield from (("q", model.h, model.a * d, count), ("o", model.a * d, model.h, count), ("down", width, model.h, count))
        yield from (("gate", model.h, width, count), ("up", model.h, width, count))
        yield from () if borrows else (("k", model.h, model.kv * d, count), ("v", model.h, model.kv * d, count))
    yield OF_THE_LAYER, model.h, uneven.per_layer, 2 * model.L
    yield OF_THE_LAYER, model.h, model.per_layer, 1
