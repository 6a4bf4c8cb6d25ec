"""Models beside the trained one (reference, reward, teacher, rollout engine), generation, and rollout samples."""

from __future__ import annotations

from diagnose.budget.model import non_torch
from diagnose.budget.model.formulas import Number, term
from diagnose.budget.model.job_roles import Role
from diagnose.budget.model.ledger import Term
from diagnose.budget.model.role_setup import Setup
from diagnose.budget.model.software_table import table
from diagnose.budget.terms.training_states import ZERO, letter
from diagnose.traits import during
from diagnose.units import Size

#: verl keeps the weights of models that only compute in host memory and gathers them unit by unit.
FROZEN = "verl workers/fsdp_workers.py: CPUOffload(offload_params=True)"


def reference(job: Setup) -> list[Term]:
    """The reference model, a frozen copy of the policy, all along: w*P bytes, /N where weights are sharded, 0 where it waits in host
    memory. The lower end is 0 where it is open whether there is one."""
    placement = job.reference
    if placement in ("none", "adapter", "precomputed") or not job.knows("P"):
        return []
    if placement == "offload":
        source = FROZEN if job.traits.offloads_frozen else ZERO
        return [job.term("reference_offloaded", "extra_models", "0", source=source)]
    width = letter(job.precision.weight, "w")
    per = "" if job.sharding.whole_weights else "/N"
    if per and not job.knows("N"):
        return []
    low = "" if placement == "copy" else "0"  # whether there is one is open
    return [job.term("reference", "extra_models", f"{width}*P{per}", low=low, source="reference model, no gradients")]


def reward(job: Setup, role: Role) -> list[Term]:
    """A frozen reward model in the policy's process, all along: 2*P_r bytes of its part of the layers, /N under ZeRO-3 alone (trl
    models/utils.py prepare_deepspeed)."""
    if role.model is None or (job.sharding.scheme == "zero3" and not job.knows("N")):
        return []
    if role.offloaded:
        return [job.term("reward_offloaded", "extra_models", "0", source=FROZEN)]
    values: dict[str, Number] = {**job.values, "P_r": -(-role.model.headless_params // job.sharding.model_parallel)}
    per = "/N" if job.sharding.scheme == "zero3" else ""
    return [term("reward", "extra_models", f"2*P_r{per}", values, source="reward model, no gradients")]


def teacher(job: Setup) -> list[Term]:
    """The teacher of distillation, all along: 2*P_t bytes, down to 2*P_t/N where the student is sharded."""
    shape = job.book.shape("teacher.shape")
    if job.stage != "gkd" or shape is None or (not job.sharding.whole_weights and not job.knows("N")):
        return []
    values: dict[str, Number] = {**job.values, "P_t": shape.params}
    if job.sharding.whole_weights:
        return [term("teacher", "extra_models", "2*P_t", values, source="teacher model, no gradients")]
    return [term("teacher", "extra_models", "2*P_t/N", values, high="2*P_t", source="teacher model, no gradients")]


def samples(job: Setup) -> list[Term]:
    """The rollout samples of a round on the card of the process that gathers them, padded to the longest: ids and mask 8*n*s bytes each,
    action mask n*G; with context parallelism a copy. Alive all through the round."""
    span = job.traits.samples_on_card
    on_card = span is not None and during(span, job.book)
    if job.stage not in table()["rollouts"] or on_card is False:
        return []
    prompts, completions = job.book.count("rollout.batch"), job.book.count("rollout.num_generations") or 1
    if prompts is None or not job.knows("s", "G") or job.sharding.ranks is None or not job.role.policy:
        return []
    leaders = max(1, job.sharding.ranks // job.sharding.context)
    values: dict[str, Number] = {**job.values, "n": prompts * completions // leaders}
    low = "0" if on_card is None else ""
    source = "OpenRLHF trainer/ppo_utils/experience_maker.py"
    return [
        term("sample_ids", "samples", "8*n*s", values, low=low, source=source),
        term("sample_mask", "samples", "8*n*s", values, low=low, source=source),
        term("sample_actions", "samples", "n*G", values, low=low, source=source),
        *([term("sample_copy", "samples", "n*(16*s + G)", values, low=low, source=source)] if job.sharding.context > 1 else []),
    ]


def residue() -> Size:
    """What a sleeping engine leaves on the card beside its context, as measured (rules/ledger.yaml, outside)."""
    low, likely, high = (figure * non_torch.MIB for figure in table()["outside"]["asleep"])
    return Size.between(low, high, likely)


def capacity(job: Setup) -> Size | None:
    """Memory of the card as the log prints it, else of its model."""
    return job.book.size("log.capacity") or job.book.size("hardware.capacity")


def engine(job: Setup, *, awake: bool) -> list[Term]:
    """The rollout engine in the trainer's process: awake u*C bytes, its share of the card, and CUDA graphs at most; asleep a residue."""
    book = job.book
    shared = book.word("rollout.placement") == "colocated" and (book.word("rollout.engine") or "none") not in ("none", "hf")
    share, whole = book.ratio("rollout.gpu_memory_utilization"), capacity(job)
    if not job.role.hosts or not shared or share is None or whole is None:
        return []
    if not awake and book.switch("rollout.sleep"):
        residue_size = residue()
        bounds = {"low": str(residue_size.low), "high": str(residue_size.high)}
        residue_term = term(
            "engine_residue", "rollout_engine", str(residue_size.bytes), {}, source="measured after sleep level 1", **bounds
        )
        return [residue_term, *_workspaces(job)]
    values: dict[str, Number] = {"u": share, "C": whole.bytes}
    high = f"u*C + {table()['outside']['graphs'] * 2**20}"
    return [term("engine", "rollout_engine", "u*C", values, high=high, source="vLLM gpu_memory_utilization; CUDA graphs beside it")]


def _workspaces(job: Setup) -> list[Term]:
    """vLLM's buffers for experts, for n_b tokens scheduled at once: 2*n_b*k_e*(max(f_e, h) + max(2*f_e, h)) bytes. Sleep does not free
    them."""
    book = job.book
    if (book.word("rollout.engine") or "none") != "vllm" or not job.knows("k_e", "f_e", "h"):
        return []
    rule = table()["engine_tokens"]
    rows, length = book.count("rollout.max_num_seqs"), book.count("rollout.max_model_len") or job.values.get("s")
    if rows is None:  # no more than a round has
        rows = (book.count("rollout.num_generations") or 1) * (book.count("rollout.batch") or 1)
    scheduled, whole = job.traits.engine_tokens, job.traits.engine_takes_whole_rows and isinstance(length, int)
    tokens = rows * length if whole and isinstance(length, int) else scheduled or rule["default"]
    values: dict[str, Number] = {**job.values, "n_b": tokens}
    symbols = "2*n_b*k_e*(max(f_e, h) + max(2*f_e, h))"
    settled = whole or scheduled is not None
    return [term("engine_workspace", "rollout_engine", symbols, values, low="" if settled else "0", source=rule["source"])]


def _shares_card(job: Setup) -> bool:
    """Whether a rollout engine in another process lies on this card."""
    book = job.book
    apart = job.role.name == "actor" and job.role.apart and (book.word("rollout.engine") or "vllm") not in ("none", "hf")
    return apart and (book.switch("colocate.all") is True or book.word("rollout.placement") == "colocated")


def freed_by_sleep(job: Setup) -> Size | None:
    """What an engine in another process gives back when it sleeps, if the failure found it awake; None otherwise."""
    book, whole = job.book, capacity(job)
    share = book.ratio("rollout.gpu_memory_utilization")
    asleep_at_failure = (book.word("log.phase") or "") not in ("generation", "kv_cache", "weight_sync")
    if not _shares_card(job) or not book.switch("rollout.sleep") or asleep_at_failure or whole is None or share is None:
        return None
    in_use = book.size("log.engine_in_use") or whole.times(share)
    residue_size = residue()
    return Size(max(0, in_use.low - residue_size.high), in_use.high - residue_size.low, max(0, in_use.bytes - residue_size.bytes))


def moved_share(job: Setup) -> Size | None:
    """What a changed gpu_memory_utilization of an engine in another process gives this one (negative: takes from it); None without a
    change."""
    book, whole = job.book, capacity(job)
    shares = [fact.value for fact in book.all("rollout.gpu_memory_utilization")]
    now = book.ratio("rollout.gpu_memory_utilization")
    if not _shares_card(job) or whole is None or now is None or not shares or not isinstance(shares[0], (int, float)):
        return None
    gained = round((shares[0] - now) * whole.bytes)
    return Size(gained, gained, gained) if gained else None


def engine_weights(job: Setup) -> list[Term]:
    """The engine's own weights, 2*P bytes, /t_e under tensor parallelism."""
    if not job.knows("P"):
        return []
    per = "/t_e" if divided(job) > 1 else ""
    return [term("engine_weights", "weights", f"2*P{per}", {**job.values, "t_e": divided(job)}, source="16-bit weights of the engine")]


def divided(job: Setup) -> int:
    """Tensor parallel degree of the engine."""
    return job.book.count("rollout.tensor_parallel") or 1
