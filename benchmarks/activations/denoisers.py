"""Bytes per image that U-Nets and transformers of diffusers save for backward, counted on fake CUDA tensors as measure.py does.

    python benchmarks/activations/denoisers.py [--model NAME ...]

Needs what measure.py needs, and diffusers. Prints what rules/denoiser_layers.yaml holds, in bytes per position of the latent (8 x 8
pixels), for full training and for adapters of rank 16 on the products of attention: what stays from forward to backward and, with
checkpointing, what recomputing the largest part takes. Two sizes of image tell what grows with it from what does not.
"""

# ruff: noqa: SLF001 - operators and storages are reached by the names that torch gives them

from __future__ import annotations

import argparse
import json
import sys
import weakref
from pathlib import Path
from typing import Any

import diffusers  # type: ignore[import-not-found, unused-ignore]
import torch  # type: ignore[import-not-found, unused-ignore]

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from activations.card import fake, guard  # noqa: E402
from activations.measure import Kept  # noqa: E402

#: Sides of the latent: 512 and 1024 pixels.
SIDES = (64, 128)

UNET = {"sample_size": 64, "in_channels": 4, "out_channels": 4}
#: Class and configuration, as the config.json of unet/ or transformer/ has them where they differ from the class's own.
NETWORKS: dict[str, tuple[str, dict[str, Any]]] = {
    "stable-diffusion-v1": ("UNet2DConditionModel", {**UNET, "cross_attention_dim": 768, "attention_head_dim": 8}),
    "stable-diffusion-2": (
        "UNet2DConditionModel",
        {**UNET, "cross_attention_dim": 1024, "attention_head_dim": [5, 10, 20, 20], "use_linear_projection": True},
    ),
    "stable-diffusion-xl": (
        "UNet2DConditionModel",
        {
            **UNET,
            "cross_attention_dim": 2048,
            "attention_head_dim": [5, 10, 20],
            "block_out_channels": [320, 640, 1280],
            "down_block_types": ["DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"],
            "up_block_types": ["CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"],
            "transformer_layers_per_block": [1, 2, 10],
            "use_linear_projection": True,
            "addition_embed_type": "text_time",
            "addition_time_embed_dim": 256,
            "projection_class_embeddings_input_dim": 2816,
        },
    ),
    "stable-diffusion-3-medium": (
        "SD3Transformer2DModel",
        {
            "sample_size": 128,
            "in_channels": 16,
            "out_channels": 16,
            "num_layers": 24,
            "num_attention_heads": 24,
            "attention_head_dim": 64,
            "joint_attention_dim": 4096,
            "caption_projection_dim": 1536,
            "pooled_projection_dim": 2048,
            "pos_embed_max_size": 192,
        },
    ),
    "flux.1-dev": ("FluxTransformer2DModel", {"guidance_embeds": True}),
    "qwen-image": ("QwenImageTransformer2DModel", {}),
    "flux.2-klein-4b": (
        "Flux2Transformer2DModel",
        {"num_layers": 5, "num_single_layers": 20, "num_attention_heads": 24, "joint_attention_dim": 7680},
    ),
    "cogvideox-2b": ("CogVideoXTransformer3DModel", {}),
    "wan2.1-t2v-1.3b": ("WanTransformer3DModel", {"num_attention_heads": 12, "ffn_dim": 8960, "num_layers": 30}),
    "wan2.1-t2v-14b": ("WanTransformer3DModel", {}),
}
TARGETS = ["to_q", "to_k", "to_v", "to_out.0", "add_q_proj", "add_k_proj", "add_v_proj", "to_add_out"]


def inputs(kind: str, side: int, settings: dict[str, Any], dtype: Any) -> dict[str, Any]:
    """One image and its prompt."""

    def zeros(*shape: int) -> Any:
        return torch.zeros(*shape, device="cuda", dtype=dtype)

    if kind == "UNet2DConditionModel":
        given = {
            "sample": zeros(1, 4, side, side),
            "timestep": torch.ones(1, device="cuda"),
            "encoder_hidden_states": zeros(1, 77, settings["cross_attention_dim"]),
        }
        if "addition_embed_type" in settings:
            given["added_cond_kwargs"] = {"text_embeds": zeros(1, 1280), "time_ids": zeros(1, 6)}
        return given
    if kind == "SD3Transformer2DModel":
        return {
            "hidden_states": zeros(1, 16, side, side),
            "timestep": torch.ones(1, device="cuda"),
            "encoder_hidden_states": zeros(1, 154, 4096),
            "pooled_projections": zeros(1, 2048),
        }
    tokens = (side // 2) ** 2
    if kind == "WanTransformer3DModel":
        return {
            "hidden_states": zeros(1, 16, 1, side, side),
            "timestep": torch.ones(1, device="cuda"),
            "encoder_hidden_states": zeros(1, 512, 4096),
        }
    if kind == "CogVideoXTransformer3DModel":
        return {
            "hidden_states": zeros(1, 1, 16, side, side),
            "timestep": torch.ones(1, device="cuda"),
            "encoder_hidden_states": zeros(1, 226, 4096),
        }
    if kind == "Flux2Transformer2DModel":
        return {
            "hidden_states": zeros(1, tokens, 128),
            "timestep": torch.ones(1, device="cuda"),
            "guidance": torch.ones(1, device="cuda"),
            "encoder_hidden_states": zeros(1, 512, settings["joint_attention_dim"]),
            "img_ids": zeros(tokens, 4),
            "txt_ids": zeros(512, 4),
        }
    if kind == "QwenImageTransformer2DModel":
        return {
            "hidden_states": zeros(1, tokens, 64),
            "timestep": torch.ones(1, device="cuda"),
            "encoder_hidden_states": zeros(1, 512, 3584),
            "encoder_hidden_states_mask": torch.ones(1, 512, device="cuda", dtype=torch.long),
            "img_shapes": [[(1, side // 2, side // 2)]],
        }
    return {
        "hidden_states": zeros(1, tokens, 64),
        "timestep": torch.ones(1, device="cuda"),
        "guidance": torch.ones(1, device="cuda"),
        "encoder_hidden_states": zeros(1, 512, 4096),
        "pooled_projections": zeros(1, 768),
        "img_ids": zeros(tokens, 3),
        "txt_ids": zeros(512, 3),
    }


def saved(name: str, side: int, *, lora: bool, checkpointing: bool) -> tuple[int, int]:
    """Bytes that stay from forward to backward, and those that the largest checkpointed part saves when it is recomputed."""
    kind, settings = NETWORKS[name]
    with fake():
        torch.set_default_dtype(torch.bfloat16 if lora else torch.float32)
        network = getattr(diffusers, kind)(**settings)
        if lora:
            from peft import LoraConfig, inject_adapter_in_model  # type: ignore[import-not-found, unused-ignore]

            torch.nn.Module.to = lambda module, *_, **__: module
            network.requires_grad_(False)
            torch.set_default_dtype(torch.float32)
            network = inject_adapter_in_model(LoraConfig(r=16, target_modules=TARGETS), network)
        network.train()
        own = {parameter.untyped_storage()._cdata for parameter in network.parameters()}
        held: weakref.WeakSet[Kept] = weakref.WeakSet()
        entered: list[Any] = []
        largest = 0

        def pack(tensor: Any) -> Kept:
            held.add(one := Kept(tensor))
            return one

        def unpack(one: Kept) -> Any:
            return one.tensor

        def recomputed(function: Any, *args: Any, **more: Any) -> Any:
            nonlocal largest
            entered.extend(each for each in args if isinstance(each, torch.Tensor) and each.requires_grad)
            inside: weakref.WeakSet[Kept] = weakref.WeakSet()

            def pack_inside(tensor: Any) -> Kept:
                inside.add(one := Kept(tensor))
                return one

            with torch.autograd.graph.saved_tensors_hooks(pack_inside, unpack):
                found = function(*args, **more)
            largest = max(largest, size([one.tensor for one in inside]))
            return found

        def size(tensors: list[Any]) -> int:
            return sum(
                {
                    each.untyped_storage()._cdata: each.untyped_storage().nbytes()
                    for each in tensors
                    if each.untyped_storage()._cdata not in own
                }.values()
            )

        if checkpointing:
            network.enable_gradient_checkpointing(recomputed)
        given = inputs(kind, side, settings, torch.bfloat16 if lora else torch.float32)
        with torch.autocast("cuda", torch.bfloat16), torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            found = network(**given)
        stays = size([one.tensor for one in held] + entered)
        del found
        return stays, largest


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--model", action="append")
    guard()
    for name in ask.parse_args().model or NETWORKS:
        for lora in (False, True):
            for checkpointing in (False, True):
                small, large = (saved(name, side, lora=lora, checkpointing=checkpointing) for side in SIDES)
                more = SIDES[1] ** 2 - SIDES[0] ** 2
                slopes = [round((b - a) / more) for a, b in zip(small, large, strict=True)]
                rest = [round(a - slope * SIDES[0] ** 2) for a, slope in zip(small, slopes, strict=True)]
                print(
                    json.dumps({"model": name, "lora": lora, "checkpointing": checkpointing, "per_position": slopes, "constant": rest}),
                    flush=True,
                )


if __name__ == "__main__":
    main()
