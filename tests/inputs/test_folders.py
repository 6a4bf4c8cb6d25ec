"""Folders and archives given as one job: what each launcher leaves behind, whose log is whose, and nothing from outside."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from archives import LOG, MESSAGE, tar, told, zipped
from collected import for_each
from hypothesis import given
from hypothesis import strategies as st

from diagnose import check
from diagnose.adapters.formats.settings import ConfigSource
from diagnose.errors import UserError
from diagnose.inputs import job_reader, wandb_files
from diagnose.pipeline import explain
from diagnose.scan import job_folder
from diagnose.scan.source import Label, Source

TRAIN = "stage: sft\nfinetuning_type: full\ncutoff_len: 4096\nper_device_train_batch_size: 3\n"
QUIET = b"all is well\n"


def lay(top: Path, files: Mapping[str, bytes | str]) -> Path:
    for name, data in files.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return top


def names(report: dict[str, Any], top: Path | str) -> list[str]:
    return [one["name"].removeprefix(f"{top}/") for one in report["inputs"]]


def facts(report: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for fact in report["facts"]:
        found.setdefault(fact["name"], fact["value"])
    return found


# -- what a path says


@for_each(
    "place, kind",
    [
        ("train.log", "log"),
        ("train.log.1", "log"),
        ("train.log-20250611", "log"),
        ("train.log.2.gz", "log"),
        ("a/b/worker.ERR".lower(), "log"),
        ("job.o48213", "log"),
        ("rank0/stdout", "log"),
        ("nohup.out", "log"),
        ("requirements.txt", "none"),
        ("model.safetensors.index.json", "none"),
        ("checkpoint-100/trainer_state.json", "none"),
        ("tokenizer_config.json", "none"),
        (".cache/x.log", "none"),
        ("wandb/run-20250508_141902-q7x2m4tz/logs/debug-internal.log", "none"),
        ("run/files/wandb-metadata.json", "metadata"),
        ("run/files/config.yaml", "config"),
        ("ds_z3.json", "config"),
        ("run.sh", "config"),
        ("attempt_0/0/error.json", "none"),
        ("logs/dashboard.log", "none"),
        ("logs/raylet.out", "log"),
        ("model.pt", "none"),
        ("old.tar.gz", "archive"),
        ("old.zip", "archive"),
    ],
)
def test_what_a_file_is_stands_in_its_path(place: str, kind: str) -> None:
    assert job_folder.kind_of(place) == kind


@for_each(
    "place, label",
    [
        ("none_x1/attempt_0/3/stderr.log", Label(local_rank=3, attempt=1)),
        ("attempt_2/0/stdout.log", Label(local_rank=0, attempt=3)),
        ("20250612091529_rank11.log", Label(rank=11)),
        ("rank-2/stderr.log.gz", Label(rank=2)),
        ("log_node1_rank9.txt", Label(rank=9, host="node1")),
        ("global_rank_4.log", Label(rank=4)),
        ("local_rank_4.log", Label(local_rank=4)),
        ("slurm-123_4.out", Label()),
        ("lora_rank8.log", Label()),
        ("frank3.log", Label()),
        ("rank8_alpha16/train.log", Label()),
        ("logs/worker-0123456789abcdef0123456789abcdef01234567-01000000-4711.err", Label(pid=4711)),
        ("ns_pod-a-0_0b2d8f5e-6a41-4f0c-9d1e-2c7b8a9f0e11/trainer/2.log", Label(host="pod-a-0", attempt=3)),
        ("train.log", Label()),
    ],
)
def test_who_wrote_a_file_stands_in_its_path(place: str, label: Label) -> None:
    """A task of an array is no rank, nor is the rank of an adapter."""
    assert job_folder.label_of(place) == label


@given(st.text(max_size=300))
def test_any_path_is_looked_at_without_harm(place: str) -> None:
    """Names come from strangers' archives."""
    job_folder.kind_of(place), job_folder.label_of(place), job_folder.natural_key(place)


def test_local_ranks_are_ranks_on_one_node_only() -> None:
    """Two nodes have a local rank 0 each; what the lines themselves say counts more."""
    one, two = "run/attempt_0/0/stderr.log", "run/attempt_0/1/stderr.log"
    label = {one: Label(local_rank=0, attempt=1), two: Label(local_rank=1, attempt=1)}
    assert [each.rank for each in job_folder.assign_ranks({place: (label[place], None) for place in label}).values()] == [0, 1]
    assert [each.rank for each in job_folder.assign_ranks({one: (label[one], 8), two: (label[two], None)}).values()] == [8, 9]
    assert [each.rank for each in job_folder.assign_ranks({one: (label[one], 8), two: (label[two], 3)}).values()] == [8, 3]
    nodes = {f"node{node}/{place}": (label[place], None) for node in (0, 1) for place in label}
    assert [each.rank for each in job_folder.assign_ranks(nodes).values()] == [None] * 4


# -- one job


def test_a_folder_is_one_job_with_its_configs(tmp_path: Path) -> None:
    """Logs at any depth, a config that adapters know, nothing else."""
    lay(
        tmp_path,
        {"logs/train.log": LOG, "conf/train.yaml": TRAIN, "conf/colours.yaml": "a: 1\nb: 2\n", "data.json": "[1, 2]", "README.md": "x"},
    )
    report = told(tmp_path)
    assert names(report, tmp_path) == ["logs/train.log", "conf/train.yaml"]
    assert facts(report)["train.micro_batch_size"] == 3 and not [one for one in report["notices"] if one["level"] == "error"]
    assert report["events"][0]["evidence"][0]["source"] == str(tmp_path / "logs/train.log")


@pytest.mark.parametrize("pack", [lambda files: tar(files, "w:gz"), zipped])
def test_an_archive_is_read_as_its_folder(pack: Any, tmp_path: Path) -> None:
    """The same files, the same answer."""
    files = {"j/logs/rank_1.log": LOG, "j/logs/rank_0.log": QUIET, "j/train.yaml": TRAIN.encode()}
    lay(tmp_path, dict(files))
    (tmp_path / "pack").write_bytes(pack(files))
    whole, packed = told(tmp_path / "j"), told(tmp_path / "pack")
    assert names(whole, tmp_path) == [name.removeprefix("pack/") for name in names(packed, tmp_path)]
    assert packed["events"][0]["rank"] == whole["events"][0]["rank"] == 1
    assert facts(packed)["train.micro_batch_size"] == 3


def test_a_given_config_wins_over_the_one_in_the_folder(tmp_path: Path) -> None:
    """It is said that the other was left out."""
    lay(tmp_path, {"run/train.log": LOG, "run/train.yaml": TRAIN, "mine.yaml": TRAIN.replace("3", "5")})
    report = told(tmp_path / "run", configs=[tmp_path / "mine.yaml"])
    assert facts(report)["train.micro_batch_size"] == 5
    assert [one["witness"]["source"] for one in report["notices"] if one["code"] == "config_not_used"] == [str(tmp_path / "run/train.yaml")]


def test_of_two_of_a_kind_the_named_one_is_used(tmp_path: Path) -> None:
    """Frameworks come with a DeepSpeed file for each stage."""
    stages = {f"ds_z{stage}.json": json.dumps({"zero_optimization": {"stage": stage}}) for stage in (2, 3)}
    lay(tmp_path, {"train.log": LOG, "train.yaml": TRAIN + "deepspeed: ds_z3.json\n", **stages})
    assert facts(told(tmp_path))["zero.stage"] == 3


def test_more_configs_than_one_job_has_are_not_guessed_at(tmp_path: Path) -> None:
    """A sweep's folder: none of them is known to be the one."""
    lay(tmp_path, {"train.log": LOG, **{f"run{number}.yaml": TRAIN for number in range(20)}})
    report = told(tmp_path)
    assert names(report, tmp_path) == ["train.log"] and [one["code"] for one in report["notices"] if one["code"] == "many_configs"]


def test_the_rank_of_a_file_belongs_to_its_lines(tmp_path: Path) -> None:
    """Two ranks fail alike: one event with both, each line where it stands."""
    both = {f"rank_{rank}.log": MESSAGE.replace("GPU 0", f"GPU {rank}").encode() for rank in (10, 2)}
    lay(tmp_path, {**both, "rank_0.log": QUIET})
    report = told(tmp_path)
    assert [(one["rank"], one["gpu"], one["ranks"], one["count"]) for one in report["events"]] == [(2, 2, [2, 10], 2)]
    assert names(report, tmp_path) == ["rank_0.log", "rank_2.log", "rank_10.log"]


def test_logs_given_one_by_one_have_the_rank_of_their_names(tmp_path: Path) -> None:
    """`explain rank_*.log` expanded by the shell."""
    lay(tmp_path, {"rank_0.log": QUIET, "rank_1.log": LOG})
    assert told(tmp_path / "rank_0.log", tmp_path / "rank_1.log")["events"][0]["rank"] == 1


def test_an_earlier_attempt_comes_first(tmp_path: Path) -> None:
    """Whatever the order that files are given in."""
    second = MESSAGE.replace("1.23 GiB", "1.11 GiB").encode()
    lay(tmp_path, {"run/attempt_1/0/stderr.log": second, "run/attempt_0/0/stderr.log": MESSAGE.encode()})
    files = sorted((tmp_path / "run").glob("*/*/stderr.log"), reverse=True)
    for report in (
        told(tmp_path),
        told(*files),
        told(Source.text(tar({f"run/{f.parent.parent.name}/0/stderr.log": f.read_bytes() for f in files}), "a")),
    ):
        assert [(one["attempt"], one["free"]["text"]) for one in report["events"]] == [(1, "1.23 GiB"), (2, "1.11 GiB")]
        assert report["verdict"]["event"] is not None


def test_the_rank_that_failed_first_by_the_clock_is_the_root(tmp_path: Path) -> None:
    """Not the one whose file comes first."""
    stamped = {
        rank: f"2025-06-12 09:15:3{9 - rank},118 ERROR {MESSAGE.replace('GPU 0', f'GPU {rank}').replace('1.23', f'1.2{rank}')}"
        for rank in (0, 1)
    }
    lay(tmp_path, {f"rank_{rank}.log": line.replace("2.00 GiB", f"{rank + 2}.00 GiB") for rank, line in stamped.items()})
    report = told(tmp_path)
    assert report["events"][report["verdict"]["event"]]["rank"] == 1


def test_only_the_latest_of_several_runs_is_read(tmp_path: Path) -> None:
    """wandb keeps them side by side; so does Ray."""
    runs = {f"wandb/run-2025050{day}_141902-abcdefg{day}/files/output.log": MESSAGE.replace("2.00", f"{day}.00") for day in (7, 8)}
    lay(tmp_path, runs)
    report = told(tmp_path)
    assert [one["requested"]["text"] for one in report["events"]] == ["8.00 GiB"]
    assert "older_runs" in [one["code"] for one in report["notices"]]


def test_very_many_quiet_logs_are_kept_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand ranks of which one speaks: memory goes to the one."""
    monkeypatch.setattr(job_reader, "KEPT", 100_000)
    lay(tmp_path, {f"rank_{rank}.log": b"step 1 loss 2.0\n" * 4000 for rank in range(10)} | {"rank_10.log": b"step\n" * 9000 + LOG})
    gathered = job_reader.read_job([tmp_path])
    assert sum(len(excerpt.raw) for one in gathered.logs[:-1] for excerpt in one.excerpts) < 100_000 + 64_000 + 10 * job_reader.QUIET
    assert told(tmp_path)["events"][0]["rank"] == 10


# -- what does not belong to it


def test_no_link_leads_out_of_the_folder(tmp_path: Path) -> None:
    """Nor round in circles; a link inside is the same file once."""
    lay(tmp_path, {"secret.log": LOG, "run/real.log": QUIET, "run/deep/x.log": QUIET})
    (tmp_path / "run/out.log").symlink_to(tmp_path / "secret.log")
    (tmp_path / "run/again.log").symlink_to(tmp_path / "run/real.log")
    (tmp_path / "run/round").symlink_to(tmp_path / "run")
    (tmp_path / "run/gone.log").symlink_to(tmp_path / "nowhere")
    found = names(told(tmp_path / "run"), tmp_path / "run")
    assert len(found) == 2 and "out.log" not in found and "deep/x.log" in found


def test_pipes_and_devices_in_a_folder_are_passed_over(tmp_path: Path) -> None:
    """They would wait for ever."""
    lay(tmp_path, {"a.log": LOG})
    os.mkfifo(tmp_path / "pipe.log")
    assert names(told(tmp_path), tmp_path) == ["a.log"]


def test_a_huge_folder_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home directory is no job."""
    monkeypatch.setattr(job_folder, "FILES", 10)
    lay(tmp_path, {f"{number}.log": QUIET for number in range(20)})
    with pytest.raises(UserError, match="more than 10 files") as caught:
        explain(tmp_path)
    assert "超过 10 个" in caught.value.to("zh")


def test_more_logs_than_a_job_has_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_folder, "LOGS", 3)
    lay(tmp_path, {f"rank_{rank}.log": LOG for rank in range(6)})
    report = told(tmp_path)
    assert len(report["inputs"]) == 3 and [one for one in report["notices"] if "more than 3 logs" in one["message"]]


@pytest.mark.parametrize("files", [{}, {"notes.md": "x"}, {"model.safetensors": b"\0" * 64}, {"train.yaml": TRAIN}])
def test_a_folder_without_a_log_is_one_sentence(tmp_path: Path, files: dict[str, Any]) -> None:
    lay(tmp_path, files)
    with pytest.raises(UserError, match="no log in it") as caught:
        explain(tmp_path)
    assert caught.value.to("en").startswith(str(tmp_path)) and "没有日志" in caught.value.to("zh")


def test_an_archive_in_a_folder_is_opened(tmp_path: Path) -> None:
    """One level: rotated logs are packed together."""
    lay(tmp_path, {"today.log": QUIET, "yesterday.tar.gz": tar({"rank_5.log": LOG}, "w:gz")})
    report = told(tmp_path)
    assert report["events"][0]["evidence"][0]["source"] == str(tmp_path / "yesterday.tar.gz/rank_5.log")
    assert report["events"][0]["rank"] == 5


# -- wandb


@for_each(
    "total, size",
    [('"270083534848"', 270083534848), ("503.5", int(503.5 * 2**30)), ("null", None), ('"many"', None), ("-3.0", None), ("1e300", None)],
)
def test_the_hosts_memory_is_bytes_or_gibibytes(total: str, size: int | None) -> None:
    """wandb changed the unit; what is neither is unknown."""
    _, found, _ = wandb_files.read_metadata("m.json", f'{{"memory": {{"total": {total}}}}}'.encode())
    assert [getattr(fact.value, "bytes", None) for fact in found] == ([size] if size else [])


KEYS = st.sampled_from(["gpu", "gpu_count", "memory", "args", "total", "program", "gpu_nvidia", "name", "x"])
VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=8) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=12,
)


@given(st.binary(max_size=300) | VALUES.map(lambda value: json.dumps(value).encode()))
def test_any_metadata_is_read_without_harm(data: bytes) -> None:
    """It is a stranger's file."""
    wandb_files.read_metadata("m.json", data)
    wandb_files.read_settings("c.yaml", data)


@for_each("ends", ["\n", "\r\n", "\r", "\x85", "\u2028"])
def test_a_setting_of_wandb_has_its_line_whatever_ends_lines(ends: str) -> None:
    _, settings = wandb_files.read_settings("c.yaml", f"wandb_version: 1{ends}lr:{ends}  value: 3{ends}".encode())
    assert settings is not None and [(line.line, line.text) for line in settings.lines] == [(3, "  value: 3")]


def test_settings_of_wandb_are_no_file_to_edit(tmp_path: Path) -> None:
    """The record of a run is read, never patched."""
    values = "".join(
        f"{key}:\n    desc: null\n    value: {value}\n"
        for key, value in {
            "per_device_train_batch_size": 6,
            "bf16": "true",
            "gradient_checkpointing": "false",
            "learning_rate": "1e-5",
        }.items()
    )
    lay(tmp_path, {"files/output.log": LOG, "files/config.yaml": f"wandb_version: 1\n\n_wandb:\n    desc: null\n    value: {{}}\n{values}"})
    diagnosis = explain(tmp_path)
    assert not diagnosis.documents
    found = next(fact for fact in diagnosis.facts if fact.name == "train.micro_batch_size")
    assert (found.value, found.origin, found.witness.line) == (6, "log", 8)


def test_settings_that_wandb_wrote_count_wherever_they_are_given() -> None:
    """Its config.yaml as the one config, under any name, with no log: every value stands below its key."""
    text = "wandb_version: 1\n_wandb:\n  value: {python_version: x}\nper_device_train_batch_size:\n  value: 4\noutput_dir:\n  value: o\n"
    told = check([ConfigSource("settings.yaml", text.encode())])
    facts = {fact.name: fact for fact in told.facts}
    assert (facts["train.framework"].value, facts["train.micro_batch_size"].value) == ("transformers", 4)
    assert (facts["train.micro_batch_size"].witness.source, facts["train.micro_batch_size"].witness.line) == ("settings.yaml", 5)
    assert [one.kind for one in told.inputs] == ["wandb"] and not told.documents
