"""Read the dimensions of a model from its config.json; parameters are counted from them in shape.py and entries.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import Any

from diagnose import rule_files
from diagnose.catalogue.dimension_keys import ATTENTION_LAYERS, OTHER_LAYERS, SILENT, SPELLINGS, number
from diagnose.catalogue.entries import shape_of
from diagnose.catalogue.parameter_count import Model
from diagnose.errors import user_error

NEEDED = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")


def model_of_config(data: Mapping[str, object], name: str = "config.json") -> Model:
    """The model that a config.json describes, with its parameters counted. `name` is its name in the report.

    Raises UserError if required dimensions are missing, naming them.
    """
    text = _sub_config(data, "text_config", "llm_config", "language_config") or data
    family = _family(text, data)
    needed = [dimension for dimension in NEEDED if dimension != "vocab_size" or family.get("kind") != "patches"]
    missing = [dimension for dimension in needed if not number(text, dimension)]
    if other := list(dict.fromkeys([*_other_layers(text, family), *_unread(text, data)])):
        raise user_error("config_of_other_layers", name, "pass_known_model", keys=", ".join(other[:3]))
    if missing:
        raise _missing_dimensions(missing, name)
    entry: dict[str, Any] = {
        "id": str(data.get("_name_or_path") or name),
        **_decoder(text),
        "tie_word_embeddings": _ties_embeddings(text, data, family),
        "arch": _traits(text, family),
        **_encoder_dimensions(text, family),
    }
    if family.get("gate_and_up_counted"):
        entry["intermediate_size"] //= 2
    if number(text, "experts"):
        entry["moe"] = _experts(text, entry["intermediate_size"], name)
    if number(text, "kv_lora_rank"):
        entry["mla"] = _latent(text, name)
    if number(text, "linear_num_value_heads") and entry["arch"].get("gated_attention"):
        entry["recurrent"] = _recurrent(text, name)
    if number(text, "interleave_moe_layer_step"):
        entry |= _interleaved(text, entry)
    if number(text, "hidden_size_per_layer_input") and _widest_head(text):
        entry["uneven"] = _uneven_layers(text)
    tower = _tower(data, family, entry["hidden_size"])
    model = shape_of(entry | ({"vision": tower} if tower else {}), family)
    if uncounted := _uncounted_towers(data, text, model, "vision_config" if tower else "", family):
        raise user_error("config_of_other_layers", name, "pass_known_model", keys=", ".join(uncounted[:3]))
    return model


def _missing_dimensions(missing: Iterable[str], name: str) -> Exception:
    keys = (dimension if dimension in SPELLINGS[dimension] else SPELLINGS[dimension][0] for dimension in missing)
    return user_error("config_without_dimensions", name, "pass_whole_config", missing=", ".join(keys))


def _sub_config(data: Mapping[str, Any], *names: str) -> Mapping[str, object] | None:
    return next((data[name] for name in names if isinstance(data.get(name), Mapping)), None)


def _required_dimensions(data: Mapping[str, object], dimensions: Iterable[str], name: str) -> dict[str, int]:
    values = {dimension: number(data, dimension) for dimension in dimensions}
    if None in values.values():
        raise _missing_dimensions((dimension for dimension, value in values.items() if value is None), name)
    return {dimension: value for dimension, value in values.items() if value is not None}


def _family(text: Mapping[str, object], data: Mapping[str, object]) -> Mapping[str, object]:
    """The traits of the family of the outer config (which has the vision tower), else of the decoder's config."""
    table = rule_files.table("models")
    outer, inner = str(data.get("model_type", "")), str(text.get("model_type", ""))
    inner_traits = table.get(inner) or table.get(inner.removesuffix("_text")) or {}
    outer_traits = table.get(outer) or {}
    name = outer if outer_traits else inner or "unknown"
    guessed = {} if inner_traits or outer_traits else _guess_family(text)
    return {
        **guessed,
        **inner_traits,
        **{key: outer_traits[key] for key in outer_traits if key in ("vision", *(() if inner_traits else outer_traits))},
        "family": name,
    }


#: Which of these keys a family's own count covers.
_READ = {
    "gated_attention": ("linear_", "mamba_ssm_dtype"),
    "llama4": ("interleave_moe_layer_step",),
    "uneven": ("global_head_dim", "per_layer_config"),
}


def _other_layers(text: Mapping[str, Any], family: Mapping[str, Any]) -> list[str]:
    """Keys of layers that nothing here counts, with a value: such a model is no stack of attention and MLPs alone."""
    gated = family.get("arch", {}).get("gated_attention")
    read: tuple[str, ...] = _READ["gated_attention"] if gated else ()
    read += _READ["llama4"] if str(family.get("family", "")).startswith("llama4") else ()
    read += _READ["uneven"] if number(text, "hidden_size_per_layer_input") else ()
    kinds, counted = text.get("layer_types"), (*ATTENTION_LAYERS, *(("linear_attention",) if gated else ()))
    strange = ["layer_types"] if isinstance(kinds, list) and any(str(kind) not in counted for kind in kinds) else []
    return strange + sorted(
        key
        for key, value in text.items()
        if value and any(part in key for part in OTHER_LAYERS) and not any(key.startswith(part) for part in read)
    )


_KNOWN_KEYS = frozenset(key for keys in SPELLINGS.values() for key in keys)


def _unread(text: Mapping[str, Any], data: Mapping[str, Any]) -> list[str]:
    """Keys of a family that the catalogue does not have, which may change what its layers are and which nothing here reads."""
    table = rule_files.table("models")
    inner, outer = str(text.get("model_type", "")), str(data.get("model_type", ""))
    if {inner, inner.removesuffix("_text"), outer} & set(table):
        return []
    alone = any(word in str(text.get("hidden_act")) for word in ("relu", "xielu")) and "rms_norm_eps" in text
    strange = ["hidden_act"] if alone else []  # with a gate or without: families differ
    counted = (int, float, list, str, bool)
    return strange + sorted(
        key
        for key, value in text.items()
        if value and isinstance(value, counted) and key not in _KNOWN_KEYS and not any(part in key.lower() for part in SILENT)
    )


#: The largest share of a model's parameters that a tower may have which nothing counts.
_NEGLIGIBLE = 0.01


def _uncounted_towers(data: Mapping[str, Any], text: Mapping[str, Any], model: Model, counted: str, family: Mapping[str, Any]) -> list[str]:
    """Keys of towers beside the decoder (vision, audio) that nothing counts and that are no small part of the model: four matrices of
    attention and two of an MLP per layer."""
    found = []
    for key, tower in data.items():
        if not isinstance(tower, Mapping) or tower is text or not key.endswith("_config") or key in (counted, "quantization_config"):
            continue
        if key == "audio_config" and family.get("vision", {}).get("kind") == "gemma4":  # counted with the images' tower
            continue
        h = number(tower, "embed_dim") or number(tower, "hidden_size")
        layers = max(number(tower, name) or 0 for name in ("depth", "num_hidden_layers", "encoder_layers"))
        if not h or not layers:
            continue
        width = number(tower, "intermediate_size") or 4 * h
        if layers * (4 * h * h + 2 * h * width) > _NEGLIGIBLE * model.params:
            found.append(key)
    return sorted(found)


def _recurrent(text: Mapping[str, object], name: str) -> dict[str, int]:
    """Dimensions of linear attention (Qwen3-Next, Qwen3.5); every `full_attention_interval`-th layer attends to all tokens."""
    sizes = _required_dimensions(
        text, ("linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim", "linear_value_head_dim"), name
    )
    kinds, every = text.get("layer_types"), number(text, "full_attention_interval")
    if isinstance(kinds, list) and "full_attention" in kinds:
        every = kinds.index("full_attention") + 1
    return {
        "every": every or 4,
        "key": sizes["linear_num_key_heads"] * sizes["linear_key_head_dim"],
        "value": sizes["linear_num_value_heads"] * sizes["linear_value_head_dim"],
        "heads": sizes["linear_num_value_heads"],
        "kernel": number(text, "linear_conv_kernel_dim") or 4,
    }


def _interleaved(text: Mapping[str, object], entry: Mapping[str, Any]) -> dict[str, Any]:
    """Llama 4: experts in every so many-th layer, as wide as the shared one; MLPs of the others have a width of their own, and count as
    those of leading layers."""
    width, layers = entry["intermediate_size"], entry["num_hidden_layers"]
    dense = layers - layers // (number(text, "interleave_moe_layer_step") or 1)
    moe = {**entry.get("moe", {}), "moe_intermediate_size": width, "shared_intermediate_size": width, "first_k_dense": dense}
    return {"moe": moe, "intermediate_size": number(text, "intermediate_size_mlp") or width}


def _guess_family(text: Mapping[str, object]) -> dict[str, object]:
    """Guess the traits of an unknown family from its config."""
    rms, gated = "rms_norm_eps" in text, any(word in str(text.get("hidden_act", "silu")) for word in ("silu", "swi", "glu"))
    return {"arch": {"norm": "rms" if rms else "layernorm", "mlp": "gated" if rms or gated else "plain"}}


def _decoder(text: Mapping[str, object]) -> dict[str, object]:
    values = {dimension: number(text, dimension) for dimension in NEEDED}
    h, heads = values["hidden_size"] or 0, values["num_attention_heads"] or 1
    kv_heads = number(text, "num_key_value_heads")
    if text.get("multi_query") is True and not text.get("new_decoder_architecture"):
        kv_heads = number(text, "num_key_value_heads") if "multi_query_group_num" in text else 1
    return {
        **values,
        "intermediate_size": number(text, "intermediate_size") or 4 * h,  # GPT-2, BLOOM and Falcon leave it out: four times
        "num_key_value_heads": kv_heads or heads,
        "head_dim": number(text, "head_dim") or h // heads,
        "max_position_embeddings": number(text, "max_position_embeddings") or 0,
    }


def _encoder_dimensions(text: Mapping[str, object], family: Mapping[str, Any]) -> dict[str, object]:
    """Dimensions that only encoders have: tables of positions, segments and distances, image patches; and the number of encoder layers
    beside decoder layers (T5 omits the latter where they are equal)."""
    kind, arch = family.get("kind"), family.get("arch", {})
    values: dict[str, object] = {}
    if kind is None:
        return values
    numbers = {name: number(text, name) or 0 for name in ("type_vocab_size", "num_mel_bins", "max_source_positions")}
    rows = number(text, "max_target_positions") or 0
    if "positions_beyond" in arch and text.get("position_biased_input") is not False:
        values["learned_positions"] = rows + arch["positions_beyond"]
    if text.get("relative_attention") is True:
        values["relative_rows"] = 2 * (number(text, "position_buckets") or number(text, "max_position_embeddings") or 0)
    if kind == "patches":
        patch, image = number(text, "patch_size") or 16, text.get("image_size")
        sides = (
            image if isinstance(image, list) and all(isinstance(side, int) for side in image) else [number(text, "image_size") or 224] * 2
        )
        values |= {"vocab_size": 0, "patch_size": patch, "patches": prod(side // patch for side in sides)}
    if kind == "encoder_decoder":
        encoder_layers = number(text, "encoder_layers") or 0
        max_positions = rows if "positions_beyond" in arch else 0  # T5 has no table of positions that ends
        values |= {
            "encoder_layers": encoder_layers,
            "num_hidden_layers": number(text, "decoder_layers") or encoder_layers,
            "max_position_embeddings": max_positions,
        }
    return {**{name: value for name, value in numbers.items() if value}, **values}


def _ties_embeddings(text: Mapping[str, object], data: Mapping[str, object], family: Mapping[str, object]) -> bool:
    """Whether input and output embeddings are tied: the outer config before the inner, else the family's default."""
    for config in (data, text):
        if isinstance(config.get("tie_word_embeddings"), bool):
            return bool(config["tie_word_embeddings"])
    return bool(family.get("tie_word_embeddings", False))


def _traits(text: Mapping[str, Any], family: Mapping[str, Any]) -> dict[str, object]:
    arch = dict(family.get("arch", {}))
    bias = text.get("attention_bias")
    if isinstance(bias, bool) and not arch.get("qkv_bias"):
        arch |= {"qkv_bias": bias, "o_bias": arch.get("o_bias", bias)}
    if isinstance(text.get("mlp_bias"), bool):
        arch["mlp_bias"] = text["mlp_bias"]
    if "position_encoding_2d" in text:
        arch |= CHATGLM_6B
    arch |= _activation_traits(text)
    if isinstance(text.get("feed_forward_proj"), str):  # T5: relu, gated-gelu, gated-silu
        gated, act = text["feed_forward_proj"].startswith("gated"), text["feed_forward_proj"].rpartition("-")[2]
        arch |= {"mlp": "gated" if gated else "plain", "act": {"gelu": "written", "relu": "relu"}.get(act, "fused")}
    embedding_width = number(text, "word_embed_proj_dim")
    if embedding_width and embedding_width != number(text, "hidden_size"):
        arch |= {"embed_dim": embedding_width, "final_norm": False}  # OPT-350m: projected in and out, normalised after each layer
    return arch


#: Traits of ChatGLM-6B, which shares its model_type with its successors.
CHATGLM_6B = {
    "norm": "layernorm",
    "mlp": "plain",
    "act": "written",
    "o_bias": True,
    "mlp_bias": True,
    "fused_qkv": True,
    "partial_rotary": True,
}

#: Activation functions by implementation in transformers: `written` in several Python operators, `fused` in one, or relu, of which
#: backward needs only the result.
_ACTS = {
    **dict.fromkeys(("gelu_new", "gelu_fast", "quick_gelu"), "written"),
    **dict.fromkeys(("gelu", "gelu_pytorch_tanh"), "fused"),
    "relu": "relu",
}
_RESIDUAL_DROPOUT = ("resid_pdrop", "residual_dropout", "hidden_dropout", "dropout")
_ATTENTION_DROPOUT = ("attn_pdrop", "attention_dropout")


def _activation_traits(text: Mapping[str, object]) -> dict[str, object]:
    """Traits that decide which activations a layer keeps for backward, as far as the config gives them."""
    traits: dict[str, object] = {}
    act = text.get("activation_function") or text.get("hidden_act")
    if isinstance(act, str) and act in _ACTS:
        traits["act"] = _ACTS[act]
    residual, scores = (_has_dropout(text, keys) for keys in (_RESIDUAL_DROPOUT, _ATTENTION_DROPOUT))
    traits |= {} if residual is None else {"dropouts": 2 if residual else 0}
    traits |= {} if scores is None else {"attention_dropout": scores}
    if "attn_logit_softcapping" in text:
        traits["softcap"] = text["attn_logit_softcapping"] is not None
    if isinstance(text.get("parallel_attn"), bool):  # Falcon: attention and MLP side by side, in the first design behind one norm
        is_parallel, has_two_norms = text["parallel_attn"], text.get("new_decoder_architecture") is True
        traits |= {"parallel": is_parallel, "norms_per_layer": 1 if is_parallel and not has_two_norms else 2}
        traits["broadcasts"] = not has_two_norms and text.get("multi_query") is True
    return traits


def _has_dropout(text: Mapping[str, Any], keys: Iterable[str]) -> bool | None:
    """Whether the dropout with one of these keys is above zero; None if the config has none of them."""
    rates = [text[key] for key in keys if isinstance(text.get(key), (int, float))]
    return rates[0] > 0 if rates else None


def _experts(text: Mapping[str, object], dense_width: int, name: str) -> dict[str, int]:
    """Dimensions of a mixture of experts; without a width of their own (Mixtral), experts are as wide as the MLP."""
    width = number(text, "moe_intermediate_size") or dense_width
    shared = number(text, "shared_intermediate_size") or (number(text, "n_shared_experts") or 0) * width
    return {
        **_required_dimensions(text, ("experts", "experts_per_token"), name),
        "moe_intermediate_size": width,
        "shared_intermediate_size": shared,
        "first_k_dense": min(number(text, "first_k_dense") or 0, number(text, "num_hidden_layers") or 0),
    }


def _latent(text: Mapping[str, object], name: str) -> dict[str, int]:
    needed = ("kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim")
    return {"q_lora_rank": number(text, "q_lora_rank") or 0, **_required_dimensions(text, needed, name)}


def _uneven_layers(text: Mapping[str, object]) -> dict[str, object]:
    """Dimensions of layers that differ (Gemma 4); the list of layer types tells which attend to all tokens."""
    kinds, layers = text.get("layer_types"), number(text, "num_hidden_layers") or 1
    every = kinds.index("full_attention") + 1 if isinstance(kinds, list) and "full_attention" in kinds else layers
    widths = {"hidden_size_per_layer_input": number(text, "hidden_size_per_layer_input"), "global_head_dim": _widest_head(text)}
    shared = min(number(text, "num_kv_shared_layers") or 0, layers)
    double = text.get("use_double_wide_mlp") is True
    return {**widths, "full_attention_every": every, "num_kv_shared_layers": shared, "use_double_wide_mlp": double}


def _widest_head(text: Mapping[str, Any]) -> int | None:
    """The width of heads in layers that attend to all tokens; transformers from 5.24 on writes what differs layer by layer."""
    each = text.get("per_layer_config")
    widths = [number(layer, "head_dim") for layer in each.values() if isinstance(layer, Mapping)] if isinstance(each, Mapping) else []
    return number(text, "global_head_dim") or max((width for width in widths if width), default=None)


def _tower(data: Mapping[str, object], family: Mapping[str, Any], decoder: int) -> dict[str, Any] | None:
    """The dimensions of the vision tower; None if the family has none that can be counted or the config lacks dimensions."""
    tower, kind = _sub_config(data, "vision_config"), family.get("vision", {}).get("kind")
    if tower is None or kind is None:
        return None
    h = number(tower, "embed_dim") or number(tower, "hidden_size")  # Qwen2-VL: embed_dim; its hidden_size is the decoder's
    width = number(tower, "intermediate_size")
    ratio = tower.get("mlp_ratio")
    if width is None and h and isinstance(ratio, (int, float)) and 0 < ratio < 100:
        width = int(h * ratio)
    sizes = {name: number(tower, name) for name in ("depth", "num_heads", "patch_size")}
    if h is None or width is None or None in sizes.values() or not sizes["patch_size"]:
        return None
    patch = sizes["patch_size"]
    image = number(tower, "image_size") or 0
    side = image // patch
    per_image = {"siglip_gemma3": 256, "clip_llava": side * side, "internvit": side * side // 4}
    traits = {
        "hidden_size": h,
        "intermediate_size": width,
        **sizes,
        "out_hidden_size": decoder,
        "merge": number(tower, "merge") or number(data, "merge") or 1,
        "num_positions": number(tower, "num_positions") or side * side + (0 if kind == "siglip_gemma3" else 1),
    }
    if kind in per_image:
        if not per_image[kind]:
            return None
        traits |= {"image_size": image, "tokens_per_image": per_image[kind]}
    audio = _sub_config(data, "audio_config")
    if kind == "gemma4" and audio is not None:
        traits["audio_width"] = number(audio, "output_proj_dims") or 0
    if kind == "internvit":
        qk_norm = tower.get("qk_normalization") is True
        traits |= {"qkv_bias": tower.get("qkv_bias") is not False, "qk_norm": qk_norm, "rms_norm": tower.get("norm_type") == "rms_norm"}
    return traits
