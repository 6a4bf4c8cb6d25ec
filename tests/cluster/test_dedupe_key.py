"""The key of jobs that one diagnosis answers: equal where only names, places and processes differ, another one where a figure does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from collected import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from sweep import examples

from diagnose.adapters.formats.settings import ConfigSource
from diagnose.cluster.run.dedupe_key import diagnosis_key
from diagnose.decide import rule_loader as judge
from diagnose.decide.expression import parse
from diagnose.diagnosis import Diagnosis
from diagnose.facts import Fact, Witness
from diagnose.parse.model.reading import Reading
from diagnose.pipeline import diagnose, read
from diagnose.plan.remedies import remedy_rules as plan
from diagnose.scan.source import Source
from diagnose.units import Version

LOG = """\
+ torchrun --nproc_per_node 4 --master_port {port} /home/{user}/runs/{run}/train.py --model_name_or_path Qwen/Qwen2.5-7B \
--output_dir /data/{user}/out-{run} --per_device_train_batch_size {batch}
[2026-02-{day:02d} 10:21:07,{port}] [INFO] trainable params: 40,370,176 || all params: 7,655,986,688 || trainable%: 0.5273
[rank{rank}]: Traceback (most recent call last):
[rank{rank}]:   File "/home/{user}/runs/{run}/train.py", line {line}, in main
[rank{rank}]:     trainer.train()
[rank{rank}]:   File "/opt/venv/lib/python3.11/site-packages/torch/nn/functional.py", line 3479, in cross_entropy
[rank{rank}]:     return torch._C._nn.cross_entropy_loss(
[rank{rank}]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked} GiB. GPU {rank} has a total capacity of 79.15 GiB of \
which {free} GiB is free. Process {pid} has 78.07 GiB memory in use. Of the allocated memory 70.51 GiB is allocated by PyTorch, and \
5.51 GiB is reserved by PyTorch but unallocated.
"""
TIMEOUT = "[rank{rank}]:[E206 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective operation timeout: ran for 600{rank} ms\n"
USUAL = {"port": 29500, "user": "ann", "run": "20260205", "day": 5, "rank": 1, "line": 31, "asked": "3.12", "free": "1.08", "pid": 4242}
CONFIG = "model_name_or_path: Qwen/Qwen2.5-7B\noutput_dir: /data/{run}\nrun_name: try-{run}\ncutoff_len: {length}\n"


def key(before: str = "", after: str = "", config: str = "", name: str = "a/train.log", **said: object) -> str:
    text = before + LOG.format(**{**USUAL, "batch": 2, **said}) + after
    configs = [ConfigSource("somewhere/train.yaml", config.encode())] if config else []
    reading, sources, _ = read([Source.text(text, name)], configs)
    return diagnosis_key(reading, [one for one in sources if isinstance(one, ConfigSource)], "basis")


def test_the_same_mistake_on_another_day_is_one() -> None:
    """Another owner, run, port, process, place in the log, and another number of ranks that waited in vain."""
    usual = key(after=TIMEOUT.format(rank=0))
    other = key(
        "a line\n" * 40,
        "".join(TIMEOUT.format(rank=rank) for rank in (2, 3, 2, 0)),
        name="b/other.log",
        port=31744,
        user="bo",
        run="20260311-1",
        day=11,
        pid=77,
    )
    assert usual == other


@for_each("said", [{"asked": "3.13"}, {"free": "1.07"}, {"rank": 2}, {"line": 32}, {"batch": 4}])
def test_what_a_diagnosis_speaks_of_keeps_jobs_apart(said: dict[str, Any]) -> None:
    assert key() != key(**said)


def test_configs_are_compared_without_what_names_the_run() -> None:
    usual = key(config=CONFIG.format(run=1, length=4096))
    assert usual == key(config=CONFIG.format(run=2, length=4096))
    assert usual != key(config=CONFIG.format(run=1, length=2048))
    assert usual != key()


def test_a_name_that_another_value_is_made_of_is_compared() -> None:
    """With ${run_name} in it, a config's values may hang on what names the run."""
    made = "run_name: qwen-{size}\nmodel_name_or_path: ${{run_name}}\n"
    assert key(config=made.format(size=7)) != key(config=made.format(size=14))


@settings(max_examples=examples(40), deadline=None)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "port": st.integers(1024, 60000),
            "user": st.sampled_from(["ann", "bo"]),
            "day": st.integers(1, 28),
            "pid": st.integers(2, 99999),
            "rank": st.integers(0, 3),
            "line": st.integers(1, 60),
            "asked": st.sampled_from(["3.12", "3.13"]),
            "batch": st.sampled_from([1, 2]),
        },
    )
)
def test_equal_keys_have_equal_diagnoses(said: dict[str, Any]) -> None:
    """Whatever differs: jobs of one key get the same causes, figures and plan."""

    def diagnosed(**said: object) -> Diagnosis:
        reading, sources, _ = read([Source.text(LOG.format(**{**USUAL, "batch": 2, **said}), "train.log")])
        return diagnose(reading, sources)

    told: Callable[[Diagnosis], object] = lambda one: (  # noqa: E731 - a value of the test
        one.verdict.headline,
        [(cause.rule, cause.explanation, cause.accounts_for) for cause in one.judgement.causes],
        [(each.id, each.saves, each.fits, each.edits) for each in one.outcome.remedies],
        one.outcome.plan,
    )
    if key() == key(**said):
        assert told(diagnosed()) == told(diagnosed(**said))


def test_of_a_day_only_what_rules_ask_of_it_keeps_jobs_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two days on one side of every day that a rule names are one, the sides are two; a user's rule may name any day."""
    lines = (parse("log.day < 2024.8.15"),)
    monkeypatch.setattr("diagnose.cluster.run.dedupe_key._day_comparisons", lambda: lines)

    def at(day: str, own_rules: bool = False) -> str:
        fact = Fact("log.day", Version(day), "log", Witness("log"))
        return diagnosis_key(Reading((), facts=(fact,)), [], own_rules=own_rules)

    assert at("2024.8.1") == at("2024.8.14") != at("2024.8.15") == at("2025.1.1")
    assert at("2024.8.1", True) != at("2024.8.14", True)


def test_no_rule_asks_more_of_a_day_than_the_key_tells() -> None:
    """A line that holds the day against something else would see days that the key takes for one."""
    lines = [line for rule in judge.rules(trial=True)[0] for line in rule.lines]
    for remedy in plan.rules(trial=True):
        lines += [*remedy.where, *(line for unless in (*remedy.not_when, *remedy.caveats) for line in unless.all)]
    assert {line.names for line in lines if "log.day" in line.names} <= {("log.day",)}
