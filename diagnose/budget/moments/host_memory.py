"""Host memory of one node: what the job keeps there while it trains, and takes there while it loads, saves or evaluates.

The processes themselves (interpreter, CUDA libraries, data loader workers) are not counted: no setting tells their size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from diagnose.budget.model.formulas import Number, Span, term
from diagnose.budget.model.job_roles import Role
from diagnose.budget.model.ledger import Host, Ledger, Moment, Term, total
from diagnose.budget.model.role_setup import Setup
from diagnose.budget.model.software_table import table
from diagnose.budget.model.state_sharding import CARDS_OF_A_NODE
from diagnose.budget.moments import other_passes
from diagnose.budget.terms import host_offload, training_states
from diagnose.budget.terms.training_states import ZERO, letter
from diagnose.facts import FactBook


def estimate_host(job: Setup) -> Host:
    """What all ranks of one role on one node keep and take."""
    if not job.knows("P"):
        return Host()
    values = _node_letters(job)
    stays = tuple(_training_terms(job, values))
    peaks = (_loading(job, values, stays), _evaluating(job, values, stays), _saving(job, values, stays))
    return Host(
        stays, tuple(moment for moment in peaks if moment is not None), job.book.size("host.ram") or job.book.size("log.container_limit")
    )


def _node_letters(job: Setup) -> dict[str, Number]:
    """The role's letters and those of its node: number of nodes, ranks (n_r) and engines on each. Without a number of nodes, a node has at
    most eight cards."""
    nodes = max(1, job.book.count("parallel.nodes") or -(-job.sharding.cards // CARDS_OF_A_NODE))
    ranks_of_node = max(1, job.sharding.cards // nodes)
    return {
        **job.values,
        "nodes": nodes,
        "n_r": ranks_of_node,
        "n_e": max(1, ranks_of_node // max(1, job.book.count("rollout.tensor_parallel") or 1)),
    }


def _training_terms(job: Setup, values: dict[str, Number]) -> list[Term]:
    """Terms that stay from the first step to the last."""
    per = "/nodes" if values["nodes"] != 1 else ""
    terms: list[Term] = []
    if job.role.offloaded:
        terms.append(term("host_parameters", "weights", f"2*P{per}", values, source=ZERO))
    elif job.sharding.offload_param and job.book.word("zero.offload_param") == "nvme":
        buffers = f"{table()['zero_defaults']['parameter_buffers']}*2*n_r"
        source = "DeepSpeed zero/offload_config.py: buffer_count, buffer_size"
        terms.append(term("host_parameter_swap", "weights", buffers, values, source=source))
    elif job.sharding.offload_param:
        terms.append(host_offload.parameters(job, values, per))
    if job.role.trained and job.sharding.offload_optimizer and job.knows("Pt"):
        terms += host_offload.states(job, values, per)
    terms += _between_phases(job, values, per) if job.role.trained else []
    if job.reference == "offload" and job.stage not in table()["rollouts"]:  # there it is a role of its own
        terms.append(term("host_reference", "extra_models", f"2*P{per}", values, source=ZERO))
    if job.checkpointing == "offload" and job.role.trained and job.knows("h", "L", "T"):
        symbols = "2*h*L*T*n_r"
        source = "pinned hidden states"
        terms.append(term("host_checkpoints", "activations", symbols, values, source=source, high=f"{host_offload.ROUNDED}*{symbols}"))
    return [*terms, *_sleeping_weights(job, values), *_object_store(job, values)]


def _between_phases(job: Setup, values: dict[str, Number], per: str) -> list[Term]:
    """States that leave the cards while an engine generates, unless they live on the host anyway."""
    away = training_states.away(job)
    terms: list[Term] = []
    if "weights" in away and not job.sharding.offload_param:
        terms.append(term("host_parameters", "weights", f"{letter(job.precision.weight, 'w')}*P{per}", values, source=ZERO))
    if "optimizer_states" in away and not job.sharding.offload_optimizer and job.knows("Pt"):
        terms.append(term("host_states", "optimizer_states", f"{12 if job.precision.master else 8}*Pt{per}", values, source=ZERO))
    return terms


def _sleeping_weights(job: Setup, values: dict[str, Number]) -> list[Term]:
    """Weights of sleeping engines: level 1 keeps a copy in host memory, level 2 discards them."""
    book = job.book
    shares = book.word("rollout.placement") == "colocated" or book.switch("colocate.all") is True
    engine = (book.word("rollout.engine") or "none") == "vllm" or (job.role.name == "actor" and book.count("rollout.engines") is not None)
    if not job.role.policy or not (shares and engine and book.switch("rollout.sleep")):
        return []
    low = "0" if "rollout.sleep_level" not in book else ""
    if book.count("rollout.sleep_level") == 2:
        return []
    return [term("host_engine", "rollout_engine", "2*P*n_e", values, source="vLLM sleep mode level 1: pinned copy of the weights", low=low)]


def _object_store(job: Setup, values: dict[str, Number]) -> list[Term]:
    """Ray's object store: 30 % of the node's memory by default, of which only what it holds is resident."""
    ram = job.book.size("host.ram")
    if ram is None or not job.traits.on_ray or not job.role.policy:
        return []
    return [
        term(
            "host_objects", "samples", "0*H", {**values, "H": ram.bytes}, high="0.3*H", source="ray: object_store_memory, 30 % of the node"
        )
    ]


def _loading(job: Setup, values: dict[str, Number], stays: tuple[Term, ...]) -> Moment | None:
    """Every rank reads the whole model, unless an engine shards it while it is read; a range where it is unknown how many ranks do."""
    if job.sharding.cards < 2 or job.sharding.whole_weights or job.role.offloaded:
        return None
    sharded = job.book.switch("zero.init") if job.sharding.scheme == "zero3" else job.book.switch("fsdp.cpu_efficient_loading")
    if sharded:
        return None
    width = _read_width(job)
    symbols = f"{width}*P*n_r" if sharded is False else f"{width}*P"
    load_term = term("host_loading", "weights", symbols, values, source="from_pretrained on every rank", high=f"{width}*P*n_r")
    return Moment("load", (*stays, load_term))


def _read_width(job: Setup) -> str:
    load = job.book.word("train.load_dtype")
    return {"fp32": "4", "bf16": "2", "fp16": "2"}.get(load or "", "2")


def _evaluating(job: Setup, values: dict[str, Number], stays: tuple[Term, ...]) -> Moment | None:
    """Predictions that evaluation moves off the cards: every rank takes those of all ranks. Counted for the steps moved at a time; they add
    up until the evaluation ends, whose length is unknown."""
    evaluation = other_passes.job_for_evaluation(job)
    if evaluation is None or not job.book.switch("eval.enabled") or job.book.count("eval.accumulation_steps") is None:
        return None
    letters = {**evaluation.values, "n_r": values["n_r"], **other_passes.evaluating_ranks(evaluation)}
    predictions, whole = other_passes.predictions(evaluation), f"{other_passes.kept_predictions(evaluation)}*n_r"
    if not predictions:
        return None
    sure = predictions[0].size.bytes > 0  # whether there is a metric function
    symbols, high = (whole, "") if sure else (f"0*({whole})", whole)
    return Moment("eval", (*stays, term("host_predictions", "logits", symbols, letters, source=predictions[0].source, high=high)))


def _saving(job: Setup, values: dict[str, Number], stays: tuple[Term, ...]) -> Moment | None:
    """A checkpoint on its way to disk: a whole copy on the rank that writes it, or every rank's own shards, with those of the optimizer."""
    if job.traits.saves_shards_through_host and job.sharding.scheme == "fsdp" and job.role.trained and job.knows("Pt"):
        per = "/nodes" if values["nodes"] != 1 else ""
        symbols = f"({letter(job.precision.weight, 'w')}*P + 8*Pt){per}"
        source = "sharded state dict with offload_to_cpu, moments included"
        return Moment("save", (*stays, term("host_saving", "weights", symbols, values, source=source)))
    if job.sharding.whole_weights or not job.role.trained or job.book.switch("save.gather_full") is False:
        return None
    width = letter(job.precision.weight, "w") if not isinstance(job.precision.weight, Span) else "2"
    symbols = f"{width}*Pt" if job.trainable.lora else f"{width}*P"
    low = "0" if job.book.switch("save.gather_full") is None else ""
    if "Pt" in symbols and not job.knows("Pt"):
        return None
    return Moment("save", (*stays, term("host_saving", "weights", symbols, values, source="full state dict on the first rank", low=low)))


#: In which order their processes are started.
PLACEMENT_ORDER = ("actor", "reference", "critic", "reward", "engine")


def place_on_nodes(
    book: FactBook, cast: Sequence[Role], role_ledgers: tuple[Ledger, ...], sharing: Sequence[Sequence[str]]
) -> tuple[Ledger, ...]:
    """The ledgers with the node that each role is placed on. Roles in separate processes fill one node after the other, as Ray packs
    them; roles that share cards (`sharing`) or processes are placed together."""
    if book.count("parallel.nodes") == 1 or len(cast) < 2 or not all(role.apart for role in cast):
        return role_ledgers
    cards = {role.name: ledger.gpus for role, ledger in zip(cast, role_ledgers, strict=True)}
    starts: dict[str, int] = {}
    used = 0  # cards, those that were left over on a node among them
    for name in sorted(cards, key=PLACEMENT_ORDER.index):
        beside = [starts[partner] for names in sharing if name in names for partner in names if partner in starts]
        if not beside:
            free_cards = -used % CARDS_OF_A_NODE
            used += free_cards if cards[name] > free_cards else 0
        starts[name] = beside[0] if beside else used // CARDS_OF_A_NODE
        used += 0 if beside else cards[name]
    return tuple(replace(ledger, host=ledger.host._replace(node=starts[ledger.role])) for ledger in role_ledgers)


def fullest_node(ledgers: Sequence[Ledger]) -> tuple[Term, ...]:
    """The terms resident in host memory on the node that needs most, from the first step to the last."""
    terms_of_node: dict[int, tuple[Term, ...]] = {}
    for ledger in ledgers:
        terms_of_node[ledger.host.node] = (*terms_of_node.get(ledger.host.node, ()), *ledger.host.terms)
    return max(terms_of_node.values(), key=lambda terms: total([term.size for term in terms]).bytes, default=())
