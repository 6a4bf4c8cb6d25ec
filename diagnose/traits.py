"""How a training framework spends memory where others do it differently: `traits` of rules/frameworks/X.yaml, typed and inherited."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from diagnose import release_spans, rule_files
from diagnose.facts import FactBook
from diagnose.records import NamedTuple
from diagnose.ternary import Truth, all_of

#: Spans of releases ("<4.52", ">=2.2 <2.9"), each with the fact that says the release; all of them must hold.
Releases = tuple[tuple[str, str], ...]


class Loaded(NamedTuple):
    """Bytes per weight as loaded for 16-bit training without a sharding engine: of a model trained whole, and under adapters."""

    full: int
    lora: int


class Critic(NamedTuple):
    """A critic in the processes of the policy. `joint`: both learn in one pass and one optimizer step; `whole`: the critic learns whole
    where the policy has adapters."""

    releases: Releases = ()
    joint: bool = False
    whole: bool = False


class Roundup(NamedTuple):
    """roundup_power2_divisions as the framework sets it where nobody has set the allocator's variable."""

    divisions: str
    releases: Releases = ()


class Traits:
    """What a framework does with memory; the default of every field is what most do. A framework has the traits of the one that it
    extends, but for those that its own file sets (`false` or `null`: switched off). (A plain class: a dataclass of as many fields costs
    a hundredth of a diagnosis.)"""

    # Weights, adapters and what is trained
    loaded: Loaded | None = None  # None: it leaves that to the script
    casts_trained: bool = False  # parameters that learn are cast to fp32 whatever they are
    adapters_like_weights: bool = False  # adapters have the precision of the weights, not PEFT's fp32
    adapter_inputs_uncast: bool = False  # inputs of adapters keep their precision; PEFT casts them to that of the adapter
    drops_adapter_outputs: bool = False  # dropout of adapters is on what they give, not on what they read
    flattens_quantized: bool = False  # 4-bit weights are stored in a type that ZeRO-3 and FSDP can shard
    shards_scales: bool = False  # the scales of 4-bit weights are sharded with them
    keeps_16_bit_beside_quantized: bool = False  # no prepare_model_for_kbit_training: weights beside a quantised base stay in 16 bits
    unprepared: Releases | None = None  # ... in these releases of its own, whose adapters are 16 bits, too
    unprepared_sharded: Releases | None = None  # ... where the base is sharded
    unprepared_pairs: Releases | None = None  # ... where it trains on pairs
    spares_tower: bool = False  # a vision tower is not quantised with the base
    unties_head: bool = False  # the output head is a matrix of its own even where the checkpoint ties it to the embedding
    quantizes_through_half: bool = False  # 4-bit weights are quantised from fp16, and dequantised to fp16 before they are cast
    quantizes_head: bool = False  # the output head is quantised as well
    trains_denoisers: bool = False  # what it trains of a pipeline of images or video is the U-Net or transformer (rules/denoisers.yaml)
    freezes_vision: bool = False  # vision tower and projector are frozen unless told otherwise
    ranks_adalora: bool = False  # its trainer has AdaLoRA rank the parameters after every step
    # Layers
    kernels_of_adapters: bool = False  # adapters on whole attention and MLP run in kernels that work in place
    fused_projections: bool = False  # every model has one matrix for queries, keys and values, and one for gate and up
    views_of_qkv: bool = False  # values stay a view of the one product of queries, keys and values until backward
    pads_qkv: bool = False  # adapters on some of queries, keys and values are padded to the whole projection
    holds_outputs: bool = False  # its loop keeps what the model returned, logits among it, until backward is over
    fused_layers: bool = False  # norms and gated MLPs keep their 16-bit inputs alone; routing weights multiply inside the experts
    reference_caches: bool = False  # its reference model makes a KV cache: nobody sets use_cache, and without training it is on
    fused_softmax: int | None = None  # up to so many keys eager attention has one kernel for its softmax, which keeps a 16-bit result alone
    fused_gelu: bool = False  # torch's fused GELU where transformers writes one out
    recomputes_attention_alone: bool = False  # selective recomputation computes core attention again and keeps all else
    recomputes_parts: bool = False  # checkpointing wraps norms, attention and MLP of a layer each for itself
    not_reentrant: bool = False  # checkpointing is never reentrant
    compiles_no_layers: bool = False  # its switch for torch.compile does not compile the layers
    offloads_final_norm: bool = False  # activation offload takes every tensor that the forward saves but those of the output head
    # The optimizer
    main_weights: bool = False  # fp32 weights beside the 16-bit ones, gradients in one fp32 buffer: Megatron's distributed optimizer
    galore_rank: int | None = None  # the rank of projections where it is not said; None: the ledger's default
    layerwise_after_backward: bool = False  # layer-wise GaLore steps when backward is over, with every gradient there
    exempts_embeddings: Releases | None = None  # embeddings have 32-bit states beside an 8-bit optimizer of bitsandbytes
    fused_recipes: Releases | None = None  # recipes ask for fused AdamW
    # Sharding and communication
    deepspeed_direct: bool = False  # DeepSpeed gets its configuration unchanged, so that its own defaults hold
    unsynced_gradients: bool = False  # FSDP reduces only the last micro batch of a step: whole gradients meanwhile
    synced_fsdp2: Releases | None = None  # ... but not in these releases, which know no no_sync of FSDP2
    leaves_fsdp2_weights: Releases | None = (
        None  # its own preparation for FSDP2 makes no fp32 of 16-bit weights that learn, as accelerate does
    )
    unsynced_with_frozen: bool = False  # ... and frozen parameters and adapters are flattened into one
    accumulates_by_default: bool = False  # its scripts accumulate gradients where nobody says so
    reduction_bytes: int | None = None  # FSDP reduces gradients in so many bytes each; None: 2 to 4
    gathered_in_pipeline: bool = False  # FSDP keeps parameters gathered after forward where there is a pipeline
    pipelined: bool = False  # pipelines run one forward, one backward: the first stage holds a micro batch per stage
    saves_shards_through_host: bool = False  # to save, ranks copy shards of weights and optimizer states into host memory
    on_ray: bool = False  # its processes are actors of Ray
    # Evaluation
    generates_without_loss: bool = False  # an evaluation that generates gets no labels, and computes no logits of whole rows
    collects_predictions: bool = False  # predictions of an evaluation are collected on the card
    # Reinforcement learning
    critic: Critic | None = None
    offloads_frozen: bool = False  # reward and reference models wait in host memory and are gathered as they compute
    pads_rounds: bool = False  # every completion is padded to the longest of its round, so that one row alone has padding
    rounds_of_a_step: bool = False  # a round of rollouts on a rank is the rows of one optimizer step
    samples_on_card: Releases | None = None  # the samples of a round stay on the card of the process that generated them
    syncs_one_by_one: bool = False  # weights go to the engine one parameter at a time; others may make a whole fp32 state dict
    merges_shards: bool = False  # adapters are merged shard by shard; others gather the whole model for it
    sync_bucket: int | None = None  # bytes of the buffer into which several parameters are packed on their way
    engine_tokens: int | None = None  # tokens that its vLLM schedules at once; None: vLLM's own default
    engine_takes_whole_rows: bool = False  # its vLLM schedules all rows at their longest at once
    # The allocator
    roundup: Roundup | None = None

    def __init__(self, **particular: object) -> None:
        self.__dict__.update(particular)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Traits) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]


#: The fields that are records of their own, by annotation.
_PARTS: Mapping[str, type] = {"Loaded | None": Loaded, "Critic | None": Critic, "Roundup | None": Roundup}
_PLAIN: Mapping[str, type] = {"bool": bool, "int": int, "int | None": int, "str": str}
_SPAN = r"(?:>=|<)\d\S*(?: (?:>=|<)\d\S*)*"  # compiled where a table is read


@cache
def traits_of(framework: str | None) -> Traits:
    """The traits of a framework; without a table, or where nobody knows which it is, those of most."""
    return _typed(Traits, _all().get(framework or "", {}))  # type: ignore[no-any-return]


def misread(written: object, of: type = Traits, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """What is wrong with traits as a file has them: the path of each part, and "unknown", "missing" or the kind that it should have."""
    if not isinstance(written, Mapping):
        yield path, "mapping"
        return
    kinds = of.__annotations__
    yield from (((*path, name), "unknown") for name in written if name not in kinds)
    for name, value in written.items():
        kind = kinds.get(name, "")
        if value is None and of is Traits:
            continue
        if kind in _PARTS:
            yield from misread(value, _PARTS[kind], (*path, name))
        elif kind.startswith("Releases"):
            spans = value if isinstance(value, Mapping) else {"version.own": value}
            if not all(fact.startswith("version.") and re.fullmatch(_SPAN, str(span)) for fact, span in spans.items()):
                yield (*path, name), "releases"
        elif kind in _PLAIN and type(value) is not _PLAIN[kind]:
            yield (*path, name), _PLAIN[kind].__name__
    if of is not Traits:
        needed = {name for name, kind in kinds.items() if kind in _PLAIN and kind != "bool"}
        yield from (((*path, name), "missing") for name in needed - written.keys())


@cache
def _all() -> dict[str, dict[str, object]]:
    """The traits of every framework that has any, with what it inherits."""
    return rule_files.kept("frameworks.traits", _compiled, "frameworks")  # type: ignore[no-any-return]


def _compiled() -> dict[str, dict[str, object]]:
    """Raises ValueError for a trait that does not exist or has another kind."""
    files = rule_files.table("frameworks")
    for name, raw in files.items():
        for path, kind in misread(raw.get("traits", {})):
            raise ValueError(f"rules/frameworks/{name}.yaml: traits.{'.'.join(path)}: {kind}")

    def inherited(name: str) -> dict[str, object]:
        raw = files[name]
        own = _dated(Traits, raw.get("traits", {}), raw.get("version", f"version.{name}"))
        return {**(inherited(raw["extends"]) if "extends" in raw else {}), **own}

    return {name: made for name in files if (made := inherited(name))}


def _dated(of: type, written: Mapping[str, Any], version: str) -> dict[str, Any]:
    """The traits as written, spans of releases beside the fact that says the release: the framework's own where none is named. An heir
    keeps that fact: what TRL does since a release of TRL, Unsloth does by the release of TRL."""
    made = {}
    for name, value in written.items():
        kind = of.__annotations__[name]
        if kind in _PARTS and value is not None:
            made[name] = _dated(_PARTS[kind], value, version)
        elif kind.startswith("Releases") and isinstance(value, str):
            made[name] = {version: value}
        else:
            made[name] = value
    return made


def _typed(of: type, written: Mapping[str, Any]) -> Any:
    """The record that these values describe; null is what most frameworks do."""
    made = {}
    for name, value in written.items():
        kind = of.__annotations__[name]
        if value is not None:
            made[name] = _typed(_PARTS[kind], value) if kind in _PARTS else tuple(value.items()) if isinstance(value, dict) else value
    return of(**made)


def during(spans: Releases, book: FactBook) -> Truth:
    """Whether a job's releases lie in all of these spans; None where one that decides is not known."""
    return all_of(release_spans.releases(span).holds(book.version(fact)) for fact, span in spans)
