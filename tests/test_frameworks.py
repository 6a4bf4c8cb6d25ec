"""The tables of rules/frameworks: every line can be read, means something, and can be told from its neighbours."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnose import rule_files
from diagnose.adapters.formats.config_value import Leaf
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.schema.value_meaning import meaning
from diagnose.adapters.translate.translation import typed_default
from diagnose.facts import declared

NAMES = sorted(rule_files.table("frameworks"))
FIELDS = {"key", "version", "since", "until", "values", "default", "if", "needs", "takes", "part", "times", "over", "auto", "within"}
FIELDS |= {"always", "also", "bare", "cli", "code", "read_only", "own", "struct", "where", "entry", "wins", "fills", "source"}
RESERVED = {
    "extends",
    "version",
    "trainer",
    "serves",
    "rank",
    "unknown",
    "file_key",
    "positional",
    "config_keys",
    "interpolates",
    "resolvers",
    "shipped",
    "dated",
    "read_by",
    "extended_by",
    "without",
    "detect",
    "entries",
    "ignored",
    "integrations",
    "blocks",
    "variables",
    "stock",
    "stock_folder",
    "shape",
    "environment",
    "bare_switches",
}
#: Conditions that are no facts: what the adapters know about how the job was started.
CONDITIONS = {"form", "launcher", "model.family", "model.vision", "run.distributed", "torch.expandable"}


@pytest.mark.parametrize("name", NAMES)
def test_every_line_has_known_fields_and_a_declared_knob(name: str) -> None:
    raw = rule_files.table("frameworks")[name]
    for knob, entries in raw.items():
        if "." not in knob:
            assert knob in RESERVED, knob
            continue
        entry = declared(knob)
        assert entry is not None and entry.is_knob, knob
        assert all(set(line) <= FIELDS for line in entries), knob


@pytest.mark.parametrize("name", NAMES)
def test_every_word_of_a_table_is_one_that_the_knob_has(name: str) -> None:
    """A value that maps to nothing real would be a fact that no rule can meet."""
    for key in framework_tables.table(name).keys:
        for word in {*(key.values or {}).values(), *([key.default] if key.default is not None else [])} - {"nothing"}:
            if word == key.default:
                typed_default(key)
            else:
                meaning(key, Leaf(key.key, next(n for n, w in (key.values or {}).items() if w == word), "", 0, 0, 1, 1))


@pytest.mark.parametrize("name", NAMES)
def test_every_condition_and_version_is_a_fact(name: str) -> None:
    for key in framework_tables.table(name).keys:
        assert declared(key.version) is not None, key
        for condition in key.given or {}:
            assert condition in CONDITIONS or declared(condition) is not None, (key, condition)


@pytest.mark.parametrize("name", NAMES)
def test_every_companion_of_a_key_is_a_key_of_the_framework(name: str) -> None:
    tab = framework_tables.table(name)
    known = tab.known | {key.key for key in tab.keys}
    for key in tab.keys:
        for need in key.needs:
            assert need.key in known or need.key.partition(".")[0] in known, (key.key, need.key)


@pytest.mark.parametrize("name", NAMES)
def test_a_stock_file_sets_knobs_of_deepspeed(name: str) -> None:
    deepspeed = set(framework_tables.table("deepspeed").knobs)
    assert all(set(held) <= deepspeed for held in framework_tables.table(name).stock.values())


def test_no_two_frameworks_are_known_by_the_same_set_of_keys() -> None:
    seen: dict[frozenset[str], str] = {}
    for name in framework_tables.names():
        for keys in framework_tables.table(name).detect.get("keys", ()):
            assert seen.setdefault(frozenset(keys), name) == name


def test_the_particular_framework_is_asked_before_the_general_one() -> None:
    order = framework_tables.names()
    for name in order:
        base = rule_files.table("frameworks")[name].get("extends")
        assert base is None or order.index(name) < order.index(base)


@pytest.mark.parametrize(
    ("present", "low", "high"),
    [
        (["ds.zero_stage"], "0.10.2", None),
        (["generate_max_len"], None, "0.9.7"),
        (["vllm_enable_sleep", "flash_attn"], "0.5.8", "0.8.9.post1"),
        (["nothing_known"], None, None),
    ],
)
def test_spellings_tell_the_release(present: list[str], low: str | None, high: str | None) -> None:
    """A key that came late or went early bounds the release where no log names it."""
    span = framework_tables.span(framework_tables.table("openrlhf"), None, present)
    assert (str(span.low) if span.low else None, str(span.high) if span.high else None) == (low, high)


def test_the_worked_example_of_the_guide_is_the_table() -> None:
    """CONTRIBUTING shows how torchtune was added: every line of it stands in the table."""
    guide = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text("utf-8").partition("## A framework")[2].partition("\n## ")[0]
    table = {line.strip() for line in (Path(__file__).parents[1] / "rules/frameworks/torchtune.yaml").read_text("utf-8").splitlines()}
    shown = [line.strip() for block in guide.split("```yaml")[1:-1] for line in block.partition("```")[0].splitlines() if line.strip()]
    assert len(shown) > 15
    assert [line for line in shown if line not in table] == []
