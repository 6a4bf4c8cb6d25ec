"""Vision tower: pixel values, what its layers keep of the images, what one layer takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from diagnose.budget.model.formulas import Number, term
from diagnose.budget.model.ledger import Term
from diagnose.budget.model.role_setup import Setup
from diagnose.budget.model.software_table import table
from diagnose.budget.model.trainable_params import tower_frozen
from diagnose.budget.terms.decoder_layer import recomputes
from diagnose.release_spans import releases

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypedDict

    class Tower(TypedDict, total=False):
        kept: str
        frames: int
        source: str


def _patches(job: Setup) -> dict[str, Number] | None:
    """The formulas' letters with those of the tower: n_v patches per row as the failed request implies, at most what the settings allow;
    h_v, f_v, L_v, a_v dimensions; p side of a patch; i_v images per row. None without a tower or where the images are unknown."""
    tower = job.model.vision if job.model else None
    pixels, row_patches = job.book.count("data.image_pixels"), job.book.count("data.row_patches")
    if tower is None or (pixels is None and row_patches is None) or not job.knows("B") or not job.role.policy:
        return None
    images = job.book.count("data.images_per_sample") or 1
    allowed = None if pixels is None else pixels // tower.patch**2 * images
    own: dict[str, Number] = {
        "n_v": min([count for count in (row_patches, allowed) if count is not None]),
        "h_v": tower.hidden,
        "f_v": tower.width,
        "L_v": tower.depth,
    }
    return {**job.values, **own, "a_v": tower.heads, "p": tower.patch, "i_v": images}


def _flattens_batch(job: Setup) -> bool:
    """Whether the tower puts all patches of the batch in one row and tells images apart by a mask of patches by patches, which SDPA turns
    from booleans into the computing precision."""
    towers, limit = table()["flattened_towers"], table()["flattened_until"]
    kind = job.model.vision.kind if job.model and job.model.vision else ""
    release = job.book.version("version.transformers")
    return kind in towers and job.attention == "sdpa" and releases(limit).holds(release) is True


def _tower_entry(job: Setup) -> Tower:
    """The tower's row of rules/ledger.yaml: `kept` bytes per patch and layer, `frames` in one patch."""
    kinds: Mapping[str, Tower] = table()["towers"]
    kind = job.model.vision.kind if job.model and job.model.vision else ""
    return {**kinds["other"], **kinds.get(kind, {})}


def pixels(job: Setup) -> list[Term]:
    """Pixel values of the batch in fp32, 4*B*n_v*3*frames*p*p bytes, all through the forward pass. An upper bound, since rows may have
    fewer images."""
    values = _patches(job)
    if values is None:
        return []
    frames = _tower_entry(job)["frames"]
    return [term("pixels", "mm_inputs", f"B*n_v*3*{frames}*p*p*4", values, source="processor output in fp32")]


def tower_activations(job: Setup) -> list[Term]:
    """What a trained tower keeps of the images until backward, `kept` bytes per patch and layer. A frozen tower keeps nothing."""
    values = _patches(job)
    whole = job.trainable.count is not None and job.trainable.params == job.trainable.count and not job.trainable.lora
    if values is None or not (whole or _may_be_adapted(job)):
        return []
    saved, source = _tower_entry(job)["kept"], _tower_entry(job)["source"]
    every = f"B*n_v*L_v*({saved})"
    if _may_be_adapted(job):  # whether the names also match linears of the tower is up to the model
        return [term("vision_tower", "mm_inputs", f"0*{every}", values, high=every, source=source)]
    if recomputes(job):  # some towers do not take part in checkpointing
        return [term("vision_tower", "mm_inputs", "2*h_v*B*n_v*L_v", values, high=every, source=source)]
    return [term("vision_tower", "mm_inputs", every, values, source=source)]


def _may_be_adapted(job: Setup) -> bool:
    """Whether adapters may lie on the tower's linears: all linears are asked for, and nothing says that the tower is frozen."""
    targets = (job.book.word("lora.targets") or "").replace("-", "_")
    named = targets in ("all", "all_linear")
    return job.trainable.lora and named and not tower_frozen(job.book, job.framework)


def tower_transient(job: Setup) -> list[Term]:
    """One layer of the tower at work, with masks or scores of patches by patches where its attention makes them."""
    values = _patches(job)
    if values is None:
        return []
    terms = [term("vision_layer", "mm_inputs", f"B*n_v*({_tower_entry(job)['kept']})", values, source=_tower_entry(job)["source"])]
    if _flattens_batch(job):
        terms.append(term("vision_mask", "mm_inputs", "B*n_v*B*n_v", values, source=_tower_entry(job)["source"]))
        terms.append(term("vision_mask_16", "mm_inputs", "2*B*n_v*B*n_v", values, source=_tower_entry(job)["source"]))
    score_bytes = job.book.count("data.patch_score_bytes")
    if score_bytes and job.attention in ("sdpa", "eager"):  # the request shows that no fused kernel takes this mask
        terms.append(term("vision_dense_scores", "mm_inputs", f"{score_bytes}*a_v*B*n_v*B*n_v", values, source=_tower_entry(job)["source"]))
    elif job.attention == "eager":
        terms.append(term("vision_scores", "mm_inputs", "6*B*i_v*a_v*(n_v/i_v)*(n_v/i_v)", values, source=_tower_entry(job)["source"]))
    return terms
