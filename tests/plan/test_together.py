"""What belongs together is edited together: the rows of a step, one word for stage and offload, commands that are started alike."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from collected import for_each

from diagnose import check, explain
from diagnose.adapters import config_reader
from diagnose.adapters.formats.settings import ConfigSource, Document
from diagnose.facts import FactBook, Value
from diagnose.parse.model.reading import Reading
from diagnose.plan.choose.plan_search import accumulating
from diagnose.plan.edits import knob_edits
from diagnose.plan.patch import patching
from diagnose.plan.remedies.remedy import Edit, Remedy

FAILED = (
    'Traceback (most recent call last):\n  File "/env/torchtitan/models/llama3/model.py", line 300, in forward\n    h = layer(h)\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.57 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.02 GiB is "
    "free. Including non-PyTorch memory, this process has 78.12 GiB memory in use. Of the allocated memory 71.44 GiB is allocated by "
    "PyTorch, and 5.01 GiB is reserved by PyTorch but unallocated."
)


def made(text: str, changes: Mapping[str, Value], name: str = "f") -> tuple[tuple[Edit, ...] | None, tuple[Document, ...]]:
    told = config_reader.read([ConfigSource(name, text.encode())], Reading(), FactBook())
    return knob_edits.edits(told.documents, FactBook(told.facts), changes), told.documents


def edited(text: str, changes: Mapping[str, Value]) -> str:
    edits, documents = made(text, changes)
    assert edits
    return patching.texts(documents, edits)["f"]


def smaller_batch(text: str, **options: int) -> Remedy:
    found = check([text], gpu="A100-80GB", **options) if options else explain(FAILED, configs=[text])  # type: ignore[arg-type]
    return next(remedy for remedy in found.outcome.remedies if remedy.id == "lower_micro_batch")


# -- the rows of an optimizer step

TITAN = "[model]\nname='llama3'\nflavor='8B'\n[training]\nlocal_batch_size = 8\nseq_len = 8192\n"
TUNE = "model:\n  _component_: torchtune.models.llama3.llama3_8b\nbatch_size: 16\ntokenizer:\n  max_seq_len: 8192\noptimizer_in_bwd: {}\n"
FACTORY = (
    "stage: sft\nfinetuning_type: full\nmodel_name_or_path: Qwen/Qwen2.5-7B\nper_device_train_batch_size: 8\ncutoff_len: 4096\n"
    "use_galore: true\ngalore_layerwise: {}\n"
)


def test_a_global_batch_is_added_where_none_said_the_rows_of_a_step() -> None:
    """Without one torchtitan takes a micro batch on every rank for a step: fewer rows would be another training."""
    remedy = smaller_batch(TITAN, gpus=8)
    to = {edit.key: edit.to for edit in remedy.edits}
    assert to["training.global_batch_size"] == "64" and remedy.price.results == "keep"


def test_where_nobody_says_how_many_ranks_the_rows_to_be_said_are_named() -> None:
    remedy = smaller_batch(TITAN)
    assert [edit.key for edit in remedy.edits] == ["training.local_batch_size"]
    assert "also set training.global_batch_size to 8 times the number of data-parallel ranks" in remedy.why.en
    assert remedy.price.results == "may_change" and "train.gradient_accumulation" not in dict(remedy.knobs)


@for_each(
    "text, key, other",
    [
        (TUNE, "gradient_accumulation_steps", "optimizer_in_bwd"),
        (FACTORY, "gradient_accumulation_steps", "galore_layerwise"),
        (
            "base_model: Qwen/Qwen2.5-7B\nsequence_len: 4096\nmicro_batch_size: 8\noptimizer: galore_adamw{}\n",
            "gradient_accumulation_steps",
            "optimizer",
        ),
        (f"{TITAN}[optimizer]\nearly_step_in_backward = {{}}\n", "training.global_batch_size", "optimizer.early_step_in_backward"),
    ],
)
def test_an_optimizer_that_steps_within_backward_is_not_asked_to_accumulate(text: str, key: str, other: str) -> None:
    """torchtune, LLaMA-Factory and transformers refuse to start with both; torchtitan would step for every micro batch."""
    on, off = ("_layerwise", "") if "adamw{" in text else ("true", "false")
    refused = smaller_batch(text.format(on), gpus=1)
    assert all(edit.key != key for edit in refused.edits)
    assert f"{key} cannot be raised beside {other}" in refused.why.en and refused.price.results == "may_change"
    kept = smaller_batch(text.format(off), gpus=1)
    assert any(edit.key == key for edit in kept.edits) and kept.price.results == "keep"


def test_two_steps_that_accumulate_more_do_so_together() -> None:
    """Half the rows on half the replicas need four times the steps, not twice."""

    class Job:
        book = FactBook()

    both = accumulating({"train.gradient_accumulation": 2}, {"train.gradient_accumulation": 4}, Job())  # type: ignore[arg-type]
    assert both == {"train.gradient_accumulation": 8}


# -- one word for several knobs

SWIFT = "swift sft --model a/b --train_type full --deepspeed {} --per_device_train_batch_size 2\n"


@for_each(
    "before, changes, after",
    [
        ("zero2", {"zero.stage": 3}, "zero3"),
        ("zero2", {"zero.offload_optimizer": "cpu"}, "zero2_offload"),
        ("zero2", {"zero.stage": 3, "zero.offload_optimizer": "cpu"}, "zero3_offload"),
        ("zero2", {"zero.offload_param": "cpu", "zero.stage": 3}, "zero3_offload"),
        ("zero3_offload", {"zero.stage": 2, "zero.offload_optimizer": "none"}, "zero2"),
        ("zero3_offload", {"zero.stage": 2}, "zero2_offload"),
    ],
)
def test_a_word_for_stage_and_offload_is_one_edit(before: str, changes: dict[str, Value], after: str) -> None:
    edits, documents = made(SWIFT.format(before), changes)
    assert edits == (Edit("f", "--deepspeed", before, after),)
    assert patching.texts(documents, edits)["f"] == SWIFT.format(after)


def test_what_no_shipped_file_says_is_no_edit() -> None:
    """ms-swift ships no stage 2 that offloads parameters."""
    assert made(SWIFT.format("zero2"), {"zero.offload_param": "cpu"})[0] is None


# -- commands of one script

RUN = "torchrun --nproc_per_node 2 train.py --output_dir o{} --model_name_or_path a/b --per_device_train_batch_size {}\n"
OTHER = RUN.format(2, 8).replace("train.py", "other.py")


@for_each(
    "before, after",
    [
        pytest.param(RUN.format(1, 8) + RUN.format(2, 8), RUN.format(1, 2) + RUN.format(2, 2), id="alike"),
        pytest.param(RUN.format(1, 8) + RUN.format(2, 4), RUN.format(1, 2) + RUN.format(2, 4), id="another value"),
        pytest.param("B=8\n" + 2 * RUN.format(1, "$B"), "B=8\n" + 2 * RUN.format(1, 2), id="a variable"),
        pytest.param(RUN.format(1, 8) + OTHER, RUN.format(1, 2) + OTHER, id="another program"),
    ],
)
def test_commands_that_are_started_alike_are_edited_alike(before: str, after: str) -> None:
    """A job that restarts itself, or runs several seeds, holds the value more than once."""
    assert edited(before, {"train.micro_batch_size": 2}) == after


def test_a_key_that_is_added_goes_to_every_such_command() -> None:
    new = edited(RUN.format(1, 8) + RUN.format(2, 8), {"train.micro_batch_size": 2, "train.gradient_accumulation": 4})
    assert new.count("--per_device_train_batch_size 2 --gradient_accumulation_steps 4\n") == 2
    again = config_reader.read([ConfigSource("f", new.encode())], Reading(), FactBook())
    values = [fact.value for fact in again.facts if fact.name == "train.gradient_accumulation" and fact.origin == "config"]
    assert values and set(values) == {4}


def test_that_several_commands_are_edited_is_said() -> None:
    line = "llamafactory-cli train --stage sft --finetuning_type full --model_name_or_path Qwen/Qwen2.5-7B --cutoff_len 4096 --seed {}\n"
    first, second = (line.format(seed) for seed in (1, 2))
    assert "2 commands of the script" in smaller_batch(first + second, gpus=2).why.en
    assert "commands of the script" not in smaller_batch(first, gpus=2).why.en
