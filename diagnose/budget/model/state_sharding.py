"""Sharding: the scheme (DDP, ZeRO, FSDP), over how many ranks it divides states, and what it offloads."""

from __future__ import annotations

from typing import Literal

from diagnose.budget.model.job_roles import Role
from diagnose.facts import FactBook
from diagnose.records import NamedTuple
from diagnose.traits import traits_of

Scheme = Literal["single", "ddp", "zero0", "zero1", "zero2", "zero3", "fsdp", "fsdp_grad"]

#: The degrees by which a model is divided, as facts parallel.*.
DEGREES = ("tensor", "pipeline", "context", "expert")

#: Cards of a node of the data centre, where nobody says.
CARDS_OF_A_NODE = 8


class Sharding(NamedTuple):
    """How one role is divided. `ranks`: data parallel ranks (None: unknown); `group`: those among which states are divided, fewer where the
    model is sharded within a node only; `ends`: layers of the first and of the last pipeline stage, where they are set (0: as the others);
    `expert_tensor`: tensor parallel degree of experts (None: as the rest); `second`: those among which
    ZeRO++ divides its second copy of the weights; `states_kept`: the share of optimizer states that stays where
    the rest is offloaded; `sequence`: tensor parallel ranks also divide the tokens between layers; `hands_on`:
    DeepSpeed gets its configuration unchanged, so that its own defaults hold (an HF integration may fill bucket sizes from h)."""

    scheme: Scheme
    ranks: int | None
    cards: int
    tensor: int = 1
    pipeline: int = 1
    ends: tuple[int, int] = (0, 0)
    context: int = 1
    expert: int = 1
    expert_tensor: int | None = None
    sequence: bool = False
    group: int | None = None
    second: int | None = None
    offload_optimizer: bool = False
    states_kept: float = 0
    offload_param: bool = False
    hands_on: bool = False
    unknown: tuple[str, ...] = ()

    @property
    def model_parallel(self) -> int:
        return self.tensor * self.pipeline

    def stage_layers(self, layers: int) -> int:
        """Layers of the largest pipeline stage: those between the ends share what these leave."""
        between = self.pipeline - sum(count > 0 for count in self.ends)
        shared = -(-max(0, layers - sum(self.ends)) // between) if between else 0
        return min(layers, max(*self.ends, shared))

    @property
    def parted(self) -> bool:
        """Whether one process spreads the layers over an unknown number of cards (device_map: auto), so that a card's part is unknown."""
        return self.scheme == "single" and self.ranks is None

    def without_experts(self) -> Sharding:
        """The same without expert parallelism: every expert on every rank."""
        return self._replace(expert=1, expert_tensor=None)

    @property
    def parts_experts(self) -> bool:
        """Whether experts are divided otherwise than the other weights of a layer."""
        return self.expert > 1 or self.expert_tensor not in (None, self.tensor)

    @property
    def expert_ranks(self) -> int:
        """Over how many ranks the experts of a layer are divided."""
        return self.expert * (self.expert_tensor or self.tensor)

    @property
    def zero(self) -> bool:
        return self.scheme in ("zero0", "zero1", "zero2", "zero3")

    @property
    def whole_weights(self) -> bool:
        """Whether every rank keeps all weights."""
        return self.scheme not in ("zero3", "fsdp", "fsdp_grad")


def sharding(book: FactBook, role: Role) -> Sharding:
    """The sharding of a role, as settings and framework make it."""
    cards = role.cards
    if role.name == "engine":  # it divides its model in its own way (rollout.tensor_parallel)
        return Sharding("single", cards, cards or 1)
    tensor, pipeline, context, expert = (max(1, book.count(f"parallel.{name}") or 1) for name in DEGREES)
    scheme = _scheme(book, cards)
    if scheme in ("single", "ddp") and (over := _spread_over(book)) is not None:
        return Sharding("single", 1, 1, pipeline=over) if over else Sharding("single", None, 1, unknown=("hardware.count",))
    if unsaid := _missing_fact(book, scheme, cards):
        least: Scheme = "zero3" if unsaid.startswith("zero.") else "fsdp"
        return Sharding(least, None, cards or 1, tensor, pipeline, context=context, expert=expert, unknown=(unsaid,))
    ranks = None if cards is None else max(1, cards // (tensor * pipeline))
    if scheme in ("single", "ddp") and ranks is None:
        ranks = 1
    group, open_group = _group(book, scheme, ranks)
    wrapped_away = scheme.startswith("fsdp") and book.switch("fsdp.offload") is True
    return Sharding(
        scheme=scheme,
        ranks=ranks,
        cards=cards or 1,
        tensor=tensor,
        pipeline=pipeline,
        ends=(book.count("parallel.first_layers") or 0, book.count("parallel.last_layers") or 0) if pipeline > 1 else (0, 0),
        context=context,
        expert=expert,
        expert_tensor=book.count("parallel.expert_tensor"),
        sequence=tensor > 1 and book.switch("parallel.sequence") is True,
        group=group,
        second=_secondary_group(book, scheme, ranks),
        offload_optimizer=_away(book, "zero.offload_optimizer") if scheme.startswith("zero") else wrapped_away,
        states_kept=1 - min(1.0, book.ratio("zero.offload_ratio") or 1.0) if scheme.startswith("zero") else 0,
        offload_param=_away(book, "zero.offload_param") if scheme == "zero3" else wrapped_away,
        hands_on=traits_of(book.word("train.framework")).deepspeed_direct,
        unknown=("parallel.world",) if ranks is None else open_group,
    )


def _spread_over(book: FactBook) -> int | None:
    """Cards over which one process spreads the model's layers (device_map: auto); they compute in turn, like a pipeline with a single micro
    batch. None: it does not; 0: over an unknown number. What a person counts are cards."""
    counted = book.fact("parallel.world")
    given = book.count("parallel.world") if counted is not None and counted.origin == "given" else None
    if book.switch("model.spread") is not True or (given is None and (book.count("parallel.world") or 1) > 1):
        return None
    return book.count("run.cuda_devices") or book.count("hardware.count") or given or 0


def _missing_fact(book: FactBook, scheme: Scheme, cards: int | None) -> str:
    """The fact to ask for where a file that was not provided (the launcher's, DeepSpeed's) may shard what seems to lie whole on every card;
    "" otherwise."""
    if scheme not in ("single", "ddp") or cards == 1:
        return ""
    if book.switch("config.engine_file_missing") is True and "zero.stage" not in book:
        return "zero.stage"
    return "fsdp.sharding" if book.switch("config.launcher_missing") is True else ""


def _group(book: FactBook, scheme: Scheme, ranks: int | None) -> tuple[int | None, tuple[str, ...]]:
    """(ranks among which states are divided, facts to ask for). FSDP's HYBRID_SHARD shards within a node and replicates between nodes; a
    mesh sets another degree, as does MiCS. A node is presumed to have eight cards where the number of nodes is unknown."""
    mics = book.count("zero.mics_shard")
    if ranks is not None and scheme == "zero3" and mics and mics > 0:
        return min(mics, ranks), ()
    if ranks is None or scheme not in ("fsdp", "fsdp_grad"):
        return ranks, ()
    shard_degree = book.count("fsdp.shard_degree")
    if shard_degree and shard_degree > 0:
        return min(shard_degree, ranks), ()
    if book.word("fsdp.sharding") != "hybrid_shard":
        return ranks, ()
    nodes = book.count("parallel.nodes")
    if nodes:
        return max(1, ranks // nodes), ()
    return min(CARDS_OF_A_NODE, ranks), ("parallel.nodes",) if ranks > CARDS_OF_A_NODE else ()


def _secondary_group(book: FactBook, scheme: Scheme, ranks: int | None) -> int | None:
    """Ranks that share ZeRO++'s second partition of the weights (hpZ); None without one."""
    size = book.count("zero.hpz_partition")
    return min(size, ranks or size) if scheme == "zero3" and size and size > 1 else None


def _away(book: FactBook, name: str) -> bool:
    return book.word(name) in ("cpu", "nvme")


def _scheme(book: FactBook, cards: int | None) -> Scheme:
    stage = book.count("zero.stage")
    if stage is not None and 0 < stage <= 3:
        return {1: "zero1", 2: "zero2", 3: "zero3"}[stage]  # type: ignore[return-value]
    wrapped = book.word("fsdp.sharding")
    if (
        wrapped == "full_shard"
        and (book.count("parallel.pipeline") or 1) > 1
        and traits_of(book.word("train.framework")).gathered_in_pipeline
    ):
        wrapped = "shard_grad_op"
    if wrapped in ("full_shard", "hybrid_shard"):
        return "fsdp"
    if wrapped == "shard_grad_op":
        return "fsdp_grad"
    if stage == 0 and book.word("zero.config"):
        return "zero0"
    if traits_of(book.word("train.framework")).main_weights and book.word("train.precision") in ("bf16", "fp16", "fp8"):
        return "zero0"
    return "ddp" if (cards or 1) > 1 else "single"
