"""What an answer must say aloud: why this value and not the next, why a popular switch is not the cure, what is only inferred."""

from __future__ import annotations

import io
import re

from cases import CORPUS, diagnosed, run
from collected import for_each

from diagnose import explain
from diagnose.diagnosis import Diagnosis
from diagnose.phrases import Lang
from diagnose.render.parts.view import View
from diagnose.render.text.one_screen import render

LLAMAFACTORY = "stage: sft\nfinetuning_type: full\nmodel_name_or_path: Qwen/Qwen2.5-7B-Instruct\nbf16: true\ncutoff_len: 2048\n"
AT_THE_STEP = (
    '  File "/env/torch/optim/adamw.py", line 150, in _init_group\n    state["exp_avg"] = torch.zeros_like(\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 260.00 MiB. GPU 0 has a total capacity of 79.15 GiB of which 140.00 MiB "
    "is free. Including non-PyTorch memory, this process has 79.00 GiB memory in use. Of the allocated memory 77.50 GiB is allocated by "
    "PyTorch, and 300.00 MiB is reserved by PyTorch but unallocated.\n"
)


def text(diagnosis: Diagnosis, lang: Lang = "en") -> str:
    """The whole answer on one line, so that a sentence is found wherever it is broken."""
    return re.sub(r"\s+", " ", render(diagnosis, lang, View(verbose=True)))


@for_each(
    "case, lang, sentence",
    [
        ("llamafactory-6800", "en", "2,048 would need 31.58 GiB"),
        ("llamafactory-6800", "zh", "2,048 则需要 31.58 GiB"),
        ("llamafactory-6800", "en", "(6.92 GiB is free or idle)"),
        ("llamafactory-6800-config-incomplete", "en", "The card is inferred from its printed capacity: V100-32GB"),
        ("llamafactory-6800-config-incomplete", "zh", "显卡型号由打印的容量推断：V100-32GB"),
        ("axolotl-2143", "en", "7.11 GiB of 11.08 GiB at 2,048 tokens"),
        ("axolotl-2143", "en", "The request of 20.00 MiB names no tensor"),
        ("axolotl-2143", "zh", "20.00 MiB 的申请不能说明是哪个张量"),
        ("openrlhf-392", "en", "62.91 GiB of it weights, gradients and optimizer states"),
        ("openrlhf-964", "en", "52.43 GiB held by the rollout engine"),
        ("openrlhf-964", "en", "accounts for 4.23 GiB, 5% of the card"),
        ("openrlhf-964", "en", "accounts for 52.43 GiB, 66% of the card"),
    ],
)
def test_the_answer_says_it(case: str, lang: Lang, sentence: str) -> None:
    assert sentence.replace(" ", "") in text(diagnosed(case), lang).replace(" ", "")


def test_every_card_named_by_the_log_is_not_called_inferred() -> None:
    assert "inferred" not in text(diagnosed("llamafactory-6800"))


def test_a_bad_release_that_the_log_does_not_name_is_likely_and_asked_for() -> None:
    log = (CORPUS / "openrlhf-964" / "error.log").read_text(encoding="utf-8")
    unnamed = "\n".join(line for line in log.split("\n") if not line.startswith("openrlhf  "))
    diagnosis = run("openrlhf-964", logs=unnamed)
    bug = next(cause for cause in diagnosis.judgement.causes if cause.cause == "software_bug")
    assert bug.outcome == "likely" and "0.7.0 broadcasts" not in bug.explanation.en
    assert diagnosis.outcome.questions[0].fact == "version.openrlhf"


def test_a_log_alone_is_not_held_against_a_configuration_that_nobody_gave() -> None:
    diagnosis = explain(CORPUS / "llamafactory-6800" / "error.log")
    assert next(fact.value for fact in diagnosis.facts if fact.name == "zero.stage") == 3  # the log says that ZeRO-3 was detected
    assert "config_not_effective" not in [cause.cause for cause in diagnosis.judgement.causes]


def test_sharding_names_the_file_that_the_framework_ships() -> None:
    plan = explain(AT_THE_STEP, configs=[LLAMAFACTORY], gpus=8).outcome.plan
    assert plan is not None and plan.fits == "yes" and "zero2" in plan.steps
    assert [(edit.key, edit.to) for edit in plan.edits] == [("deepspeed", "examples/deepspeed/ds_z2_config.json")]


def test_one_process_is_not_told_to_shard() -> None:
    outcome = explain(AT_THE_STEP, configs=[LLAMAFACTORY], gpus=1).outcome
    assert not {"zero2", "zero3"} & {remedy.id for remedy in outcome.remedies}


def test_a_setting_in_a_file_that_was_not_given_is_not_called_missing() -> None:
    rejected = {each.id: each.reason.en for each in diagnosed("llamafactory-6800-config-incomplete").outcome.rejected}
    assert "setting" not in rejected.get("zero3", "")


def test_files_open_as_text_are_read_like_files_open_as_bytes() -> None:
    with (CORPUS / "trl-3172" / "error.log").open(encoding="utf-8") as log:
        assert explain(log, configs=[io.StringIO("a: 1\n")]).verdict.status == "oom"
