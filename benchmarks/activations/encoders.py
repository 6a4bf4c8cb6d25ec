"""Configurations of encoders, and of encoders with a decoder, in the words of their own config.json; how each is called.

A model of two stacks stands here twice, once with as many encoder layers as are asked for and two of the decoder, once the other way
round. Both stacks see the same number of tokens.
"""

from __future__ import annotations

from typing import Any


def _encoder(model_type: str, h: int, f: int, a: int, vocab: int, **more: Any) -> dict[str, Any]:
    """The keys of BERT and its kin, with as many positions as a row here has tokens."""
    named = {"hidden_size": h, "intermediate_size": f, "num_attention_heads": a, "vocab_size": vocab}
    return {"model_type": model_type, **named, "hidden_act": "gelu", "max_position_embeddings": 1024, **more}


def _t5(h: int, f: int, a: int, projection: str) -> dict[str, Any]:
    named = {"d_model": h, "d_ff": f, "d_kv": 64, "num_heads": a, "vocab_size": 32128}
    return {"model_type": "t5", **named, "feed_forward_proj": projection}


def _bart(model_type: str, h: int, f: int, a: int, vocab: int, **more: Any) -> dict[str, Any]:
    """The keys of BART and Whisper, which name both stacks."""
    both = {f"{stack}_{key}": value for stack in ("encoder", "decoder") for key, value in (("ffn_dim", f), ("attention_heads", a))}
    return {"model_type": model_type, "d_model": h, "vocab_size": vocab, **both, **more}


#: Rows of DeBERTa-v3's table of relative positions are looked up by queries and by keys.
_DISENTANGLED: dict[str, Any] = {
    "relative_attention": True,
    "position_buckets": 256,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "pos_att_type": ["p2c", "c2p"],
    "max_relative_positions": -1,
    "position_biased_input": False,
    "type_vocab_size": 0,
}

ONE_STACK: dict[str, dict[str, Any]] = {
    "BERT-base": _encoder("bert", 768, 3072, 12, 30522, type_vocab_size=2),
    "XLM-R-large": _encoder("xlm-roberta", 1024, 4096, 16, 250002, type_vocab_size=1),
    "DeBERTa-v3-large": _encoder("deberta-v2", 1024, 4096, 16, 128100, **_DISENTANGLED),
    # 991 patches and the class token: one row of patches one below the other
    "ViT-large": {
        "model_type": "vit",
        "hidden_size": 1024,
        "intermediate_size": 4096,
        "num_attention_heads": 16,
        "image_size": [16 * 991, 16],
        "patch_size": 16,
    },
}

TWO_STACKS: dict[str, dict[str, Any]] = {
    "T5-large": _t5(1024, 4096, 16, "relu"),
    "FLAN-T5-XL": _t5(2048, 5120, 32, "gated-gelu"),
    "BART-large": _bart("bart", 1024, 4096, 16, 50265, max_position_embeddings=1024),
    "Whisper-large-v3": _bart("whisper", 1280, 5120, 20, 51866, num_mel_bins=128, max_source_positions=992, max_target_positions=992),
}

#: How each family of two stacks spells the number of its layers: of the encoder, of the decoder.
STACKS = {
    "t5": ("num_layers", "num_decoder_layers"),
    "bart": ("encoder_layers", "decoder_layers"),
    "whisper": ("encoder_layers", "decoder_layers"),
}

ENCODERS: dict[str, dict[str, Any]] = {
    **ONE_STACK,
    **{
        f"{name} {('encoder', 'decoder')[stack]}": entry | {STACKS[entry["model_type"]][1 - stack]: 2}
        for name, entry in TWO_STACKS.items()
        for stack in (0, 1)
    },
}

#: The auto class of each family that is no causal language model.
HEADS = {
    **dict.fromkeys(("bert", "xlm-roberta", "deberta-v2"), "AutoModelForMaskedLM"),
    "vit": "AutoModelForImageClassification",
    **dict.fromkeys(("t5", "bart"), "AutoModelForSeq2SeqLM"),
    "whisper": "AutoModelForSpeechSeq2Seq",
}


def inputs(model_type: str, given: dict[str, Any], image: Any, sound: Any) -> dict[str, Any]:
    """What a model is called with, from what a causal language model of the same rows is."""
    if model_type == "vit":
        return {"pixel_values": image}
    if model_type == "whisper":
        return {"input_features": sound, "decoder_input_ids": given["input_ids"], "use_cache": False}
    if model_type in STACKS:
        return {**given, "decoder_input_ids": given["input_ids"]}
    return {name: value for name, value in given.items() if name != "use_cache"}
