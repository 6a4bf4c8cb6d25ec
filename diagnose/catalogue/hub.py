"""A model's own config.json to its shape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from diagnose import shipped

if TYPE_CHECKING:
    from diagnose.catalogue.shape import Model

#: A dimension -> how configs spell it, newest first.
SPELLINGS: dict[str, tuple[str, ...]] = {
    "hidden_size": ("hidden_size", "n_embd", "n_embed", "d_model"),
    "num_hidden_layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "num_attention_heads": ("num_attention_heads", "n_head", "n_heads"),
    "vocab_size": ("padded_vocab_size", "vocab_size"),
    "intermediate_size": ("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size", "inner_hidden_size"),
    "num_key_value_heads": ("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num"),
    "head_dim": ("head_dim", "kv_channels"),
    "max_position_embeddings": ("max_position_embeddings", "n_positions", "seq_length", "max_sequence_length", "n_ctx"),
    "word_embed_proj_dim": ("word_embed_proj_dim",),
    "experts": ("num_experts", "num_local_experts", "n_routed_experts"),
    "experts_per_token": ("num_experts_per_tok", "num_experts_per_token", "experts_per_token"),
    "moe_intermediate_size": ("moe_intermediate_size",),
    "shared_intermediate_size": ("shared_expert_intermediate_size", "shared_intermediate_size"),
    "n_shared_experts": ("n_shared_experts",),
    "first_k_dense": ("first_k_dense_replace",),
    "depth": ("depth", "num_hidden_layers", "num_layers"),
    "num_heads": ("num_heads", "num_attention_heads"),
    "patch_size": ("patch_size",),
    "merge": ("spatial_merge_size", "pooling_kernel_size"),
    "image_size": ("image_size", "force_image_size"),
    "num_positions": ("num_position_embeddings", "position_embedding_size"),
    "embed_dim": ("embed_dim",),
    "q_lora_rank": ("q_lora_rank",),
    "kv_lora_rank": ("kv_lora_rank",),
    "qk_rope_head_dim": ("qk_rope_head_dim",),
    "qk_nope_head_dim": ("qk_nope_head_dim",),
    "v_head_dim": ("v_head_dim",),
    "output_proj_dims": ("output_proj_dims",),
    **{name: (name,) for name in ("hidden_size_per_layer_input", "global_head_dim", "num_kv_shared_layers")},
}
NEEDED = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
#: No model is larger; what is, is no config of one.
LARGEST = 2**31


def model_of_config(data: Mapping[str, Any], name: str = "config.json") -> Model:
    """The shape that a model's config.json describes, its parameters counted. `name` is what the report calls it.

    Raises Complaint for a config without the dimensions that sizes are made of, naming them.
    """
    from diagnose.catalogue.entries import shape_of

    text = _nested(data, "text_config", "llm_config", "language_config") or data
    family = _family(text, data)
    missing = [dimension for dimension in NEEDED if not _number(text, dimension)]
    if missing:
        raise _unusable(missing, name)
    entry: dict[str, Any] = {
        "id": str(data.get("_name_or_path") or name),
        **_decoder(text),
        "tie_word_embeddings": _tied(text, data, family),
        "arch": _traits(text, family),
    }
    if _number(text, "experts"):
        entry["moe"] = _experts(text, entry["intermediate_size"], name)
    if _number(text, "kv_lora_rank"):
        entry["mla"] = _latent(text, name)
    if _number(text, "hidden_size_per_layer_input") and _number(text, "global_head_dim"):
        entry["uneven"] = _uneven(text)
    tower = _tower(data, family, entry["hidden_size"])
    return shape_of(entry | ({"vision": tower} if tower else {}), family)


def _unusable(missing: Iterable[str], name: str) -> Exception:
    from diagnose.complaints import complaint

    spelled = (dimension if dimension in SPELLINGS[dimension] else SPELLINGS[dimension][0] for dimension in missing)
    return complaint("config_without_dimensions", name, "pass_whole_config", missing=", ".join(spelled))


def _nested(data: Mapping[str, Any], *names: str) -> Mapping[str, Any] | None:
    return next((data[name] for name in names if isinstance(data.get(name), Mapping)), None)


def _number(data: Mapping[str, Any], dimension: str) -> int | None:
    """The dimension under any of its spellings; None where it is absent, null or no sensible number."""
    for key in SPELLINGS[dimension]:
        value = data.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < LARGEST:
            return value
    return None


def _all(data: Mapping[str, Any], dimensions: Iterable[str], name: str) -> dict[str, int]:
    found = {dimension: _number(data, dimension) for dimension in dimensions}
    if None in found.values():
        raise _unusable((dimension for dimension, value in found.items() if value is None), name)
    return {dimension: value for dimension, value in found.items() if value is not None}


def _family(text: Mapping[str, Any], data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The traits of the family: the outer one's where it names one (it has the vision tower), else the decoder's own."""
    table = shipped.table("models")
    outer, inner = str(data.get("model_type", "")), str(text.get("model_type", ""))
    inside = table.get(inner) or table.get(inner.removesuffix("_text")) or {}
    outside = table.get(outer) or {}
    name = outer if outside else inner or "unknown"
    presumed = {} if inside or outside else _presumed(text)
    return {
        **presumed,
        **inside,
        **{key: outside[key] for key in outside if key in ("vision", *(() if inside else outside))},
        "family": name,
    }


def _presumed(text: Mapping[str, Any]) -> dict[str, Any]:
    """Traits of a family that we do not know, as its config suggests them."""
    rms, gated = "rms_norm_eps" in text, any(word in str(text.get("hidden_act", "silu")) for word in ("silu", "swi", "glu"))
    return {"arch": {"norm": "rms" if rms else "layernorm", "mlp": "gated" if rms or gated else "plain"}}


def _decoder(text: Mapping[str, Any]) -> dict[str, Any]:
    found = {dimension: _number(text, dimension) for dimension in NEEDED}
    h, heads = found["hidden_size"] or 0, found["num_attention_heads"] or 1
    groups = _number(text, "num_key_value_heads")
    if text.get("multi_query") is True and not text.get("new_decoder_architecture"):
        groups = _number(text, "num_key_value_heads") if "multi_query_group_num" in text else 1
    return {
        **found,
        "intermediate_size": _number(text, "intermediate_size") or 4 * h,  # GPT-2, BLOOM and Falcon leave it out: four times
        "num_key_value_heads": groups or heads,
        "head_dim": _number(text, "head_dim") or h // heads,
        "max_position_embeddings": _number(text, "max_position_embeddings") or 0,
    }


def _tied(text: Mapping[str, Any], data: Mapping[str, Any], family: Mapping[str, Any]) -> bool:
    """Where a config is silent, the configuration class of the family decides; the outer config counts before the inner."""
    for place in (data, text):
        if isinstance(place.get("tie_word_embeddings"), bool):
            return bool(place["tie_word_embeddings"])
    return bool(family.get("tie_word_embeddings", False))


def _traits(text: Mapping[str, Any], family: Mapping[str, Any]) -> dict[str, Any]:
    arch = dict(family.get("arch", {}))
    bias = text.get("attention_bias")
    if isinstance(bias, bool) and not arch.get("qkv_bias"):
        arch |= {"qkv_bias": bias, "o_bias": arch.get("o_bias", bias)}
    if isinstance(text.get("mlp_bias"), bool):
        arch["mlp_bias"] = text["mlp_bias"]
    if "position_encoding_2d" in text:
        arch |= FIRST_GLM
    arch |= _measures(text)
    narrow = _number(text, "word_embed_proj_dim")
    if narrow and narrow != _number(text, "hidden_size"):
        arch |= {"embed_dim": narrow, "final_norm": False}  # OPT-350m: projected in and out, normalised after each layer
    return arch


#: ChatGLM-6B, which shares its model_type with its successors.
FIRST_GLM = {
    "norm": "layernorm",
    "mlp": "plain",
    "act": "written",
    "o_bias": True,
    "mlp_bias": True,
    "fused_qkv": True,
    "partial_rotary": True,
}

#: Activations that transformers writes in several python operators, or whose result is all that backward needs.
_ACTS = {
    **dict.fromkeys(("gelu_new", "gelu_fast", "quick_gelu"), "written"),
    **dict.fromkeys(("gelu", "gelu_pytorch_tanh"), "fused"),
    "relu": "relu",
}
_RESIDUAL_DROPOUT = ("resid_pdrop", "residual_dropout", "hidden_dropout", "dropout")
_ATTENTION_DROPOUT = ("attn_pdrop", "attention_dropout")


def _measures(text: Mapping[str, Any]) -> dict[str, Any]:
    """Traits that change what a layer keeps for backward, where the config speaks of them."""
    found: dict[str, Any] = {}
    act = text.get("activation_function") or text.get("hidden_act")
    if isinstance(act, str) and act in _ACTS:
        found["act"] = _ACTS[act]
    residual, scores = (_drops(text, keys) for keys in (_RESIDUAL_DROPOUT, _ATTENTION_DROPOUT))
    found |= {} if residual is None else {"dropouts": 2 if residual else 0}
    found |= {} if scores is None else {"attention_dropout": scores}
    if "attn_logit_softcapping" in text:
        found["softcap"] = text["attn_logit_softcapping"] is not None
    if isinstance(text.get("parallel_attn"), bool):  # Falcon: attention and MLP side by side, in the first design behind one norm
        side_by_side, two = text["parallel_attn"], text.get("new_decoder_architecture") is True
        found |= {"parallel": side_by_side, "norms_per_layer": 1 if side_by_side and not two else 2}
        found["broadcasts"] = not two and text.get("multi_query") is True
    return found


def _drops(text: Mapping[str, Any], keys: Iterable[str]) -> bool | None:
    """Whether a dropout of these names is above zero; None where the config names none."""
    said = [text[key] for key in keys if isinstance(text.get(key), (int, float))]
    return said[0] > 0 if said else None


def _experts(text: Mapping[str, Any], dense_width: int, name: str) -> dict[str, int]:
    """A mixture whose experts have no width of their own (Mixtral) has experts as wide as its MLP."""
    width = _number(text, "moe_intermediate_size") or dense_width
    shared = _number(text, "shared_intermediate_size") or (_number(text, "n_shared_experts") or 0) * width
    return {
        **_all(text, ("experts", "experts_per_token"), name),
        "moe_intermediate_size": width,
        "shared_intermediate_size": shared,
        "first_k_dense": min(_number(text, "first_k_dense") or 0, _number(text, "num_hidden_layers") or 0),
    }


def _latent(text: Mapping[str, Any], name: str) -> dict[str, int]:
    needed = ("kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim")
    return {"q_lora_rank": _number(text, "q_lora_rank") or 0, **_all(text, needed, name)}


def _uneven(text: Mapping[str, Any]) -> dict[str, Any]:
    """Layers that differ (Gemma 4): every so many of them, as the list of their types says, attends to everything."""
    kinds, layers = text.get("layer_types"), _number(text, "num_hidden_layers") or 1
    every = kinds.index("full_attention") + 1 if isinstance(kinds, list) and "full_attention" in kinds else layers
    widths = {name: _number(text, name) for name in ("hidden_size_per_layer_input", "global_head_dim")}
    shared = min(_number(text, "num_kv_shared_layers") or 0, layers)
    double = text.get("use_double_wide_mlp") is True
    return {**widths, "full_attention_every": every, "num_kv_shared_layers": shared, "use_double_wide_mlp": double}


def _tower(data: Mapping[str, Any], family: Mapping[str, Any], decoder: int) -> dict[str, Any] | None:
    """The vision tower, where the family's is one we can count and the config gives its dimensions."""
    tower, kind = _nested(data, "vision_config"), family.get("vision", {}).get("kind")
    if tower is None or kind is None:
        return None
    h = _number(tower, "embed_dim") or _number(tower, "hidden_size")  # Qwen2-VL: embed_dim; its hidden_size is the decoder's
    width = _number(tower, "intermediate_size")
    ratio = tower.get("mlp_ratio")
    if width is None and h and isinstance(ratio, (int, float)) and 0 < ratio < 100:
        width = int(h * ratio)
    sizes = {name: _number(tower, name) for name in ("depth", "num_heads", "patch_size")}
    if h is None or width is None or None in sizes.values() or not sizes["patch_size"]:
        return None
    patch = sizes["patch_size"]
    image = _number(tower, "image_size") or 0
    side = image // patch
    per_image = {"siglip_gemma3": 256, "clip_llava": side * side, "internvit": side * side // 4}
    found = {
        "hidden_size": h,
        "intermediate_size": width,
        **sizes,
        "out_hidden_size": decoder,
        "merge": _number(tower, "merge") or 1,
        "num_positions": _number(tower, "num_positions") or side * side + (0 if kind == "siglip_gemma3" else 1),
    }
    if kind in per_image:
        if not per_image[kind]:
            return None
        found |= {"image_size": image, "tokens_per_image": per_image[kind]}
    sound = _nested(data, "audio_config")
    if kind == "gemma4" and sound is not None:
        found["audio_width"] = _number(sound, "output_proj_dims") or 0
    if kind == "internvit":
        normed = tower.get("qk_normalization") is True
        found |= {"qkv_bias": tower.get("qkv_bias") is not False, "qk_norm": normed, "rms_norm": tower.get("norm_type") == "rms_norm"}
    return found
