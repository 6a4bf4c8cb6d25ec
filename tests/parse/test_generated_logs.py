"""Logs of every kind from benchmarks/logs.py: each failure, rank, figure and root, and what follows, exactly as the generator wrote it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import job
import logs
import pytest
import scenes

from diagnose.parse import log_reader
from diagnose.parse.model.event import Event
from diagnose.parse.model.reading import Reading
from diagnose.scan import log_scan
from diagnose.scan.source import Source

SEEDS = (7, 8, 9)
SCALE = 0.0005


@pytest.fixture(scope="module", params=SEEDS)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp(f"suite-{request.param}")
    assert len(list(logs.suite(where, SCALE, request.param))) == 4 + 20 + len(logs.HOSTILE) + len(scenes.SCENES)
    return where


def read(path: Path) -> Reading:
    return log_reader.read_logs([log_scan.scan(Source.file(path))])


def truth_of(path: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(path.with_name(path.name + ".truth.json").read_text())
    return told


def differences(path: Path) -> Iterator[str]:
    """Where the reading of a log is not what its truth says."""
    told, raw, reading = truth_of(path), path.read_bytes(), read(path)
    failures = told["failures"]
    lines = [raw.count(b"\n", 0, failure["offset"]) + 1 for failure in failures]
    causes = [event for event in reading.events if event.status != "none"]
    found = {one.evidence[0].line: (one, event) for event in causes for one in (event, *event.members)}
    if len(found) != len(failures):
        yield f"{len(failures)} failures, read {len(found)}: {sorted(set(found) ^ set(lines))}"
    for failure, line in zip(failures, lines, strict=True):
        one, event = found.get(line, (None, None))
        if one is None or event is None:
            yield f"line {line}: nothing read"
            continue
        yield from (f"line {line}: {text}" for text in _differs(failure, one))
        like = failure["like"]
        if event.evidence[0].line != (line if like is None else lines[like]):
            yield f"line {line}: folded into that of line {event.evidence[0].line}"
        if like is None and event.count != sum(
            other["count"] for i, other in enumerate(failures) if i == failures.index(failure) or other["like"] == failures.index(failure)
        ):
            yield f"line {line}: count {event.count}"
    root = None if reading.root is None else reading.events[reading.root].evidence[0].line
    if root != (None if told["root"] is None else lines[told["root"]]):
        yield f"the root is read at line {root}"
    follows = {event.exception: (event.count, event.consequence_of) for event in reading.events if event.status == "none"}
    wanted = {words: tuple(says) for words, says in told["follows"].items()}
    if wanted and follows != wanted:
        yield f"consequences {follows}, not {wanted}"


def _differs(failure: dict[str, Any], one: Event) -> Iterator[str]:
    if one.family != failure["family"]:
        yield f"family {one.family}, not {failure['family']}"
    for name in ("rank", "attempt", "fatal"):
        if getattr(one, name) != failure[name]:
            yield f"{name} {getattr(one, name)}, not {failure[name]}"
    for name in ("gpu", "pid"):
        if failure[name] is not None and getattr(one, name) != failure[name]:
            yield f"{name} {getattr(one, name)}, not {failure[name]}"
    functions = [job.FRAMES[number % len(job.FRAMES)][1] for number in range(failure["frames"])]
    if [frame.function for frame in one.frames] != functions:
        yield f"frames {[frame.function for frame in one.frames]}"
    for name, text in failure["figures"].items():
        if str(getattr(one, name)) != text:
            yield f"{name} {getattr(one, name)}, not {text}"


def test_the_truth_is_reproduced(folder: Path) -> None:
    """Every failure, rank, figure and root of every kind of log, and nothing else."""
    wrong = [f"{path.relative_to(folder)}: {text}" for path in logs.truths(folder) for text in differences(path)]
    assert not wrong, "\n".join(wrong[:40])


def test_the_generator_writes_what_it_says(folder: Path) -> None:
    """The truth is checked against the bytes: a message stands at each offset, with its figures; healthy logs have none."""
    seen = set()
    for path in logs.truths(folder):
        raw = path.read_bytes()
        for failure in truth_of(path)["failures"]:
            line = raw[failure["offset"] :].partition(b"\n")[0].decode()
            assert all(text in line for text in failure["figures"].values()), (path, line)
            seen.add(failure["family"])
    assert seen >= {"torch_cuda", "cublas", "host_oom_killer", "vllm_kv", "jax"}
    assert truth_of(folder / "none.log")["failures"] == []


@pytest.mark.parametrize("kind", scenes.SCENES)
def test_a_seed_gives_the_same_log(kind: str, tmp_path: Path) -> None:
    """A failing seed can be looked at again."""
    for name in ("a.log", "b.log"):
        scenes.scene(tmp_path / name, kind, 3)
    assert (tmp_path / "a.log").read_bytes() == (tmp_path / "b.log").read_bytes()
