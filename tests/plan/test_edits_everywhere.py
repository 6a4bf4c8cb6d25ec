"""For every framework and every form it is written in: a knob is edited, the file is read again and means it, and nothing else moved."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import cache

import pytest
from collected import for_each
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from sweep import SWEEP

from diagnose import rule_files
from diagnose.adapters import config_reader
from diagnose.adapters.formats.settings import ConfigSource, Document, Form, Settings
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.schema.table_types import Key, Table
from diagnose.facts import FactBook, Value, declared, typed
from diagnose.parse.model.reading import Reading
from diagnose.plan.edits import knob_edits, value_spelling
from diagnose.plan.patch import patching

#: Tables of options that stand before a program, or of variables; their forms are tested by name elsewhere.
_NOT_FILES = {"torchrun", "deepspeed_launch", "accelerate_launch", "shell", "swift_env", "tei_env", "tgi_env", "pytorch", "peft"}
FRAMEWORKS = sorted(set(rule_files.table("frameworks")) - _NOT_FILES)


def is_plain(key: Key) -> bool:
    """A key that stands for itself: no other key has a say in what it means, no call holds it."""
    plain = not (key.needs or key.where or key.times or key.over or key.also or key.auto or key.read_only or key.code)
    return plain and key.takes == "whole" and bool(key.key) and not key.key.split(".")[0][:1].isupper()


@cache
def usable(name: str) -> tuple[tuple[str, str, tuple[Value, ...]], ...]:
    """Knobs of a table that a plain key turns which turns no other, with the key and at least two values that it can say."""
    tab = framework_tables.table(name)
    found: list[tuple[str, str, tuple[Value, ...]]] = []
    for knob in tab.knobs:
        keys = [key for key in tab.of(knob) if is_plain(key)][:1]
        if not keys or any(other.key == keys[0].key and other.knob != knob for other in tab.keys):
            continue
        values = tuple(dict.fromkeys(said(keys[0])))
        if len(values) > 1 and not any(keys[0].key != key and clash(keys[0].key, key) for _, key, _ in found):
            found.append((knob, keys[0].key, values))
    return tuple(found)


def clash(one: str, other: str) -> bool:
    return one.startswith(f"{other}.") or other.startswith(f"{one}.")


def said(key: Key) -> Iterator[Value]:
    entry = declared(key.knob)
    assert entry is not None
    words = {"count": ["4", "16", "96"], "ratio": ["0.5", "0.25"], "switch": ["enabled", "disabled"], "word": list(entry.words)}.get(
        entry.kind, ["a/b", "c"]
    )
    spoken = {word for name, word in (key.values or {}).items() if "*" not in name} if key.values else set(words)
    for word in words if key.values is None else sorted(spoken - {"nothing", "unknown", "same"}):
        value = typed(key.knob, word)
        if value_spelling.word_for(key, value) is not None and word != "none" and not (key.bare and value in (False, "disabled")):
            yield value


def written(tab: Table, key: str, knob: str, value: Value, form: Form) -> str:
    line = next(one for one in tab.of(knob) if one.key == key)
    entry = declared(knob)
    word = value_spelling.word_for(line, value)
    assert entry is not None and word is not None
    return value_spelling.spell(word, form, entry.kind)


Drawn = list[tuple[str, str, str]]  # key, knob, value as written


# -- the forms


def as_yaml(pairs: Drawn, draw: Callable[..., int]) -> str:
    lines: list[str] = ["# 显存 kept-0"]
    open_: list[str] = []
    for index, (key, _, value) in enumerate(sorted(pairs)):
        path = key.split(".")
        common = 0
        while common < min(len(open_), len(path) - 1) and open_[common] == path[common]:
            common += 1
        for depth in range(common, len(path) - 1):
            lines.append("  " * depth + f"{path[depth]}:")
        open_ = path[:-1]
        gap = " " * (1 + draw(3))
        shown = f"'{value}'" if draw(4) == 0 and re.fullmatch(r"\w*[a-z]\w*", value) and value not in ("true", "false") else value
        comment = f"  # kept-{index + 1}" if draw(2) else ""
        lines.append("  " * (len(path) - 1) + f"{path[-1]}:{gap}{shown}{comment}")
        if draw(4) == 0:
            lines.append("")
    return "\n".join(lines) + "\n" * draw(2)


def as_json(pairs: Drawn, draw: Callable[..., int]) -> str:
    tree: dict[str, object] = {}
    for key, _, value in sorted(pairs):
        *path, last = key.split(".")
        inner = tree
        for name in path:
            inner = inner.setdefault(name, {})  # type: ignore[assignment]
        inner[last] = json.loads(value)
    return json.dumps(tree, indent=[None, 2, 4, "\t"][draw(4)]) + "\n" * draw(2)


def as_options(dotted: bool, program: str) -> Callable[[Drawn, Callable[..., int]], str]:
    def make(pairs: Drawn, draw: Callable[..., int]) -> str:
        lines, before = [program], ["#!/bin/bash", "# kept-0 显存"]
        for index, (key, _, value) in enumerate(pairs):
            if draw(4) == 0:
                before.append(f"V{index}={value}")
                value = f'"$V{index}"' if draw(2) else f"${{V{index}}}"
            elif draw(4) == 0 and re.fullmatch(r"[\w.]+", value):
                value = f"'{value}'"
            if key in bare:
                lines.append(f"--{key}")
            else:
                lines.append(f"{key}={value}" if dotted else f"--{key}{'= '[draw(2)]}{value}")
        gap = " \\\n  " if draw(2) else " "
        return "\n".join([*before, gap.join(lines)]) + " | tee kept-1.log\n" * draw(2)

    bare: set[str] = set()
    return make


def as_python(call: str) -> Callable[[Drawn, Callable[..., int]], str]:
    def make(pairs: Drawn, draw: Callable[..., int]) -> str:
        module = "transformers" if call == "TrainingArguments" else "trl"
        lines = [f"from {module} import {call}", "# kept-0 显存", f"args = {call}("]
        lead = " " * (2 + 2 * draw(2))
        items = [f'{lead}output_dir="o",', *(f"{lead}{key}{[' = ', '='][draw(2)]}{value}," for key, _, value in pairs)]
        marked = [f"{item}  # kept-{index}" if draw(2) else item for index, item in enumerate(items, 1)]
        marked[-1] = marked[-1].replace(",", "", 1) if draw(2) else marked[-1]
        return "\n".join([*lines, *marked, ")", ""])

    return make


PYTHON = {"transformers": "TrainingArguments", "trl": "SFTConfig"}


def programs(name: str) -> str | None:
    """A command that starts the framework."""
    known = {
        "llamafactory": "llamafactory-cli train",
        "axolotl": "axolotl train x.yaml",
        "openrlhf": "python -m openrlhf.cli.train_ppo_ray",
        "verl": "python -m verl.trainer.main_ppo",
        "swift": "swift sft",
        "megatron": "torchrun pretrain_gpt.py",
        "torchtitan": "torchrun -m torchtitan.train",
        "torchtune": "tune run lora_finetune --config x.yaml",
        "transformers": "torchrun run_clm.py",
        "vllm": "vllm serve a/b",
        "trl": "trl sft",
    }
    return known.get(name)


FORMS: list[tuple[str, str]] = [
    *[(name, form) for name in FRAMEWORKS for form in ("yaml", "json") if name not in ("vllm", "torchtitan", "unsloth")],
    *[(name, "shell") for name in FRAMEWORKS if programs(name)],
    *[(name, "python") for name in PYTHON],
]


def read(name: str, text: str, forced: str | None) -> Settings:
    return config_reader.read([ConfigSource(name, text.encode(), forced)], Reading(), FactBook())


def others(document: Document, but: set[str]) -> dict[str, str]:
    """What every other key holds, blocks left out."""
    blocks = {entry.key for entry in document.entries if any(other.key.startswith(f"{entry.key}.") for other in document.entries)}
    return {entry.key: entry.written for entry in document.entries if entry.key not in but | blocks and not entry.key.endswith("()")}


@for_each("name, form", FORMS)
def test_an_edit_means_what_was_wanted_and_leaves_the_rest(name: str, form: str) -> None:
    """Hypothesis builds the file around the knob: other keys, comments, spacing, quotes, line ends, variables."""
    tab, choices = framework_tables.table(name), usable(name)
    if len(choices) < 2:
        pytest.skip("too few plain keys")
    kind: Form = form  # type: ignore[assignment]
    if form == "python":
        choices = tuple(one for one in choices if "." not in one[1] and not any(key.cli for key in tab.named(one[1])))

    @settings(
        max_examples=12 if SWEEP else 3,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    @given(st.data())
    def check(data: st.DataObject) -> None:
        def draw(count: int) -> int:
            return data.draw(st.integers(0, count - 1))

        picked = data.draw(st.lists(st.sampled_from(choices), min_size=2, max_size=6, unique_by=lambda choice: choice[1]))
        picked = [one for one in picked if not any(clash(one[1], other[1]) for other in picked if other is not one)]
        assume(len(picked) > 1)
        pairs = [(key, knob, written(tab, key, knob, data.draw(st.sampled_from(values)), kind)) for knob, key, values in picked]
        bare = {
            key for key, _, said in pairs if (tab.bare_switches and said in ("true", "false")) or any(one.bare for one in tab.named(key))
        }
        pairs = [pair for pair in pairs if not (form == "shell" and pair[0] in bare)]
        assume(len(pairs) > 1)
        script = as_python(PYTHON.get(name, ""))
        builders = {"python": script, "yaml": as_yaml, "json": as_json, "shell": as_options(tab.interpolates, programs(name) or "")}
        text = builders[form](pairs, draw)
        if form != "json" and draw(3) == 0:
            text = text.replace("\n", "\r\n")
        knob, key, values = next(one for one in picked if one[1] == pairs[0][0])
        value = data.draw(st.sampled_from(values))
        absent = draw(2) == 0 and len(pairs) > 2
        if absent:  # the key is to be added, beside the others
            text = builders[form](pairs[1:], draw)
        check_edit(name, text, name if form in ("yaml", "json") else None, knob, value, set() if absent else {key, f"--{key}"})

    check()


def check_edit(name: str, text: str, forced: str | None, knob: str, value: Value, changed: set[str]) -> None:
    del name
    told = read("f", text, forced)
    made = knob_edits.edits(told.documents, FactBook(told.facts), {knob: value})
    assume(made is not None)  # a knob that needs more than the file says
    assert made is not None
    new = patching.texts(told.documents, made).get("f", text) if made else text
    again = read("f", new, forced)
    assume(
        not {fact.value for fact in again.facts if fact.name in ("config.ignored_key", "config.unknown_key")} & {edit.key for edit in made}
    )
    got = next((fact for fact in again.facts if fact.name == knob), None)
    touched = changed | {edit.key for edit in made}
    if got is None:  # the framework reads the key and does nothing with it in this combination
        assert any(knob in entry.knobs for document in again.documents for entry in document.entries if entry.key in touched), (
            text,
            made,
            new,
        )
    else:
        assert got.value == value, (text, made, new, got)
    assert others(told.documents[0], touched).items() <= others(again.documents[0], touched).items(), (text, new)
    assert re.findall(r"kept-\d", text) == re.findall(r"kept-\d", new)
    assert ("\r\n" in text and "\n" in text) == ("\r\n" in new)
    assert len(new.splitlines()) >= len(text.splitlines()) - sum(edit.to is None for edit in made)


# -- edits of one place


def edited(text: str, changes: dict[str, Value], forced: str | None = None) -> str:
    told = read("f", text, forced)
    made = knob_edits.edits(told.documents, FactBook(told.facts), changes)
    assert made is not None
    return patching.texts(told.documents, made).get("f", text)


SIZE = "--per_device_train_batch_size"  # @ below
HEAD = "torchrun --nproc_per_node 2 train.py --output_dir o --model_name_or_path a/b"


@for_each(
    "before, after",
    [
        pytest.param("BS=8\n{} @ $BS\n", "BS=2\n{} @ $BS\n", id="variable"),
        pytest.param('BS="8"  # mine\n{} @=${{BS}}\n', 'BS="2"  # mine\n{} @=${{BS}}\n', id="quoted"),
        pytest.param("BS=8\n{} @ $BS --x $BS\n", "BS=8\n{} @ 2 --x $BS\n", id="used-twice"),
        pytest.param("BS=8\necho $BS\n{} @ $BS\n", "BS=2\necho $BS\n{} @ $BS\n", id="printed"),
        pytest.param("A=8\nB=$A\n{} @ $B\n", "A=2\nB=$A\n{} @ $B\n", id="copied"),
        pytest.param("{} @ ${{BS:-8}}\n", "{} @ ${{BS:-2}}\n", id="default"),
        pytest.param("BS=${{BS:-8}}\n{} @ $BS\n", "BS=${{BS:-2}}\n{} @ $BS\n", id="default-held"),
        pytest.param(': "${{BS:=8}}"\n{} @ $BS\n', ': "${{BS:=2}}"\n{} @ $BS\n', id="default-assigned"),
        pytest.param("make go ARGS='@ 8 --output_dir o'\n", "make go ARGS='@ 2 --output_dir o'\n", id="make"),
        pytest.param("{} @ $((2*4))\n", "{} @ 2\n", id="sum"),
        pytest.param('A="@ 8 --bf16"\n{} $A\n', 'A="@ 2 --bf16"\n{} $A\n', id="text"),
        pytest.param("A=(@ 8)\n{} \"${{A[@]}}\"\n", "A=(@ 2)\n{} \"${{A[@]}}\"\n", id="array"),
        pytest.param("bash -c '{} @ 8'\n", "bash -c '{} @ 2'\n", id="bash-c"),
        pytest.param("go() {{\n  {} @ $1\n}}\ngo 8\n", "go() {{\n  {} @ $1\n}}\ngo 2\n", id="function"),
    ],
)  # fmt: skip
def test_a_value_is_changed_where_it_is_written(before: str, after: str) -> None:
    """At the variable that is used once, else at the use."""
    old, new = (text.format(HEAD).replace("@ ", f"{SIZE} ").replace("@=", f"{SIZE}=") for text in (before, after))
    assert edited(old, {"train.micro_batch_size": 2}) == new


def test_a_config_that_a_script_writes_is_edited_in_the_script() -> None:
    text = f'cat <<EOF > ds.json\n{{\n  "zero_optimization": {{"stage": 2}}\n}}\nEOF\n{HEAD} --deepspeed ds.json\n'
    assert edited(text, {"zero.stage": 3}) == text.replace(": 2", ": 3")
    added = edited(text, {"zero.reduce_bucket": 1000})
    assert '"stage": 2, "reduce_bucket_size": 1000}' in added


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a: &n 8\nper_device_train_batch_size: *n\nstage: sft\nfinetuning_type: lora\n", "a: &n 8\nper_device_train_batch_size: 2\n"),
        ("per_device_train_batch_size: !!int 8\nstage: sft\nfinetuning_type: lora\n", "per_device_train_batch_size: !!int 2\n"),
        (
            "base: &b\n  x: 1\n  per_device_train_batch_size: 8\n<<: *b\nstage: sft\nfinetuning_type: lora\n",
            "  per_device_train_batch_size: 8\n<<: *b\nstage: sft\n",
        ),
    ],
)  # fmt: skip
def test_what_yaml_shares_is_not_changed_for_others(before: str, after: str) -> None:
    """An alias is replaced, a merged key set anew; the anchor stays."""
    new = edited(before, {"train.micro_batch_size": 2})
    assert after in new
    assert FactBook(read("f", new, None).facts).value("train.micro_batch_size") == 2


def test_comments_stay_beside_their_keys() -> None:
    text = 'from transformers import TrainingArguments\nargs = TrainingArguments(\n    output_dir="o",  # where\n    bf16=True  # fast\n)\n'
    new = edited(text, {"train.micro_batch_size": 2})
    assert '"o",  # where' in new and "bf16=True" in new and re.search(r"True,? +# fast", new), new


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("- --per_device_train_batch_size\n- '8'\n- --output_dir\n- o\n- --model_name_or_path\n- a/b\n", "- '2'"),
        ('["--per_device_train_batch_size", "8", "--output_dir", "o"]', '"--per_device_train_batch_size", "2"'),
        ("--per_device_train_batch_size 8\n--output_dir o\n", "--per_device_train_batch_size 2"),
    ],
)
def test_lists_of_arguments_are_edited_as_lists(text: str, line: str) -> None:
    new = edited(text, {"train.micro_batch_size": 2, "train.gradient_accumulation": 8})
    assert line in new
    book = FactBook(read("f", new, None).facts)
    assert (book.value("train.micro_batch_size"), book.value("train.gradient_accumulation")) == (2, 8)


@for_each("word", ["none", "'none'", '"none"', "$V", '"${V}"', "no'ne'", r"n\one"])
@for_each("end", ["\n", "\r\n"])
def test_a_word_is_none_however_the_shell_spells_it(word: str, end: str) -> None:
    script = f"V=none{end}torchrun -m torchtitan.train --activation_checkpoint.mode {word} --training.local_batch_size 4{end}"
    settings_ = read("f.sh", script, None)
    assert FactBook(settings_.facts).value("train.gradient_checkpointing") == "disabled"
