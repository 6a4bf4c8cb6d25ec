"""Configurations of real models in the words of their own config.json: widths as published, few layers."""

from __future__ import annotations

from typing import Any

from activations.encoders import ENCODERS, STACKS


def _config(model_type: str, h: int, f: int, a: int, kv: int, vocab: int, **more: Any) -> dict[str, Any]:
    """The keys that most configurations share."""
    return {
        "model_type": model_type,
        "hidden_size": h,
        "intermediate_size": f,
        "num_attention_heads": a,
        "num_key_value_heads": kv,
        "vocab_size": vocab,
        "rms_norm_eps": 1e-5,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        **more,
    }


#: What the heads of a model are called -> its configuration without the number of layers.
ARCHITECTURES: dict[str, dict[str, Any]] = {
    **ENCODERS,
    "Llama-3.1-8B": _config("llama", 4096, 14336, 32, 8, 128256),
    "Qwen2.5-7B": _config("qwen2", 3584, 18944, 28, 4, 152064),
    "Qwen3-8B": _config("qwen3", 4096, 12288, 32, 8, 151936, head_dim=128),
    "Mistral-7B-v0.3": _config("mistral", 4096, 14336, 32, 8, 32768, sliding_window=None, head_dim=128),
    "Granite-3.1-8B": _config("granite", 4096, 12800, 32, 8, 49155),
    "SmolLM3-3B": _config("smollm3", 2048, 11008, 16, 4, 128256, pad_token_id=0),
    "Gemma-7B": _config(
        "gemma", 3072, 24576, 16, 16, 256000, head_dim=256, hidden_activation="gelu_pytorch_tanh", tie_word_embeddings=True
    ),
    "Gemma-4-E2B": _config(
        "gemma4_text",
        1536,
        6144,
        8,
        1,
        262144,
        head_dim=256,
        global_head_dim=256,
        num_kv_shared_layers=0,
        hidden_size_per_layer_input=256,
        vocab_size_per_layer_input=262144,
        use_double_wide_mlp=False,
        hidden_activation="gelu_pytorch_tanh",
        sliding_window=4096,
        tie_word_embeddings=True,
    ),
    "Gemma-2-9B": _config(
        "gemma2",
        3584,
        14336,
        16,
        8,
        256000,
        head_dim=256,
        hidden_activation="gelu_pytorch_tanh",
        attn_logit_softcapping=50.0,
        final_logit_softcapping=30.0,
        sliding_window=4096,
        query_pre_attn_scalar=256,
        tie_word_embeddings=True,
    ),
    "Gemma-3-4B": _config(
        "gemma3_text",
        2560,
        10240,
        8,
        4,
        262208,
        head_dim=256,
        hidden_activation="gelu_pytorch_tanh",
        sliding_window=1024,
        query_pre_attn_scalar=256,
        tie_word_embeddings=True,
    ),
    "Phi-3-mini": _config("phi3", 3072, 8192, 32, 32, 32064, pad_token_id=32000),
    "Phi-4": _config("phi3", 5120, 17920, 40, 10, 100352, pad_token_id=100349),
    "GLM-4-9B-0414": _config("glm4", 4096, 13696, 32, 2, 151552, head_dim=128, partial_rotary_factor=0.5, attention_bias=True),
    "OLMo-2-7B": _config("olmo2", 4096, 11008, 32, 32, 100352),
    "OLMo-7B": _config("olmo", 4096, 11008, 32, 32, 50304),
    "GPT-2-XL": {
        "model_type": "gpt2",
        "n_embd": 1600,
        "n_head": 25,
        "vocab_size": 50257,
        "n_positions": 1024,
        "activation_function": "gelu_new",
        "tie_word_embeddings": True,
    },
    "Pythia-6.9B": {
        "model_type": "gpt_neox",
        "hidden_size": 4096,
        "intermediate_size": 16384,
        "num_attention_heads": 32,
        "vocab_size": 50432,
        "hidden_act": "gelu",
        "tie_word_embeddings": False,
    },
    "OPT-6.7B": {
        "model_type": "opt",
        "hidden_size": 4096,
        "word_embed_proj_dim": 4096,
        "ffn_dim": 16384,
        "num_attention_heads": 32,
        "vocab_size": 50272,
        "max_position_embeddings": 2048,
        "dropout": 0.1,
        "tie_word_embeddings": True,
    },
    "Phi-2": {
        "model_type": "phi",
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "num_attention_heads": 32,
        "num_key_value_heads": 32,
        "partial_rotary_factor": 0.4,
        "vocab_size": 51200,
        "hidden_act": "gelu_new",
        "resid_pdrop": 0.1,
        "tie_word_embeddings": False,
    },
    "Falcon-7B": {
        "model_type": "falcon",
        "hidden_size": 4544,
        "num_attention_heads": 71,
        "multi_query": True,
        "new_decoder_architecture": False,
        "parallel_attn": True,
        "bias": False,
        "alibi": False,
        "vocab_size": 65024,
        "tie_word_embeddings": True,
    },
    "StarCoder2-7B": {
        "model_type": "starcoder2",
        "hidden_size": 4608,
        "intermediate_size": 18432,
        "num_attention_heads": 36,
        "num_key_value_heads": 4,
        "vocab_size": 49152,
        "hidden_act": "gelu_pytorch_tanh",
        "sliding_window": 4096,
        "residual_dropout": 0.0,
        "embedding_dropout": 0.0,
        "tie_word_embeddings": False,
    },
    "Mixtral-8x7B": _config("mixtral", 4096, 14336, 32, 8, 32000, num_local_experts=8, num_experts_per_tok=2, sliding_window=None),
    "Qwen1.5-MoE-A2.7B": _config(
        "qwen2_moe",
        2048,
        5632,
        16,
        16,
        151936,
        moe_intermediate_size=1408,
        shared_expert_intermediate_size=5632,
        num_experts=60,
        num_experts_per_tok=4,
    ),
    "Qwen3-30B-A3B": _config(
        "qwen3_moe", 2048, 6144, 32, 4, 151936, head_dim=128, moe_intermediate_size=768, num_experts=128, num_experts_per_tok=8
    ),
    "OLMoE-1B-7B": _config("olmoe", 2048, 1024, 16, 16, 50304, num_experts=64, num_experts_per_tok=8),
    "DeepSeek-V2-Lite": _config(
        "deepseek_v2",
        2048,
        10944,
        16,
        16,
        102400,
        moe_intermediate_size=1408,
        n_routed_experts=64,
        n_shared_experts=2,
        num_experts_per_tok=6,
        first_k_dense_replace=1,
        q_lora_rank=None,
        kv_lora_rank=512,
        qk_rope_head_dim=64,
        qk_nope_head_dim=128,
        v_head_dim=128,
        head_dim=64,
        topk_method="greedy",
        n_group=1,
        topk_group=1,
        routed_scaling_factor=1.0,
    ),
    "DeepSeek-V3": _config(
        "deepseek_v3",
        7168,
        18432,
        128,
        128,
        129280,
        moe_intermediate_size=2048,
        n_routed_experts=256,
        n_shared_experts=1,
        num_experts_per_tok=8,
        first_k_dense_replace=1,
        q_lora_rank=1536,
        kv_lora_rank=512,
        qk_rope_head_dim=64,
        qk_nope_head_dim=128,
        v_head_dim=128,
        n_group=8,
        topk_group=4,
    ),
    "gpt-oss-20b": _config(
        "gpt_oss",
        2880,
        2880,
        64,
        8,
        201088,
        head_dim=64,
        num_local_experts=32,
        num_experts_per_tok=4,
        sliding_window=128,
        attention_bias=True,
    ),
}

#: How each family spells the number of its layers.
LAYERS = {"gpt2": "n_layer"}


def config(name: str, layers: int) -> dict[str, Any]:
    """The configuration of a model cut down to so many layers."""
    entry = ARCHITECTURES[name]
    spelt = LAYERS.get(entry["model_type"], "num_hidden_layers")
    if entry["model_type"] in STACKS:
        spelt = STACKS[entry["model_type"]][name.endswith(" decoder")]
    return entry | {spelt: layers}
