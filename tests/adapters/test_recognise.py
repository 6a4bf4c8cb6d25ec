"""Names to dimensions and attributes: what the catalogue adds to what was read."""

from __future__ import annotations

import pytest
from collected import for_each

from diagnose.facts import Fact, FactBook, Origin, Value, Witness
from diagnose.inputs.caller_arguments import model_facts
from diagnose.recognition import recognise
from diagnose.units import Size, Version

LINE = Witness("error.log", 14, 1, "[0] Tesla V100-SXM2-32GB")


def book(*facts: tuple[str, Value, Origin]) -> FactBook:
    """A book of these facts with all that is recognised in it."""
    learned = FactBook(Fact(name, value, origin, LINE) for name, value, origin in facts)
    return learned.learn(recognise(learned))


def capacity(digits: str) -> tuple[str, Value, Origin]:
    return ("log.capacity", Size.printed(digits, "GiB"), "log")


def test_a_model_path_brings_its_dimensions() -> None:
    """The dimensions carry the catalogue as their witness, so that the report can say where they are from."""
    known = book(("model.path", "/data/Qwen2-VL-7B-Instruct", "config"))
    shape = known.shape("model.shape")
    assert shape is not None and shape.V == 152064
    assert known.count("model.total_params") == 8291375616
    assert known.count("model.layers") == 28 and known.count("model.hidden_size") == 3584
    fact = known.fact("model.vocab_size")
    assert fact is not None and fact.origin == "catalogue" and fact.witness == Witness("catalogue", text="Qwen/Qwen2-VL-7B-Instruct")


def test_a_number_that_the_log_prints_wins_over_the_catalogue() -> None:
    known = book(("model.path", "Qwen/Qwen2-VL-7B-Instruct", "config"), ("model.total_params", 8291375617, "log"))
    assert known.count("model.total_params") == 8291375617


def test_given_dimensions_are_kept() -> None:
    """--model config.json beats what the path would mean."""
    from diagnose.catalogue import model

    small = model("Qwen/Qwen2.5-0.5B")
    assert small is not None
    known = book(("model.path", "Qwen/Qwen2.5-7B", "config"), ("model.shape", small, "given"))
    assert known.shape("model.shape") == small and known.count("model.layers") == small.L


def test_the_roles_have_their_own_models() -> None:
    known = book(
        ("actor.model", "Qwen/Qwen2.5-7B", "config"),
        ("critic.model", "Qwen/Qwen2.5-0.5B", "config"),
        ("reward.model", "none-of-ours", "config"),
    )
    actor, critic = known.shape("model.shape"), known.shape("critic.shape")
    assert actor is not None and actor.h == 3584
    assert critic is not None and critic.h == 896
    assert known.shape("reward.shape") is None


def test_an_unknown_model_stays_unknown() -> None:
    assert book(("model.path", "/data/our-own-sft-v3", "config")).fact("model.shape") is None


@for_each(
    "path, word",
    [
        ("unsloth/mistral-7b-bnb-4bit", "nf4"),
        ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4", "gptq"),
        ("Qwen/Qwen2-72B-Instruct-AWQ", "awq"),
        ("Qwen/Qwen1.5-14B-Chat-GPTQ-Int8", "other"),
        ("Qwen/Qwen2.5-7B-Instruct", None),
    ],
)
def test_a_name_says_that_weights_are_quantised_already(path: str, word: str | None) -> None:
    assert book(("model.path", path, "config"), ("model.quantization", "none", "default")).word("model.quantization") == (word or "none")


@pytest.mark.parametrize(
    ("name", "key"), [("Tesla V100-SXM2-32GB", "V100-32GB"), ("NVIDIA A100-SXM4-80GB", "A100-80GB"), ("NVIDIA H100 80GB HBM3", "H100-80GB")]
)
def test_a_printed_name_becomes_the_key_with_its_witness(name: str, key: str) -> None:
    fact = book(("hardware.gpu", name, "log")).fact("hardware.gpu")
    assert fact is not None and (fact.value, fact.origin, fact.witness) == (key, "log", LINE)


def test_a_named_card_brings_what_it_supports() -> None:
    known = book(("hardware.gpu", "Tesla V100-SXM2-32GB", "log"))
    assert known.switch("hardware.bf16") is False and known.switch("hardware.fa2") is False
    assert known.version("hardware.compute_capability") == Version("7.0")
    size = known.size("hardware.capacity")
    assert size is not None and round(size.bytes / 2**30, 1) == 31.7
    assert "hardware.inferred" not in known


def test_the_capacity_decides_between_cards_of_one_name() -> None:
    assert book(("hardware.gpu", "V100", "given"), capacity("31.74")).word("hardware.gpu") == "V100-32GB"
    both = book(("hardware.gpu", "V100", "given"))
    assert both.word("hardware.gpu") == "V100" and both.switch("hardware.bf16") is False


def test_a_capacity_alone_implies_the_card_and_says_so() -> None:
    known = book(capacity("31.74"))
    assert known.word("hardware.gpu") == "V100-32GB" and known.switch("hardware.inferred") is True
    fact = known.fact("hardware.bf16")
    assert fact is not None and fact.value is False and fact.origin == "derived"
    assert fact.witness.text.startswith("inferred from the printed capacity 31.74 GiB")


def test_cards_that_share_a_capacity_leave_only_what_they_agree_on() -> None:
    """79.15 is an A100 or an A800: no name, but both compute bf16. 23.65 is a TITAN RTX or a 4090: nothing is common."""
    known = book(capacity("79.15"))
    assert known.fact("hardware.gpu") is None and known.switch("hardware.bf16") is True
    torn = book(capacity("23.65"))
    assert torn.switch("hardware.inferred") is True and torn.fact("hardware.bf16") is None


def test_a_capacity_seen_in_logs_counts_for_more_than_one_from_memory() -> None:
    """14.75 GiB is what every T4 prints; other cards are only thought to."""
    known = book(capacity("14.75"))
    assert known.switch("hardware.bf16") is False and known.switch("hardware.fa2") is False


@for_each(
    "family, digits, gpu",
    [
        ("torch_cuda", "47.43", "RTX6000Ada-48GB"),
        ("torch_mlu", "47.43", None),
        ("torch_musa", "47.43", None),
        ("jax", "15.48", None),  # the memory of a TPU
        ("torch_hip", "191.98", "MI300X-192GB"),
        ("torch_cuda", "191.98", None),
        ("torch_npu", "60.97", "Ascend910B-64GB"),
        ("vllm_kv", "60.97", "Ascend910B-64GB"),
    ],
)
def test_a_capacity_implies_a_card_of_the_maker_that_the_message_is_of(family: str, digits: str, gpu: str | None) -> None:
    """47.43 GiB is an NVIDIA card where CUDA says so; on a Cambricon card it says nothing of bf16 or flash attention."""
    known = book(("log.family", family, "log"), capacity(digits))
    held = known.fact("hardware.gpu")
    assert (held.value if held is not None else None) == gpu
    assert gpu is not None or known.fact("hardware.bf16") is None


def test_a_card_prints_no_more_than_it_has() -> None:
    """8.00 GiB, as a driver of Windows prints it for any card of 8 GB, is no RTX 2080, which has 7.79."""
    assert book(("log.family", "torch_cuda", "log"), capacity("8.00")).fact("hardware.inferred") is None


def test_a_strange_capacity_implies_nothing() -> None:
    assert book(capacity("20.00")).fact("hardware.inferred") is None


def test_a_path_that_names_no_model_does_not_hide_the_one_that_is_named_elsewhere() -> None:
    found = book(("model.path", "/root/model_res_0_19a40f345d0f", "config"), ("model.path", "qwen3-235b-a22b", "said"))
    assert found.word("model.id") == "Qwen/Qwen3-235B-A22B"


def test_the_most_that_a_card_may_have_is_that_of_the_largest_of_its_name() -> None:
    most = book(("hardware.gpu", "A100", "said")).size("hardware.at_most")
    assert most is not None and most.bytes > 78 * 2**30
    assert book(("hardware.gpu", "A100", "said"), capacity("39.39")).size("hardware.at_most") == Size.printed("39.39", "GiB")


@for_each(
    "requested, path, params",
    [
        (("3.20", "GiB"), None, 859520964),  # a U-Net in 32 bits
        (("4.78", "GiB"), None, 2567463684),  # SDXL's in 16
        (("9.56", "GiB"), None, 2567463684),
        (("3.20", "GiB"), "runwayml/some-other-network", None),  # a name that is not known is not overruled
        (("3.30", "GiB"), None, None),
        (("3", "GiB"), None, None),  # several have that size, as roughly as it is printed
    ],
)
def test_a_network_that_nothing_names_is_told_by_a_copy_of_its_weights(
    requested: tuple[str, str], path: str | None, params: int | None
) -> None:
    known = FactBook([Fact("train.framework", "diffusers", "config", LINE), *([Fact("model.path", path, "config", LINE)] if path else [])])
    known.learn(recognise(known, Size.printed(*requested)))
    assert known.count("model.total_params") == params


def test_only_what_trains_networks_for_images_is_told_so() -> None:
    known = FactBook([Fact("train.framework", "llamafactory", "config", LINE)])
    assert "model.total_params" not in known.learn(recognise(known, Size.printed("3.20", "GiB")))


def test_a_network_for_images_may_be_given_by_its_name() -> None:
    """The answer asks for it, so that it must be taken."""
    known = FactBook([Fact("train.framework", "diffusers", "config", LINE), *model_facts("runwayml/stable-diffusion-v1-5")])
    assert known.learn(recognise(known)).count("model.total_params") == 859520964
