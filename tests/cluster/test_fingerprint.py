"""A fingerprint is the same for the same mistake: in every run of it, on every machine, in every release."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cases import CORPUS, diagnosed, run
from cases import folders as corpus_folders
from collected import for_each
from fingerprints import golden
from hypothesis import given
from hypothesis import strategies as st
from samples import SAMPLES

from diagnose import rule_files
from diagnose.cluster.store import group_fingerprint
from diagnose.cluster.store.group_fingerprint import Parts, alike, near, place, user_frame, written_by_user
from diagnose.facts import Witness, declared
from diagnose.parse.model.event import Frame
from diagnose.units import Size


def test_every_fingerprint_that_was_committed_is_of_a_case() -> None:
    """That each is the case's own, tests/every_answer.py holds against the answer."""
    assert golden().keys() <= set(corpus_folders())


def test_a_fingerprint_follows_from_its_parts_alone() -> None:
    """The hash of this version is pinned: the same parts have the same name in every release, whatever the corpus is diagnosed as."""
    assert group_fingerprint.version() == 3
    parts = Parts("torch_cuda", "loss", "train.py:step", "ledger.t_logits_fp32", "logits", "", "train.loss_kernel=none")
    assert group_fingerprint.name(parts) == "3:1e11d5ecbd8b7bb1"
    for held in golden().values():
        assert group_fingerprint.name(Parts(**{key: held[key] for key in Parts._fields})) == held["fingerprint"]


def test_parts_survive_the_database() -> None:
    for held in golden().values():
        parts = Parts(**{key: held[key] for key in Parts._fields})
        assert group_fingerprint.read(parts.as_json()) == parts
    assert group_fingerprint.read("{}") == Parts("", "", "", "", "", "", "")


# -- what is no part of it

folders = st.lists(st.sampled_from(["home", "alice", "job_17", "2024-05-01", "scratch", "run.3", "проект", "user data"]), max_size=5)
numbers = st.integers(0, 10**6)


@given(folders, numbers, numbers, numbers, numbers, st.integers(1, 2**40), st.booleans())
def test_lines_paths_processes_ranks_steps_and_sizes_are_no_part(
    path: list[str], line: int, pid: int, rank: int, step: int, size: int, windows: bool
) -> None:
    """The same failure in another run: other folders, another place in a file that was edited above it, other figures."""
    base = SAMPLES["dpo_logits"]()
    root = replace(base.events[0], frames=(Frame("/srv/train.py", 7, "compute_loss"), *base.events[0].frames))
    at = ("C:\\" + "\\".join([*path, "train.py"])) if windows else "/" + "/".join([*path, "train.py"])
    moved = replace(
        root,
        frames=(Frame(at, line, "compute_loss"), *base.events[0].frames),
        pid=pid,
        rank=rank,
        gpu=rank % 8,
        step=step,
        host=f"gpu{rank}",
        requested=Size.exactly(size),
        free=Size.exactly(size // 2),
        evidence=(Witness(f"{pid}.log", line, 1, f"[rank{rank}] {size}"),),
    )
    one, other = (group_fingerprint.parts(replace(base, events=(event, *base.events[1:]))) for event in (root, moved))
    assert one is not None and one.frame == "train.py:compute_loss"
    assert one == other


@pytest.mark.parametrize("case", ["llamafactory-6800", "trl-3172", "adam-moments-at-the-first-step", "the-loss-of-a-home-made-model"])
def test_a_log_of_another_run_of_the_same_job_has_the_same_fingerprint(case: str, tmp_path: Path) -> None:
    """The whole way from the text: other lines, other folders, another process, other ranks."""
    text = (CORPUS / case / "error.log").read_text(encoding="utf-8")
    other = re.sub(r'(?<=", line )(\d+)', lambda found: str(int(found[1]) + 5), text)
    other = re.sub(r'File "/[^"]*?(/lib/python[^"]*)"', r'File "/mnt/env_77\1"', other)
    other = re.sub(r'File "/(?![^"]*(?:packages|/src/))[^"]*/([\w-]+\.py)"', r'File "/mnt/elsewhere/run_20260101/\1"', other)
    other = re.sub(r"\bprocess (\d{3,})\b", lambda found: f"process {int(found[1]) + 17}", other)
    assert other != text
    log = tmp_path / "error.log"
    log.write_text("another first line\n" * 40 + other, encoding="utf-8")
    assert group_fingerprint.fingerprint(run(case, logs=log)) == golden()[case]["fingerprint"]


def test_what_did_not_fail_of_memory_has_none() -> None:
    assert group_fingerprint.fingerprint(diagnosed("a-kernel-too-large-for-the-chip")) == ""


# -- the place in user code


@for_each(
    "file, mine",
    [
        ("/home/alice/train.py", True),
        ("train.py", True),
        ("C:\\work\\train.py", True),
        ("/home/me/trl/train.py", True),
        ("/root/.cache/huggingface/modules/transformers_modules/x/modeling_x.py", True),
        ("<ipython-input-5-0123456789ab>", True),
        ("/tmp/ipykernel_123/456.py", True),
        ("/opt/venv/lib/python3.11/site-packages/somebody/model.py", False),
        ("/usr/lib/python3/dist-packages/torch/nn/functional.py", False),
        ("C:\\venv\\Lib\\site-packages\\torch\\x.py", False),
        ("/usr/lib/python3.11/threading.py", False),
        ("C:\\Python311\\Lib\\threading.py", False),
        ("/home/me/python3/train.py", True),
        ("/opt/conda/bin/torchrun", False),
        ("cupy/cuda/memory.pyx", False),
        ("torch/nn/functional.py", False),
        ("/data/LLaMA-Factory/src/llamafactory/launcher.py", False),
        ("/openrlhf/openrlhf/cli/train_ppo_ray.py", False),
        ("<frozen importlib._bootstrap>", False),
        ("", False),
    ],
)
def test_whose_code_a_file_is(file: str, mine: bool) -> None:
    assert written_by_user(file) is mine


def test_the_innermost_frame_in_user_code_is_the_place() -> None:
    """Comprehensions and lambdas stand for the function round them."""
    frames = (
        Frame("/srv/train.py", 3, "<module>"),
        Frame("/srv/model.py", 90, "forward"),
        Frame("/srv/model.py", 91, "<listcomp>"),
        Frame("/x/site-packages/torch/nn/functional.py", 1, "softmax"),
    )
    assert place(user_frame(frames)) == "model.py:forward"
    assert place(user_frame(frames[3:])) == ""


@for_each(
    "file, shown",
    [
        ("/a/train_20260101.py", "train_#.py:f"),
        ("/tmp/deadbeef01.py", "#.py:f"),
        ("/a/stage_1_and_2.py", "stage_1_and_2.py:f"),
        ("/a/modeling_qwen2.py", "modeling_qwen2.py:f"),
        ("/tmp/ipykernel_123/456.py", "notebook:f"),
        ("In [7]", "notebook:f"),
        ("/a/7.py", "#.py:f"),
        ("/a/noext", "noext:f"),
    ],
)
def test_numbers_of_a_run_are_left_out_of_a_name(file: str, shown: str) -> None:
    assert place(Frame(file, 1, "f")) == shown


# -- near groups

parts = st.builds(Parts, *(st.sampled_from(["", "a", "b"]) for _ in Parts._fields))


@given(parts, parts)
def test_what_is_alike_is_said_in_full(one: Parts, other: Parts) -> None:
    """Each part that either knows is named once; nearness is mutual, and only between groups of one cause."""
    found = alike(one, other)
    told = {key for key in Parts._fields if getattr(one, key) or getattr(other, key)}
    assert set(found.same) | set(found.other) == told and not set(found.same) & set(found.other)
    assert (near(one, other) is None) == (near(other, one) is None)
    if near(one, other) is not None:
        assert one.cause == other.cause != "" and found.similarity >= group_fingerprint.NEAR


def test_one_mistake_at_two_places_of_the_code_is_near() -> None:
    one = Parts("torch_cuda", "loss", "dpo.py:main", "ledger.t_log_softmax", "logits", "", "train.loss_kernel=none")
    found = near(one, one._replace(frame="train.py:main"))
    assert found is not None and found.other == ("frame",)
    assert near(one, one._replace(phase="backward")) is None
    assert near(one, one._replace(cause="activations", knobs="")) is None


# -- the table


def test_the_table_names_knobs_that_exist_and_are_no_sizes() -> None:
    """A size or a count of rows would part jobs that made the same mistake; a count that names a mode does not."""
    table: dict[str, Any] = rule_files.table("fingerprint")
    causes = set(rule_files.table("vocabulary")["cause"])
    assert set(table["knobs"]) <= causes and set(table["rules"]) <= causes
    for name in {knob for knobs in table["knobs"].values() for knob in knobs}:
        entry = declared(name)
        assert entry is not None and (entry.kind in ("word", "switch", "text") or name == "zero.stage"), name
    assert table["libraries"] == sorted(table["libraries"])
