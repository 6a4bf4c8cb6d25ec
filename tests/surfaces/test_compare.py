"""A job that worked beside one that failed: which difference explains the failure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from forked import ENTRY, forked

from diagnose import pipeline, two_jobs

CONFIG = """\
model_name_or_path: meta-llama/Meta-Llama-3.1-8B-Instruct
stage: sft
do_train: true
finetuning_type: lora
flash_attn: fa2
cutoff_len: {length}
per_device_train_batch_size: {rows}
bf16: true
template: llama3
output_dir: out
dataset: x
"""
MESSAGE = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked}. GPU 0 has a total capacity of {card} of which {free} is free. "
    "Of the allocated memory {held} is allocated by PyTorch, and 0.70 GiB is reserved by PyTorch but unallocated.\n"
)
FAILED = MESSAGE.format(asked="15.66 GiB", card="79.15 GiB", free="11.10 GiB", held="66.50 GiB")
WORKED = "***** Running training *****\n{'loss': 1.2, 'grad_norm': 0.5, 'epoch': 0.1}\n"


def jobs(folder: Path, good: dict[str, int], bad: dict[str, int]) -> tuple[Path, Path]:
    """Two folders, each with the log of a job and its config."""
    for name, settings, log in (("good", good, WORKED), ("bad", bad, FAILED)):
        (folder / name).mkdir()
        (folder / name / "train.yaml").write_text(CONFIG.format(**settings), encoding="utf-8")
        (folder / name / "train.log").write_text(log, encoding="utf-8")
    return folder / "good", folder / "bad"


def compared(folder: Path, good: dict[str, int], bad: dict[str, int]) -> two_jobs.Comparison:
    return two_jobs.compare(*(pipeline.explain(job) for job in jobs(folder, good, bad)))


def test_the_setting_that_takes_memory_comes_first(tmp_path: Path) -> None:
    found = compared(tmp_path, {"length": 2048, "rows": 4}, {"length": 8192, "rows": 4})
    assert [difference.name for difference in found.differences] == ["train.max_seq_len"]
    assert found.differences[0].saves is not None
    assert "8,192" in found.lines[0].en
    assert "2,048" in found.lines[0].zh


def test_a_difference_is_said_once(tmp_path: Path) -> None:
    """With its place and what it takes off, in the sentence that says that it explains the failure."""
    lines = compared(tmp_path, {"length": 2048, "rows": 4}, {"length": 8192, "rows": 4}).lines
    for texts, what in (([line.en for line in lines], "sequence length limit"), ([line.zh for line in lines], "序列长度上限")):
        assert sum(what in text for text in texts) == 1 and "train.yaml" in "".join(texts)


def test_what_both_have_is_no_difference(tmp_path: Path) -> None:
    same = {"length": 2048, "rows": 4}
    assert compared(tmp_path, same, same).differences == ()


def test_a_smaller_card_explains_what_would_have_fitted_on_the_larger() -> None:
    failed = MESSAGE.format(asked="2.00 GiB", card="23.68 GiB", free="0.40 GiB", held="22.10 GiB")
    logs = (WORKED + "GPU 0: NVIDIA A100-SXM4-80GB\n", "GPU 0: NVIDIA GeForce RTX 3090\n" + failed)
    found = two_jobs.compare(*(pipeline.explain(log) for log in logs))
    roles = {difference.name: difference.role for difference in found.differences}
    assert roles.get("hardware.capacity") == "explains"
    assert found.differences[0].name == "hardware.capacity"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_command_prints_text_and_json(tmp_path: Path, lang: str) -> None:
    good, bad = jobs(tmp_path, {"length": 2048, "rows": 1}, {"length": 2048, "rows": 4})
    text = forked(ENTRY, "compare", str(good), str(bad), "--lang", lang, cwd=tmp_path)
    assert text.returncode == 0
    assert "train.yaml" in text.stdout
    rows = json.loads(forked(ENTRY, "compare", str(good), str(bad), "--lang", lang, "--format", "json", cwd=tmp_path).stdout)["differences"]
    assert [row["name"] for row in rows] == ["train.micro_batch_size"]
