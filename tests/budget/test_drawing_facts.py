"""What the parts of a model for images or clips take on one card: all of them, the largest where the others leave it, and nothing is said
where layers come and go, cards share the weights, or the message shows that less lies there."""

from __future__ import annotations

from collected import for_each

from diagnose.budget.derived.drawing_facts import facts_of_drawing
from diagnose.facts import Fact, FactBook, Value, Witness
from diagnose.units import Size

FLUX, T5_AND_CLIP, VAE = 2 * 11901408320, 2 * (4762310656 + 123060480), 2 * 83819683


def _at_once(**facts: Value) -> int | None:
    told = {"drawing.network": "flux.1-dev"} | {name.replace("__", "."): value for name, value in facts.items()}
    book = FactBook([Fact(name, value, "log", Witness("log")) for name, value in told.items()])
    size = next((fact.value for fact in facts_of_drawing(book) if fact.name == "drawing.at_once"), None)
    return size.bytes if isinstance(size, Size) else None


@for_each(
    "facts, expected",
    [
        ({}, FLUX + T5_AND_CLIP + VAE),
        ({"drawing__bits": 8.0}, FLUX // 2 + T5_AND_CLIP + VAE),
        ({"model__quantization": "fp8", "drawing__encoder_bits": 8.0}, FLUX // 2 + T5_AND_CLIP // 2 + VAE),
        ({"run__offloads": "part"}, FLUX),
        ({"drawing__offload": "part", "drawing__bits": 4.5}, 2 * 4762310656),  # now the text encoder is the largest part
        ({"drawing__offload": "most"}, None),
        ({"run__program": "comfyui"}, None),
        ({"run__program": "kohya", "train__enabled": True}, FLUX),
        ({"run__program": "kohya", "train__enabled": False}, FLUX + T5_AND_CLIP + VAE),
        ({"zero__stage": 2}, FLUX + T5_AND_CLIP + VAE),
        ({"zero__stage": 3}, None),
        ({"zero__offload_param": "cpu"}, None),
        ({"log__phase": "forward", "log__allocated": Size.exactly(9 << 30)}, None),
        ({"log__phase": "model_load", "log__allocated": Size.exactly(9 << 30)}, FLUX + T5_AND_CLIP + VAE),
    ],
)
def test_weights_that_lie_on_a_card_at_once(facts: dict[str, Value], expected: int | None) -> None:
    assert _at_once(**facts) == expected


def test_both_experts_count_and_a_path_in_the_settings_comes_before_a_name_in_the_text() -> None:
    two = _at_once(drawing__network="wan2.2-a14b")
    assert two is not None and two > 2 * 2 * 14288491584
    assert _at_once(model__path="Tongyi-MAI/Z-Image-Turbo") == 2 * (6154908736 + 4022468096 + 83819683)


def test_a_word_that_names_no_network_tells_nothing() -> None:
    """`--set drawing.network=anything`."""
    assert facts_of_drawing(FactBook([Fact("drawing.network", "anything", "given", Witness("--set"))])) == []
