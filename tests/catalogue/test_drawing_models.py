"""Models for images and clips are found by the names that people, paths and logs give them, with the bits that the name tells; words that
only look like one are no model."""

from __future__ import annotations

import pytest
from collected import for_each

from diagnose import rule_files
from diagnose.catalogue import denoisers, network


def _named(text: str) -> list[tuple[str, float | None]]:
    return list(dict.fromkeys((mention.key, mention.bits) for mention in denoisers.mentions(text)))


@for_each(
    "text, key, bits",
    [
        ('model_name: "flux-dev"', "flux.1-dev", None),
        ("flux1-dev-fp8.safetensors", "flux.1-dev", 8),
        ("FLUX.1 [dev] GGUF Q4_K_S", "flux.1-dev", 4.5),
        ("black-forest-labs/FLUX.1-Kontext-dev", "flux.1-dev", None),
        ("models--black-forest-labs--FLUX.1-schnell", "flux.1-schnell", None),
        ("Training Flux_mini", "flux-mini", None),
        ("black-forest-labs/FLUX.2-dev", "flux.2-dev", None),
        ("FLUX.2-klein-4B", "flux.2-klein-4b", None),
        ("/nas/Qwen-Image/Qwen-Image-Edit-2511/transformer/x-00001-of-00005.safetensors", "qwen-image", None),
        ('"model_name": "qwen_image_dit"', "qwen-image", None),
        ("OOM on a 5090, LTX 2.3 lora", "ltx-2.3", None),
        ("ltx-2-19b-dev-fp8.safetensors", "ltx-2", 8),
        ("LTX-Video 0.9.7 13B", "ltx-video-13b", None),
        ("TurboWan2.2-I2V-A14B-low-720P-quant.pth", "wan2.2-a14b", 8),
        ("wan2.2_t2v_low_noise_14B_fp8_scaled.safetensors", "wan2.2-a14b", 8),
        ("Wan2_1-I2V-14B-720P_fp8_e4m3fn.safetensors", "wan2.1-i2v-14b", 8),
        ("Wan-AI/Wan2.1-T2V-1.3B-Diffusers", "wan2.1-t2v-1.3b", None),
        ("Wan-AI/Wan2.2-TI2V-5B", "wan2.2-ti2v-5b", None),
        ("hunyuan-video-t2v-720p/transformers/mp_rank_00_model_states_fp8.pt", "hunyuanvideo", 8),
        ("HunyuanVideo-1.5", "hunyuanvideo-1.5", None),
        ("CogVideoX-Fun-V1.5-5B-InP", "cogvideox-5b", None),
        ("Tongyi-MAI/Z-Image-Turbo", "z-image", None),
        ("the Hidream NF4 model", "hidream-i1", 4.5),
        ("sd_xl_base_1.0.safetensors", "stable-diffusion-xl", None),
        ("stabilityai/stable-diffusion-3.5-large", "stable-diffusion-3.5-large", None),
        ("runwayml/stable-diffusion-v1-5", "stable-diffusion-v1", None),
        ("flux-dev-fp8 能不能支持?", "flux.1-dev", None),  # what is asked for did not run
    ],
)
def test_a_model_is_found_where_it_is_named(text: str, key: str, bits: float | None) -> None:
    assert _named(text) == [(key, bits)]


@for_each(
    "text",
    [
        "the flux of heat through the wall",
        "a WAN link of 10 Gbit",
        "OCRFlux-3B on vLLM",
        "chromadb 0.5",
        "an sd card of 32 GB, /dev/sda1",
        "mochi is a rice cake",
        "Qwen2.5-VL-7B-Instruct",
        "hunyuan-7b-instruct",
    ],
)
def test_other_words_are_no_model(text: str) -> None:
    assert _named(text) == []


def test_a_family_counts_beside_a_sign_of_such_work_as_its_smallest_model() -> None:
    assert _named("flux out of memory") == []
    assert [(m.key, m.of_family) for m in denoisers.mentions("flux-webui out of memory")] == [("flux.1-schnell", True)]


def test_bits_of_text_encoders_are_theirs_alone() -> None:
    assert denoisers.encoder_bits("t5xxl_fp8_e4m3fn.safetensors beside flux1-dev.safetensors") == 8
    assert denoisers.encoder_bits('"text_encoder_4_precision" : int4') == 4.5
    assert denoisers.encoder_bits("flux1-dev-fp8.safetensors") is None


@pytest.mark.parametrize("key", sorted(rule_files.table("denoisers")["networks"]))
def test_a_network_is_whole_and_found_by_its_own_key(key: str) -> None:
    known = network(key)
    assert known.params > 8e8 and known.beside > 0 and known.encoders[0][1] >= known.encoders[-1][1]
    named = [mention.key for mention in denoisers.mentions(known.called)] or [mention.key for mention in denoisers.mentions(key)]
    assert named == [key]
