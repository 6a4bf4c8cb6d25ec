"""What kind of program failed: from words, frames, settings and facts, and never presumed."""

from __future__ import annotations

import pytest
from collected import for_each
from workshop import book

from diagnose.adapters.formats.settings import ConfigSource
from diagnose.decide import regime
from diagnose.pipeline import explain

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
FRAME = 'Traceback (most recent call last):\n  File "{file}", line 7, in {function}\n    x = y(z)\n'


def of_log(text: str, **options: object) -> str:
    found = explain(text + OOM, **options)  # type: ignore[arg-type]
    return next(str(fact.value) for fact in found.facts if fact.name == "run.regime")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "unknown"),
        ("***** Running training *****\n", "train"),
        ("text_generation_launcher: Starting Webserver\n", "serve"),
        ("Output generated in 2.05 seconds (4.88 tokens/s, 10 tokens, context 1787, seed 18)\n", "serve"),
        ("2:58PM DBG GRPC(m.bin-127.0.0.1:36471): stderr loading\n", "serve"),
        ("A: 2.82 GB, R: 2.90 GB, Sys: 3.8/3.8125 GB (99.7%)\n", "generate_media"),
        ("(WorkerDict pid=88) step 3\n", "rl"),
        (FRAME.format(file="/x/train_net.py", function="train_step"), "train"),
        (FRAME.format(file="/x/interp.py", function="inference"), "infer"),
        (FRAME.format(file="/x/site-packages/diffusers/pipelines/flux/pipeline_flux.py", function="__call__"), "generate_media"),
        (FRAME.format(file="/x/site-packages/vllm/worker/model_runner.py", function="execute_model"), "serve"),
    ],
)
def test_the_log_tells(text: str, expected: str) -> None:
    assert of_log(text) == expected


def test_a_script_tells() -> None:
    assert of_log("", configs=[ConfigSource("run.sh", b"python scripts/txt2img.py --H 768 --W 768\n")]) == "generate_media"
    assert of_log("", configs=[ConfigSource("run.py", b"for x, y in loader:\n    loss = f(x, y)\n    loss.backward()\n")]) == "train"


def test_a_program_with_several_engines_ran_the_one_whose_allocator_failed() -> None:
    footer = "Output generated in 2.05 seconds (4.88 tokens/s, 10 tokens, context 1787, seed 18)\n"
    for words in ("text-generation-webui\n", "koboldcpp\n", ""):
        facts = {fact.name: fact.value for fact in explain(words + OOM + footer).facts}
        assert facts["run.program"] in ("textgen", "koboldcpp") and facts.get("rollout.engine") is None
        assert facts["log.phase"] == "generation"


def test_the_user_decides() -> None:
    assert of_log("***** Running training *****\n", set={"run.regime": "infer"}) == "infer"


def test_what_trains_nothing_is_a_fact() -> None:
    for word, trains in (("serve", False), ("rl", True), ("unknown", None)):
        facts = {fact.name: fact.value for fact in regime.facts(book(run__regime=word), None, ())}
        assert facts.get("train.enabled") is trains


def test_evidence_of_one_kind_counts_once_and_a_lead_is_needed() -> None:
    place = next(iter(book(train__stage="sft"))).witness
    assert regime.decided({"train": {"words": (20, place)}, "serve": {"words": (20, place)}})[0] == "unknown"
    assert regime.decided({"train": {"words": (20, place), "signs": (10, place)}, "serve": {"words": (20, place)}})[0] == "train"
    assert regime.decided({"data": {"words": (5, place)}})[0] == "unknown"
    assert regime.decided({})[0] == "unknown"


def test_what_says_not_what_for_yields_to_a_purpose_that_is_as_likely() -> None:
    place = next(iter(book(train__stage="sft"))).witness

    def of(**weights: int) -> str:
        return regime.decided({name: {"words": (weight, place)} for name, weight in weights.items()})[0]

    assert of(train=10, host=10) == of(train=10, load_save=10, host=10) == "train"
    assert of(data=10, host=10) == "data"
    assert of(train=10, load_save=15) == "load_save"
    assert of(train=10, serve=10, host=10) == "unknown"


def test_before_a_run_an_unknown_regime_is_no_fact() -> None:
    assert [*regime.facts(book(), None, ())] == []


MESSAGE = "RuntimeError: CUDA out of memory. Tried to allocate 5.71 GiB (GPU 0; 14.76 GiB total capacity; 9.12 GiB already allocated)"


@for_each(
    "told, takes",
    [
        ("$ demucs audio.mp3 -d cuda\n" + FRAME.format(file="/x/demucs/separate.py", function="main"), True),
        ('$ python inference_realesrgan.py -i a.png\nFile "Real-ESRGAN/inference_realesrgan.py", line 8\n', True),
        ('loading cora dataset\nFile "/home/me/pyGAT/train.py", line 9, in train\n    output = model(features, adj)\n', True),
        ('File "/home/me/yolov5/train.py", line 9, in train\n', False),
    ],
)
def test_who_works_on_one_thing_at_a_time_is_told_of_no_batch(told: str, takes: bool) -> None:
    """A picture that is enlarged, a song that is taken apart, a graph that goes through whole: there is no batch to halve."""
    outcome = explain([told + MESSAGE]).outcome
    assert any("Halve the batch" in remedy.title.en for remedy in outcome.remedies) != takes
    assert "lower_micro_batch" not in [remedy.id for remedy in outcome.remedies]
