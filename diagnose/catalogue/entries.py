"""Convert entries of rules/models, and configs in the same form, to `Model`s, counting vision towers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from diagnose.catalogue.parameter_count import Experts, Latent, Model, Recurrent, Uneven, Vision

#: arch.norm of an entry -> Model.norm_kind, Model.norm_vectors
NORMS = {
    "rms": ("rms", 1),
    "rms_wide": ("rms_wide", 1),
    "layernorm": ("layernorm", 2),
    "layernorm_scale": ("layernorm", 1),
    "layernorm_bare": ("layernorm", 0),
}
#: Boolean traits of an entry's `arch`.
SWITCHES = (
    *("qkv_bias", "o_bias", "mlp_bias", "embed_norm", "sinks"),
    *("parallel", "fused_qkv", "fused_gate_up", "partial_rotary", "attention_dropout", "native_softmax", "softcap"),
    *("gated_attention", "broadcasts", "scaled_residual", "inner_dropout", "head_major", "head_dense", "pooler", "norm_keeps_input"),
)


def shape_of(entry: Mapping[str, Any], family: Mapping[str, Any]) -> Model:
    """The model of one entry, with its family's values as defaults; parameters are counted from the dimensions."""
    arch = entry.get("arch", family.get("arch", {}))
    kind, vectors = NORMS[arch.get("norm", "rms")]
    shape = Model(
        id=entry["id"],
        family=family["family"],
        kind=family.get("kind", "decoder"),
        h=entry["hidden_size"],
        f=entry.get("intermediate_size") or 0,
        L=entry["num_hidden_layers"],
        a=entry["num_attention_heads"],
        kv=entry["num_key_value_heads"],
        d=entry["head_dim"],
        V=entry["vocab_size"],
        tied=entry["tie_word_embeddings"],
        params=0,
        max_len=entry.get("max_position_embeddings", 0),
        published=family.get("published", ""),
        gated=arch.get("mlp", "gated") == "gated",
        norms=arch.get("norms_per_layer", 2),
        norm_kind=kind,
        norm_vectors=vectors,
        qk_norm=arch.get("qk_norm", "none"),
        embed=arch.get("embed_dim", 0),
        positions=entry.get("learned_positions", arch.get("learned_positions", 0)),
        final_norm=arch.get("final_norm", True),
        head_bias=arch.get("lm_head_bias", False),
        norms_after=arch.get("norms_after", 0),
        rotary=arch.get("rotary", True),
        act=arch.get("act", "fused"),
        dropouts=arch.get("dropouts", 0),
        k_bias=arch.get("k_bias", True),
        relative_bias=arch.get("relative_bias", 0),
        disentangled=entry.get("relative_rows", 0),
        **{name: arch.get(name, False) for name in SWITCHES},
        experts=_experts(family.get("moe", {}) | entry["moe"]) if "moe" in entry else None,
        latent=_latent(entry["mla"]) if "mla" in entry else None,
        vision=_vision(family.get("vision", {}) | entry["vision"]) if "vision" in entry else None,
        uneven=_uneven(entry["uneven"]) if "uneven" in entry else None,
        recurrent=Recurrent(**entry["recurrent"]) if "recurrent" in entry else None,
    )
    shape = _stem(shape, entry)
    if "encoder_layers" in entry:
        shape = shape._replace(source=_encoder(shape, entry))
    return shape._replace(params=shape.counted)


def _stem(shape: Model, entry: Mapping[str, Any]) -> Model:
    """Add the parameters before the first layer other than token embeddings: a segment table, or for images a class token and patches,
    which then are the whole sequence."""
    h, patch = shape.h, entry.get("patch_size", 0)
    count = entry.get("type_vocab_size", 0) * h
    if not patch:
        return shape._replace(stem_params=count)
    tokens = (entry["patches"] if "patches" in entry else (entry["image_size"] // patch) ** 2) + 1
    return shape._replace(stem_params=h + 3 * patch * patch * h + h, positions=tokens, fixed=tokens)


def _encoder(shape: Model, entry: Mapping[str, Any]) -> Model:
    """The encoder of an encoder-decoder: the same widths, own position tables, no vocabulary or head. An audio encoder begins with two
    convolutions of width three, the second of which halves the number of frames (Whisper)."""
    h, mels = shape.h, entry.get("num_mel_bins", 0)
    convolutions = 3 * mels * h + h + 3 * h * h + h if mels else 0
    frames = entry.get("max_source_positions", 0)
    encoder = shape._replace(L=entry["encoder_layers"], V=0, head_bias=False, head_dense=False, stem_params=convolutions, fixed=frames)
    encoder = encoder._replace(positions=frames) if mels else encoder
    return encoder._replace(params=encoder.counted)


def _experts(moe: Mapping[str, Any]) -> Experts:
    flags = {name: moe.get(name, False) for name in ("router_bias", "expert_bias", "shared_gate", "router_fp32", "routed_fp32")}
    shared, dense = moe.get("shared_intermediate_size", 0), moe.get("first_k_dense", 0)
    return Experts(moe["experts"], moe["experts_per_token"], moe["moe_intermediate_size"], shared, dense, **flags)


def _latent(mla: Mapping[str, Any]) -> Latent:
    return Latent(mla["q_lora_rank"] or 0, mla["kv_lora_rank"], mla["qk_rope_head_dim"], mla["qk_nope_head_dim"], mla["v_head_dim"])


def _uneven(layers: Mapping[str, Any]) -> Uneven:
    wider = 2 if layers.get("use_double_wide_mlp") else 1
    widths = layers["hidden_size_per_layer_input"], layers["global_head_dim"]
    return Uneven(*widths, layers["full_attention_every"], layers["num_kv_shared_layers"], wider)


def _vision(tower: Mapping[str, Any]) -> Vision:
    tokens = tower.get("tokens_per_image") or tower.get("tokens_per_tile")
    merge = tower.get("merge", 1)
    pixels = tower["image_size"] ** 2 // tokens if tokens else (tower["patch_size"] * merge) ** 2
    return Vision(
        kind=tower["kind"],
        hidden=tower["hidden_size"],
        depth=tower["depth"],
        width=tower["intermediate_size"],
        heads=tower["num_heads"],
        patch=tower["patch_size"],
        pixels_per_token=tower.get("pixels_per_token", pixels),
        params=TOWERS[tower["kind"]](tower) + tower.get("beside", 0),
        merge=merge,
        out=tower["out_hidden_size"],
    )


def _attention(h: int) -> int:
    return 4 * (h * h + h)


def _plain_mlp(h: int, width: int) -> int:
    return 2 * h * width + width + h


def _merger_params(h: int, out: int) -> int:
    """Two linears over 2x2 concatenated patches."""
    wide = 4 * h
    return wide * wide + wide + wide * out + out


def _qwen2_vl(tower: Mapping[str, Any]) -> int:
    """LayerNorm blocks, patches of two frames without bias."""
    h, patch = tower["hidden_size"], tower["patch_size"]
    block = _attention(h) + _plain_mlp(h, tower["intermediate_size"]) + 4 * h
    return int(6 * patch * patch * h + tower["depth"] * block + 2 * h + _merger_params(h, tower["out_hidden_size"]))


def _qwen2_5_vl(tower: Mapping[str, Any]) -> int:
    """RMSNorm blocks and a gated MLP with bias."""
    h, width, patch = tower["hidden_size"], tower["intermediate_size"], tower["patch_size"]
    block = _attention(h) + 3 * h * width + 2 * width + h + 2 * h
    return int(6 * patch * patch * h + tower["depth"] * block + h + _merger_params(h, tower["out_hidden_size"]))


def _qwen3_vl(tower: Mapping[str, Any]) -> int:
    """Learned positions, patches with bias, and extra mergers that feed early decoder layers."""
    h, patch = tower["hidden_size"], tower["patch_size"]
    merger = _merger_params(h, tower["out_hidden_size"])
    block = _attention(h) + _plain_mlp(h, tower["intermediate_size"]) + 4 * h
    stem = 6 * patch * patch * h + h + tower["num_positions"] * h
    return int(stem + tower["depth"] * block + 2 * h + merger + tower.get("deepstack", 3) * (8 * h + merger))


def _siglip_gemma3(tower: Mapping[str, Any]) -> int:
    """Patches with bias, a norm after the blocks, a linear projector with its norm."""
    h, patch = tower["hidden_size"], tower["patch_size"]
    block = _attention(h) + _plain_mlp(h, tower["intermediate_size"]) + 4 * h
    return int(3 * patch * patch * h + h + tower["num_positions"] * h + tower["depth"] * block + 2 * h + h * tower["out_hidden_size"] + h)


def _clip_llava(tower: Mapping[str, Any]) -> int:
    """A class token, norms before and after the blocks, a projector of two linears."""
    h, patch, out = tower["hidden_size"], tower["patch_size"], tower["out_hidden_size"]
    block = _attention(h) + _plain_mlp(h, tower["intermediate_size"]) + 4 * h
    return int(h + 3 * patch * patch * h + tower["num_positions"] * h + 4 * h + tower["depth"] * block + h * out + out + out * out + out)


def _internvit(tower: Mapping[str, Any]) -> int:
    """A class token, layer scale, query and key norms in the 6B tower, four patches per token."""
    h, patch, out = tower["hidden_size"], tower["patch_size"], tower["out_hidden_size"]
    block = _attention(h) - (0 if tower.get("qkv_bias", True) else 3 * h) + (2 * h if tower.get("qk_norm") else 0)
    block += _plain_mlp(h, tower["intermediate_size"]) + (2 * h if tower.get("rms_norm") else 4 * h) + 2 * h
    stem = h + 3 * patch * patch * h + h + tower["num_positions"] * h
    return int(stem + tower["depth"] * block + 8 * h + 4 * h * out + out + out * out + out)


#: Parameters of Gemma 4's audio tower with its default config: twelve conformer layers of width 1024, counted by transformers 5.23.
GEMMA4_AUDIO = 304_824_608


def _gemma4(tower: Mapping[str, Any]) -> int:
    """RMSNorm blocks (four norms, and one of queries and keys), a gated MLP, learned positions of rows and columns; and an audio tower
    with its projector."""
    h, patch = tower["hidden_size"], tower["patch_size"]
    block = 4 * h * h + 2 * (h // tower["num_heads"]) + 3 * h * tower["intermediate_size"] + 4 * h
    stem = 3 * patch * patch * h + 2 * tower["num_positions"] * h
    audio = GEMMA4_AUDIO + tower["audio_width"] * tower["out_hidden_size"] if tower.get("audio_width") else 0
    return int(stem + tower["depth"] * block + h * tower["out_hidden_size"] + audio)


def _glm4v(tower: Mapping[str, Any]) -> int:
    """RMSNorm blocks without bias, whose gated MLP is as wide as the decoder; patches of two frames; a convolution that merges four of
    them, and a gated MLP of the tower's `intermediate_size` (transformers modeling_glm4v.py)."""
    h, patch, out = tower["hidden_size"], tower["patch_size"], tower["out_hidden_size"]
    block = 4 * h * h + 3 * h * out + 2 * h
    stem = 6 * patch * patch * h + h + tower["num_positions"] * h + 2 * h
    merger = 4 * h * out + out + out * out + 2 * out + 3 * out * tower["intermediate_size"]
    return int(stem + tower["depth"] * block + merger)


def _pixtral(tower: Mapping[str, Any]) -> int:
    """RMSNorm blocks without bias and with a gated MLP, a norm before them; a norm, a linear that merges patches, and a projector of two
    linears, all without bias (transformers modeling_pixtral.py, modeling_mistral3.py)."""
    h, patch, out = tower["hidden_size"], tower["patch_size"], tower["out_hidden_size"]
    block = 4 * h * h + 3 * h * tower["intermediate_size"] + 2 * h
    merger = h + tower["merge"] ** 2 * h * h + h * out + out * out
    return int(3 * patch * patch * h + h + tower["depth"] * block + merger)


def _qwen_vl(tower: Mapping[str, Any]) -> int:
    """A norm before the blocks; queries that attend to the patches, and a matrix behind them (Qwen/Qwen-VL visual.py)."""
    h, patch, out = tower["hidden_size"], tower["patch_size"], tower["out_hidden_size"]
    block = _attention(h) + _plain_mlp(h, tower["intermediate_size"]) + 4 * h
    pool = 2 * tower["tokens_per_image"] * out + h * out + _attention(out) + 4 * out
    return int(3 * patch * patch * h + tower["num_positions"] * h + 2 * h + tower["depth"] * block + pool + 2 * out + out * out)


#: Functions that count the parameters of a vision tower with its projector, by vision.kind.
TOWERS: dict[str, Callable[[Mapping[str, object]], int]] = {
    "pixtral": _pixtral,
    "qwen_vl": _qwen_vl,
    "qwen2_vl": _qwen2_vl,
    "qwen2_5_vl": _qwen2_5_vl,
    "qwen3_vl": _qwen3_vl,
    "siglip_gemma3": _siglip_gemma3,
    "clip_llava": _clip_llava,
    "internvit": _internvit,
    "gemma4": _gemma4,
    "glm4v": _glm4v,
}
