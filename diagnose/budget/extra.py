"""Models beside the trained one, the rollout engine, its samples, and the vision tower."""

from __future__ import annotations

from diagnose.budget.formula import Number, term
from diagnose.budget.known import below, table
from diagnose.budget.ledger import Term
from diagnose.budget.setup import Setup
from diagnose.budget.states import ZERO, letter
from diagnose.units import Size


def reference(job: Setup) -> list[Term]:
    """A frozen copy of the policy."""
    held = job.reference
    if held in ("none", "adapter", "precomputed") or not job.knows("P"):
        return []
    if held == "offload":
        return [job.term("reference_offloaded", "extra_models", "0", source=ZERO)]
    each = letter(job.precision.weight, "w")
    per = "" if job.sharding.whole_weights else "/N"
    if per and not job.knows("N"):
        return []
    low = "" if held == "copy" else "0"  # whether there is one is open
    return [job.term("reference", "extra_models", f"{each}*P{per}", low=low, source="reference model, no gradients")]


def reward(job: Setup) -> list[Term]:
    """A reward model that a plain PPO job holds beside the policy."""
    other = job.book.shape("reward.shape")
    if job.role.name != "train" or job.stage != "ppo" or other is None or job.book.switch("reward.remote"):
        return []
    values: dict[str, Number] = {**job.values, "P_r": other.params - other.head_params}
    return [term("reward", "extra_models", "2*P_r", values, source="reward model, no gradients")]


def samples(job: Setup) -> list[Term]:
    """Rollout samples of a whole round, padded to the longest, on the card of the process that gathers them."""
    limit = table()["samples_on_card"].get(job.framework)
    version = job.book.version(f"version.{job.framework}") if job.framework else None
    if job.stage not in table()["rollouts"] or limit is None or not below(limit, version):
        return []
    prompts, each = job.book.count("rollout.batch"), job.book.count("rollout.num_generations") or 1
    if prompts is None or not job.knows("s", "G") or job.sharding.ranks is None or job.role.name not in ("actor", "train"):
        return []
    leaders = max(1, job.sharding.ranks // job.sharding.context)
    values: dict[str, Number] = {**job.values, "n": prompts * each // leaders}
    low = "0" if version is None else ""
    source = "OpenRLHF trainer/ppo_utils/experience_maker.py"
    return [
        term("sample_ids", "samples", "8*n*s", values, low=low, source=source),
        term("sample_mask", "samples", "8*n*s", values, low=low, source=source),
        term("sample_actions", "samples", "n*G", values, low=low, source=source),
        *([term("sample_copy", "samples", "n*(16*s + G)", values, low=low, source=source)] if job.sharding.context > 1 else []),
    ]


TOWER = "vision tower: LayerNorm blocks with a plain MLP"

#: What a sleeping engine leaves on the card: measured after vLLM's sleep level 1 (docs/memory.md).
RESIDUE = Size.between(966_367_642, 1_503_238_554)


def capacity(job: Setup) -> Size | None:
    return job.book.size("log.capacity") or job.book.size("hardware.capacity")


def engine(job: Setup, *, awake: bool) -> list[Term]:
    """The rollout engine in the process of a trainer that shares its card; asleep it leaves a residue."""
    book = job.book
    shared = book.word("rollout.placement") == "colocated" and (book.word("rollout.engine") or "none") not in ("none", "hf")
    share, whole = book.ratio("rollout.gpu_memory_utilization"), capacity(job)
    if job.role.name != "train" or not shared or share is None or whole is None:
        return []
    if not awake and book.switch("rollout.sleep"):
        bounds = {"low": str(RESIDUE.low), "high": str(RESIDUE.high)}
        return [term("engine_residue", "rollout_engine", str(RESIDUE.bytes), {}, source="measured after sleep level 1", **bounds)]
    values: dict[str, Number] = {"u": share, "C": whole.bytes}
    return [term("engine", "rollout_engine", "u*C", values, source="vLLM gpu_memory_utilization")]


def _beside(job: Setup) -> bool:
    """Whether a rollout engine in a process of its own shares the card."""
    book = job.book
    apart = job.role.name == "actor" and (book.word("rollout.engine") or "vllm") not in ("none", "hf")
    return apart and (book.switch("colocate.all") is True or book.word("rollout.placement") == "colocated")


def freed_by_sleep(job: Setup) -> Size | None:
    """What an engine gives back when it sleeps, if the failure found it awake; None where it is not so."""
    book, whole = job.book, capacity(job)
    share = book.ratio("rollout.gpu_memory_utilization")
    asleep_at_failure = (book.word("log.phase") or "") not in ("generation", "kv_cache", "weight_sync")
    if not _beside(job) or not book.switch("rollout.sleep") or asleep_at_failure or whole is None or share is None:
        return None
    taken = book.size("log.engine_in_use") or whole.times(share)
    return Size(max(0, taken.low - RESIDUE.high), taken.high - RESIDUE.low, max(0, taken.bytes - RESIDUE.bytes))


def moved_share(job: Setup) -> Size | None:
    """What a changed share of the engine gives this process (below zero: takes from it)."""
    book, whole = job.book, capacity(job)
    said = [fact.value for fact in book.all("rollout.gpu_memory_utilization")]
    now = book.ratio("rollout.gpu_memory_utilization")
    if not _beside(job) or whole is None or now is None or not said or not isinstance(said[0], (int, float)):
        return None
    gained = round((said[0] - now) * whole.bytes)
    return Size(gained, gained, gained) if gained else None


def engine_role(job: Setup) -> list[Term]:
    """An engine on cards of its own: weights, and the cache in what is left of its share."""
    share, whole = job.book.ratio("rollout.gpu_memory_utilization"), capacity(job)
    if not job.knows("P"):
        return []
    per = "/t_e" if (job.book.count("rollout.tensor_parallel") or 1) > 1 else ""
    values: dict[str, Number] = {**job.values, "t_e": job.book.count("rollout.tensor_parallel") or 1}
    made = [term("engine_weights", "weights", f"2*P{per}", values, source="16-bit weights of the engine")]
    if share is not None and whole is not None:
        values |= {"u": share, "C": whole.bytes}
        made.append(term("engine_cache", "kv_cache", f"max(0, u*C - 2*P{per})", values, source="vLLM gpu_memory_utilization"))
    return made


def own_generation(job: Setup) -> list[Term]:
    """KV cache and prefill logits where the trainer itself generates."""
    own = job.book.word("rollout.engine") in ("hf", "none")
    if job.stage not in table()["rollouts"] or not own or not job.knows("L", "k", "b", "s"):
        return []
    rows = job.book.count("rollout.micro_batch")
    values: dict[str, Number] = {**job.values, "b_r": rows} if rows else {**job.values, "b_r": job.values["b"]}
    return [term("kv_cache", "kv_cache", "2*2*L*k*b_r*s", values, source="transformers DynamicCache")]


def _patches(job: Setup) -> dict[str, Number] | None:
    """The letters of the vision tower with the patches of one row; None where there is none or the images are unknown."""
    tower = job.model.vision if job.model else None
    pixels = job.book.count("data.image_pixels")
    if tower is None or pixels is None or not job.knows("B") or job.role.name not in ("train", "actor"):
        return None
    images = job.book.count("data.images_per_sample") or 1
    own: dict[str, Number] = {"n_v": pixels // tower.patch**2 * images, "h_v": tower.hidden, "f_v": tower.width, "L_v": tower.depth}
    return {**job.values, **own, "a_v": tower.heads, "p": tower.patch, "i_v": images}


def _flattened(job: Setup) -> bool:
    """Whether the tower puts all patches of the batch in one row and tells images apart by a mask of patches by patches,
    which SDPA turns from boolean into the computing precision."""
    towers, limit = table()["flattened_towers"], table()["flattened_until"]
    kind = job.model.vision.kind if job.model and job.model.vision else ""
    release = job.book.version("version.transformers")
    return kind in towers and job.attention == "sdpa" and release is not None and below(limit, release)


def pixels(job: Setup) -> list[Term]:
    """Pixel values of the batch; how many images a row has is an upper bound."""
    values = _patches(job)
    if values is None:
        return []
    return [term("pixels", "mm_inputs", "B*n_v*3*p*p*4", values, source="processor output in fp32")]


def tower_kept(job: Setup) -> list[Term]:
    """What a tower that learns keeps of the images until backward; a frozen one keeps nothing."""
    values = _patches(job)
    learns = job.trainable.count is not None and job.trainable.params == job.trainable.count and not job.trainable.lora
    if values is None or not learns:
        return []
    return [term("vision_tower", "mm_inputs", "B*n_v*L_v*(16*h_v + 4*f_v)", values, source=TOWER)]


def tower_working(job: Setup) -> list[Term]:
    """One layer of the tower at work, with its scores where attention is eager."""
    values = _patches(job)
    if values is None:
        return []
    made = [term("vision_layer", "mm_inputs", "B*n_v*(16*h_v + 4*f_v)", values, source=TOWER)]
    if _flattened(job):
        made.append(term("vision_mask", "mm_inputs", "B*n_v*B*n_v", values, source=TOWER))
        made.append(term("vision_mask_16", "mm_inputs", "2*B*n_v*B*n_v", values, source=TOWER))
    if job.attention == "eager":
        made.append(term("vision_scores", "mm_inputs", "6*B*i_v*a_v*(n_v/i_v)*(n_v/i_v)", values, source=TOWER))
    return made
