"""The tables of rules/frameworks: every line can be read, means something, and can be told from its neighbours."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from checkout import ROOT
from collected import for_each

import diagnose
from diagnose import rule_files
from diagnose.adapters.formats.config_value import Leaf
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.schema.value_meaning import meaning
from diagnose.adapters.translate.file_conflicts import integration
from diagnose.adapters.translate.translation import typed_default
from diagnose.facts import declared

NAMES = sorted(rule_files.table("frameworks"))
FIELDS = {"key", "version", "since", "until", "values", "default", "if", "needs", "takes", "part", "times", "over", "auto", "within"}
FIELDS |= {"always", "also", "bare", "cli", "code", "read_only", "own", "struct", "where", "entry", "wins", "fills", "source"}
RESERVED = {
    "stock_since",
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
    "constraints",
    "borrowed",
    "foreign",
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
    "abbreviates",
    "bare_switches",
    "json_blocks",
    "traits",
    "role",
    "launches",
    "aliases",
    "dumps_whole",
    "in_parts",
    "one_process",
    "spawns",
    "overrides",
}
PACKAGE = Path(diagnose.__file__).parent
#: The readers of the tables, which may know words of theirs.
READERS = ("table_types.py", "framework_tables.py", "traits.py")
#: Names of frameworks that are names of something else as well, which code has to know.
OTHERWISE = {
    "shell": "the form of a text",
    "torchrun": "a launcher, and the program that it is",
    "deepspeed": "a launcher, and the option that names the engine's file",
    "accelerate": "a launcher, and the program that it is",
    "vllm": "a word of rollout.engine",
    "unsloth": "a word of train.loss_kernel and of model.attention",
    "transformers": "a module of Python, and the library whose release decides what a loss holds",
    "pytorch": "what torch calls itself in its reports",
}
#: What says which framework it is; its value is never compared with a name.
ASKED = re.compile(r"framework|\b(tab|table)\.name\b|\bkind\b|\bhint\b|\btrainer\b")
#: Conditions that are no facts: what the adapters know about how the job was started.
CONDITIONS = {"form", "launcher", "model.family", "model.vision", "run.distributed", "torch.expandable"}


@for_each("name", NAMES)
def test_every_line_has_known_fields_and_a_declared_knob(name: str) -> None:
    raw = rule_files.table("frameworks")[name]
    for knob, entries in raw.items():
        if "." not in knob:
            assert knob in RESERVED, knob
            continue
        entry = declared(knob)
        assert entry is not None and entry.is_knob, knob
        assert all(set(line) <= FIELDS for line in entries), knob


@for_each("name", NAMES)
def test_every_word_of_a_table_is_one_that_the_knob_has(name: str) -> None:
    """A value that maps to nothing real would be a fact that no rule can meet."""
    for key in framework_tables.table(name).keys:
        for word in {*(key.values or {}).values(), *([key.default] if key.default is not None else [])} - {"nothing"}:
            if word == "same":
                assert "*" in (key.values or {}), key.key  # what is written
            elif word == key.default:
                typed_default(key)
            else:
                meaning(key, Leaf(key.key, next(n for n, w in (key.values or {}).items() if w == word), "", 0, 0, 1, 1))


@for_each("name", NAMES)
def test_every_condition_and_version_is_a_fact(name: str) -> None:
    for key in framework_tables.table(name).keys:
        assert declared(key.version) is not None, key
        for condition in key.given or {}:
            assert condition in CONDITIONS or declared(condition) is not None, (key, condition)


@for_each("name", NAMES)
def test_every_companion_of_a_key_is_a_key_of_the_framework(name: str) -> None:
    tab = framework_tables.table(name)
    known = tab.known | {key.key for key in tab.keys}
    for key in tab.keys:
        for need in key.needs:
            assert need.key in known or need.key.partition(".")[0] in known, (key.key, need.key)


@for_each("name", NAMES)
def test_a_stock_file_sets_knobs_of_deepspeed(name: str) -> None:
    deepspeed = set(framework_tables.table("deepspeed").knobs)
    assert all(set(held) <= deepspeed for held in framework_tables.table(name).stock.values())


@pytest.mark.parametrize(("framework", "as_in"), [("flagembedding", "transformers"), ("unsloth", "transformers"), ("slime", "megatron")])
def test_a_framework_drives_an_engine_as_the_one_that_it_extends(framework: str, as_in: str) -> None:
    deepspeed = framework_tables.table("deepspeed")
    assert integration(deepspeed, framework) is integration(deepspeed, as_in)
    assert integration(deepspeed, "lightning") is not integration(deepspeed, "pytorch")  # its own comes first


def _literals(node: ast.AST) -> set[str]:
    return {str(each.value) for each in ast.walk(node) if isinstance(each, ast.Constant) and each.value in NAMES}


def _asked_by_name(tree: ast.AST) -> Iterator[str]:
    """Comparisons of what says the framework with a name, and tables asked for by name."""
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Compare, ast.Call)) or not (literals := _literals(node)):
            continue
        sides = (node.left, *node.comparators) if isinstance(node, ast.Compare) else ()
        asked = any(ASKED.search(ast.unparse(side)) for side in sides)
        fetched = isinstance(node, ast.Call) and ast.unparse(node.func) in ("framework_tables.table", "traits_of")
        if literals - ({"shell"} if asked else set()) and (asked or fetched):
            yield ast.unparse(node)


def test_no_code_asks_for_a_framework_by_name() -> None:
    """What a framework does otherwise is an attribute of its table or a trait, which those that extend it inherit."""
    quoted = re.compile(rf"[\"'](?:{'|'.join(NAMES)})[\"']")
    texts = {file: file.read_text(encoding="utf-8") for file in PACKAGE.rglob("*.py") if file.name not in READERS}
    trees = {file: ast.parse(text) for file, text in texts.items() if quoted.search(text)}
    asked = {str(file): list(_asked_by_name(tree)) for file, tree in trees.items()}
    assert not {file: found for file, found in asked.items() if found}
    # diagnose/live names modules that the job itself has imported
    named = {str(file): _literals(tree) - OTHERWISE.keys() for file, tree in trees.items() if file.parent.name != "live"}
    assert not {file: found for file, found in named.items() if found}
    assert set().union(*map(_literals, trees.values())) >= OTHERWISE.keys(), "a name is exempt that nothing uses"


def test_every_role_is_one_that_code_asks_for() -> None:
    assert {raw["role"] for raw in rule_files.table("frameworks").values() if "role" in raw} == set(get_args(framework_tables.Role))


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


@for_each(
    "present, low, high",
    [
        (["ds.zero_stage"], "0.10.2", None),
        (["generate_max_len"], None, "0.9.7"),
        (["vllm_enable_sleep", "flash_attn"], "0.5.8", "0.8.9.post1"),
        (["nothing_known"], None, None),
    ],
)
def test_spellings_tell_the_release(present: list[str], low: str | None, high: str | None) -> None:
    """A key that came late or went early bounds the release where no log names it."""
    span = framework_tables.possible_releases(framework_tables.table("openrlhf"), None, present)
    assert (str(span.low) if span.low else None, str(span.high) if span.high else None) == (low, high)


def test_the_worked_example_of_the_guide_is_the_table() -> None:
    """CONTRIBUTING shows how torchtune was added: every line of it stands in the table."""
    guide = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("## A framework")[2].partition("\n## ")[0]
    table = {line.strip() for line in (ROOT / "rules/frameworks/torchtune.yaml").read_text("utf-8").splitlines()}
    shown = [line.strip() for block in guide.split("```yaml")[1:-1] for line in block.partition("```")[0].splitlines() if line.strip()]
    assert len(shown) > 15
    assert [line for line in shown if line not in table] == []


def test_a_command_is_recognised_without_the_tables_of_other_frameworks() -> None:
    """All tables together take as long to build as the rest of a diagnosis: an index tells which framework a command starts."""
    code = (
        "from diagnose.adapters.schema import framework_tables\n"
        "from diagnose import explain\n"
        "log = 'torchrun --nproc_per_node 8 train.py --per_device_train_batch_size 4 --output_dir out\\n'"
        " 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.64 GiB. GPU 0 has a total capacity of 79.25 GiB of which'"
        " ' 1.41 GiB is free.\\n'\n"
        "assert [fact.value for fact in explain(log).facts if fact.name == 'train.framework'] == ['transformers']\n"
        "print(framework_tables.table.cache_info().currsize)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) <= 6
