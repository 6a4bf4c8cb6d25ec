"""The keys under which models' config.json files give their dimensions."""

from __future__ import annotations

from collections.abc import Mapping

#: Dimension -> its keys in configs, most recent first.
SPELLINGS: dict[str, tuple[str, ...]] = {
    "hidden_size": ("hidden_size", "n_embd", "n_embed", "d_model", "dim"),
    "num_hidden_layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers"),
    "num_attention_heads": ("num_attention_heads", "n_head", "n_heads", "num_heads", "decoder_attention_heads"),
    "vocab_size": ("padded_vocab_size", "vocab_size"),
    "intermediate_size": (
        "intermediate_size",
        "n_inner",
        "ffn_dim",
        "ffn_hidden_size",
        "inner_hidden_size",
        "d_ff",
        "decoder_ffn_dim",
        "hidden_dim",
    ),
    "num_key_value_heads": ("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num"),
    "head_dim": ("head_dim", "kv_channels", "d_kv"),
    "max_position_embeddings": ("max_position_embeddings", "n_positions", "seq_length", "max_sequence_length", "n_ctx"),
    "word_embed_proj_dim": ("word_embed_proj_dim",),
    "experts": ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"),
    "experts_per_token": ("num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_k"),
    "moe_intermediate_size": ("moe_intermediate_size",),
    "shared_intermediate_size": ("shared_expert_intermediate_size", "shared_intermediate_size"),
    "n_shared_experts": ("n_shared_experts", "moe_num_shared_experts"),
    "first_k_dense": ("first_k_dense_replace", "moe_layer_start_index"),
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
    "encoder_layers": ("encoder_layers", "num_layers"),
    "decoder_layers": ("decoder_layers", "num_decoder_layers"),
    "max_target_positions": ("max_target_positions", "max_position_embeddings", "n_positions"),
    **{name: (name,) for name in ("type_vocab_size", "position_buckets", "num_mel_bins", "max_source_positions")},
    **{name: (name,) for name in ("linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim", "linear_value_head_dim")},
    **{
        name: (name,)
        for name in ("linear_conv_kernel_dim", "full_attention_interval", "interleave_moe_layer_step", "intermediate_size_mlp")
    },
    **{name: (name,) for name in ("hidden_size_per_layer_input", "global_head_dim", "num_kv_shared_layers")},
}
#: Parts of keys that only configs of other kinds of layers have: state spaces, recurrences, convolutions, layers that differ.
OTHER_LAYERS = (
    *("mamba", "ssm_", "state_size", "linear_num_", "linear_key_", "linear_attn", "time_step", "conv_kernel", "rwkv", "recurrent"),
    *("attn_layer_period", "expert_layer_period", "layers_block_type", "block_types", "hybrid", "altup", "laurel", "index_head_dim"),
    *("cross_attention_layers", "interleave_moe_layer_step", "global_head_dim", "per_layer_config", "attention_k_eq_v", "enable_moe_block"),
)
#: Parts of keys that change neither which layers a model has nor how large they are.
SILENT = (
    *("token_id", "dropout", "pdrop", "drop_rate", "initializer", "init_std", "init_range", "rope", "rotary", "eps", "epsilon", "label"),
    *("return_dict", "return_last", "output_attentions", "output_hidden", "output_router", "name_or_path", "version", "architectures"),
    *("model_type", "auto_map", "use_cache", "dtype", "tie_", "hidden_act", "activation_function", "hidden_activation", "_bias", "bias_"),
    *("sliding_window", "max_window_layers", "layer_types", "pretraining_tp", "quantization_config", "topk", "top_k", "n_group", "route"),
    *("aux_loss", "norm_topk", "scoring", "score_func", "scaling", "scale", "_multiplier", "softcap", "logit", "qk_norm", "qk_layernorm"),
    *("position", "is_decoder", "summary_", "local_attention", "attn_implementation", "attention_type", "query_pre_attn", "qk_head_dim"),
    *("num_dense_layers", "moe_layer_freq", "expert_selection", "expert_combination", "num_nextn_predict", "mtp", "keys_to_ignore"),
    *("use_post_norm", "lambda_std", "vocab_size", "encoder_attention_heads", "encoder_ffn_dim", "share_encoder", "num_shared_experts"),
    *("every_n_layers", "_pattern", "fp32", "problem_type", "chunk_size_feed_forward", "unsloth", "task_specific", "checkpointing"),
    *("capacity", "jitter", "z_loss", "expert_bias", "use_bias", "interleave", "classifier", "image_token", "prompt_length", "mid_dim"),
)
#: Kinds of layers that are attention and an MLP, whatever tokens they see.
ATTENTION_LAYERS = ("full_attention", "sliding_attention", "chunked_attention", "attention", "sparse", "dense", "global", "local")
#: Upper bound of a plausible dimension.
LARGEST = 2**31


def number(data: Mapping[str, object], dimension: str) -> int | None:
    """A dimension by any of its keys; None if it is absent, null or implausible."""
    for key in SPELLINGS[dimension]:
        value = data.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < LARGEST:
            return value
    return None
