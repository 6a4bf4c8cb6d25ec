"""No edit is shown or written that was not read back: the file parses, the knob has its value, all else is as it was."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import tomllib
import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from shutil import which

import pytest
import yaml
from cases import CORPUS
from collected import for_each
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from sweep import SWEEP, examples, sample

from diagnose.adapters import config_reader
from diagnose.adapters.formats import json_file
from diagnose.adapters.formats import settings as config_settings
from diagnose.adapters.formats.config_value import name_of
from diagnose.adapters.formats.settings import ConfigSource, Document, Entry, Settings
from diagnose.adapters.schema import framework_tables
from diagnose.facts import FactBook, Value, declared, typed
from diagnose.parse.model.reading import Reading
from diagnose.phrases import same
from diagnose.plan.edits import knob_edits
from diagnose.plan.edits.key_spelling import is_usable
from diagnose.plan.edits.verified_edits import verified
from diagnose.plan.patch import patching
from diagnose.plan.patch.patch_places import Splice
from diagnose.plan.patch.verification import EditCheck
from diagnose.plan.remedies.remedy import Edit, Plan, Price, Remedy

BATCH: dict[str, Value] = {"train.micro_batch_size": 2}
ROWS: dict[str, Value] = {**BATCH, "train.gradient_accumulation": 4}
KEY = "per_device_train_batch_size"
LORA = "stage: sft\nfinetuning_type: lora\n"
IMPORT = "from transformers import TrainingArguments\n"
TORCHRUN = f"torchrun --nproc_per_node 2 train.py --output_dir o --model_name_or_path a/b --{KEY}"


def read(text: str, name: str = "f") -> Settings:
    return config_reader.read([ConfigSource(name, text.encode("utf-8-sig"))], Reading(), FactBook())


def edited(text: str, changes: Mapping[str, Value]) -> str:
    """The text after the edits of these knobs, which are verified."""
    found = read(text)
    edits = knob_edits.edits(found.documents, FactBook(found.facts), changes)
    assert edits, [notice.message.en for notice in found.notices]
    check = EditCheck(found.documents)
    assert check.passes(edits) and check.has_values(edits, changes), patching.texts(found.documents, edits)
    return patching.texts(found.documents, edits)["f"]


def refused(text: str, changes: Mapping[str, Value]) -> bool:
    """Whether the edits of these knobs are not offered."""
    found = read(text)
    edits = knob_edits.edits(found.documents, FactBook(found.facts), changes)
    return edits is not None and not EditCheck(found.documents).passes(edits)


# -- arguments of a Python script


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("TrainingArguments('o')", f"TrainingArguments('o', {KEY}=2)", id="after a positional one"),
        pytest.param("TrainingArguments()", f"TrainingArguments({KEY}=2)", id="none"),
        pytest.param("TrainingArguments('o', fp16=(A and B))", f"TrainingArguments('o', fp16=(A and B), {KEY}=2)", id="brackets"),
        pytest.param("TrainingArguments(('o'), **more)", f"TrainingArguments(('o'), **more, {KEY}=2)", id="a mapping"),
        pytest.param(
            f"TrainingArguments('o', **{{'{KEY}': 8, 'x': 1}})", f"TrainingArguments('o', **{{'{KEY}': 2, 'x': 1}})", id="in a mapping"
        ),
        pytest.param("(TrainingArguments) ('o' # why\n)", f"(TrainingArguments) ('o', {KEY}=2 # why\n)", id="a comment"),
        pytest.param("TrainingArguments(\n  *a # why\n)", f"TrainingArguments(\n  *a, # why\n  {KEY}=2\n)", id="lines"),
        pytest.param("TrainingArguments(\n  fp16=(A\n),  # a\n)", f"TrainingArguments(\n  fp16=(A\n),  # a\n  {KEY}=2,\n)", id="comma"),
        pytest.param(f"TrainingArguments('o', {KEY}=(8))", f"TrainingArguments('o', {KEY}=(2))", id="a value in brackets"),
        pytest.param("dict(type=TrainingArguments, fp16=True)", f"dict(type=TrainingArguments, fp16=True, {KEY}=2)", id="a later call"),
        pytest.param("f(TrainingArguments('o'), g(a)(b))", f"f(TrainingArguments('o', {KEY}=2), g(a)(b))", id="a call in a call"),
    ],
)  # fmt: skip
def test_an_argument_goes_into_its_own_call(before: str, after: str) -> None:
    assert edited(f"{IMPORT}args = {before}\n", BATCH) == f"{IMPORT}args = {after}\n"


def test_a_setting_that_is_a_call_gets_its_argument_inside() -> None:
    """It once stood before the call: `model = use_gradient_checkpointing=True, prepare_model_for_kbit_training(model)`."""
    text = (
        "from transformers import AutoModelForCausalLM\nfrom peft import prepare_model_for_kbit_training\nfrom trl import SFTConfig\n"
        'model = AutoModelForCausalLM.from_pretrained("a/b", load_in_4bit=(True))\n'
        "model = prepare_model_for_kbit_training(model)\nargs = SFTConfig('o')\n"
    )
    found = read(text)
    edits = (
        Edit("f", "prepare_model_for_kbit_training.use_gradient_checkpointing", None, "True"),
        Edit("f", "use_liger_kernel", None, "True"),
        Edit("f", "from_pretrained.attn_implementation", None, '"sdpa"'),
    )
    assert EditCheck(found.documents).passes(edits)
    new = patching.texts(found.documents, edits)["f"]
    assert "prepare_model_for_kbit_training(model, use_gradient_checkpointing=True)" in new
    assert "SFTConfig('o', use_liger_kernel=True)" in new
    assert 'from_pretrained("a/b", load_in_4bit=(True), attn_implementation="sdpa")' in new


def test_a_config_written_as_a_dict_is_changed_in_the_dict() -> None:
    text = f"{IMPORT}a = TrainingArguments('o', bf16=True, deepspeed={{'zero_optimization': {{'stage': 2}}, 'x': 1}})\n"
    assert edited(text, {"zero.stage": 3}) == text.replace("2", "3")


@pytest.mark.parametrize("last", ["bf16=True", "bf16=True,", "bf16=(True),  # fast"])
def test_an_argument_is_removed_with_its_comma(last: str) -> None:
    text = f"{IMPORT}a = TrainingArguments(\n    'o',  # where\n    {last}\n)\n"
    found = read(text)
    edits = (Edit("f", "bf16", "True", None), Edit("f", "fp16", None, "True"))
    assert EditCheck(found.documents).passes(edits)
    assert "# where" in patching.texts(found.documents, edits)["f"]


# -- words of a shell


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(f"{TORCHRUN} 8 \\", f"{TORCHRUN} 2 \\", id="a backslash at the end"),
        pytest.param(f"{TORCHRUN} \\\n  8\\", f"{TORCHRUN} \\\n  2\\", id="a glued backslash at the end"),
        pytest.param(f"{TORCHRUN}=8\\\n  --x 1\n", f"{TORCHRUN}=2\\\n  --x 1\n", id="a continued line"),
        pytest.param(f"{TORCHRUN} 8\\\r\n  --x 1\r\n", f"{TORCHRUN} 2\\\r\n  --x 1\r\n", id="a continued line of Windows"),
        pytest.param(f"B=8\\\n\n{TORCHRUN} $B\n", f"B=2\\\n\n{TORCHRUN} $B\n", id="a variable"),
        pytest.param(f"echo \u2028\x85\f\n{TORCHRUN} '8'\n", f"echo \u2028\x85\f\n{TORCHRUN} '2'\n", id="separators"),
    ],
)  # fmt: skip
def test_a_word_ends_where_the_shell_ends_it(before: str, after: str) -> None:
    assert edited(before, BATCH) == after


def test_a_count_before_a_command_leaves_the_command() -> None:
    """`8` and the program on the next line once became `32`: the user forgot the blank before the backslash."""
    text = f"NPROC_PER_NODE=8\\\nswift sft --model a/b --{KEY} 1\n"
    assert edited(text, {"parallel.world": 4}) == text.replace("8", "4")


def test_a_command_in_a_variable_keeps_all_but_the_value() -> None:
    """The whole command was once replaced by the new value: it begins with what only a running shell knows."""
    options = "--num-layers 12 --hidden-size 768 --num-attention-heads 12 --micro-batch-size 8 --seq-length 1024"
    for command, use in (
        (f" `pwd`/pretrain_gpt.py {options}", "python $CMD"),
        (f"python `pwd`/pretrain_gpt.py {options}", 'bash -c "$CMD"'),
    ):
        text = f'#!/bin/bash\n#SBATCH -N 1\nCMD="{command} \\\n  --global-batch-size 64"\nsrun {use}\n'
        assert edited(text, BATCH) == text.replace("size 8", "size 2")


# -- keys of YAML and JSON


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(f"? {KEY}\n: 8\nx: 1\n", f"? {KEY}\n: 2\ngradient_accumulation_steps: 4\nx: 1\n", id="? key"),
        pytest.param(f"{KEY}: !!int 8\n", f"{KEY}: !!int 2\ngradient_accumulation_steps: 4\n", id="a tag"),
        pytest.param(f"{KEY}: &a 8\n", f"{KEY}: &a 2\ngradient_accumulation_steps: 4\n", id="an anchor"),
        pytest.param(f"{KEY}: >-  # c\n  8\nx: 1\n", f"{KEY}: 2\ngradient_accumulation_steps: 4\nx: 1\n", id="a block"),
        pytest.param(f"{KEY}: 8\rx: 1\r", f"{KEY}: 2\rgradient_accumulation_steps: 4\rx: 1\r", id="carriage returns"),
        pytest.param(f"{KEY}: 8\x85x: 1\n", f"{KEY}: 2\ngradient_accumulation_steps: 4\x85x: 1\n", id="next line"),
        pytest.param(f"{KEY}: 8\n...\n", f"{KEY}: 2\ngradient_accumulation_steps: 4\n...\n", id="an end"),
    ],
)  # fmt: skip
def test_a_key_of_yaml_is_changed_however_it_is_written(before: str, after: str) -> None:
    lead = LORA.replace("\n", "\r") if "\n" not in before else LORA
    assert edited(lead + before, ROWS) == lead + after


def test_keys_of_one_object_are_removed_together() -> None:
    text = '{"model": {"name": "a/b"}, "quant_config": {"name": "bnb", "bits": 4, "double": false},\n "x": {"y": 1, "z": 2, "w": 3}}'
    document = Document("f", "llamafactory", "json", text, entries(text))
    for keys in (["quant_config.name", "quant_config.bits", "quant_config.double"], ["x.z", "x.w"], ["x.y", "x.w"], ["x", "x.y"]):
        new = patching.apply(document, [Edit("f", key, "", None) for key in keys])
        wanted = json.loads(text)
        for key in sorted(keys, reverse=True):
            block, _, name = key.rpartition(".")
            del (wanted[block] if block else wanted)[name]
        assert json.loads(new) == wanted, new


def entries(text: str) -> tuple[Entry, ...]:
    return tuple(Entry(leaf.key, leaf.written, leaf.start, leaf.end, leaf.line, leaf.column) for leaf in json_file.Reader(text).leaves())


# -- what cannot be edited


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        pytest.param(f"{LORA}{KEY}: &a 8\nx: *a\n", BATCH, id="a value that another key uses"),
        pytest.param(f"{TORCHRUN} 8\rcd x\n", BATCH, id="a carriage return in a word"),
        pytest.param(f"{IMPORT}a = TrainingArguments(x for x in y)\n", BATCH, id="a generator as the only argument"),
    ],
)
def test_what_would_change_something_else_is_refused(text: str, changes: dict[str, Value]) -> None:
    assert refused(text, changes)


def remedy(name: str, *edits: Edit, **more: object) -> Remedy:
    price = Price("keep", "same", "setting")
    fields = {"saves": None, "peak": None, "fits": "yes", "env": (), "command": None, "references": (), "url": "", **more}
    return Remedy(id=name, rule=name, title=same(name), why=same(""), price=price, edits=edits, **fields)  # type: ignore[arg-type]


def test_a_refused_edit_is_said_in_words() -> None:
    """The plan keeps the edits of its other steps; both languages name the place, the key and the value."""
    documents = read(f"{LORA}{KEY}: &a 8\nx: *a\nbf16: true\n").documents
    bad, good = Edit("f", KEY, "8", "2"), Edit("f", "bf16", "true", "false")
    plan = Plan(("a", "b"), (bad, good), (), None, None, "yes")
    remedies, kept = verified(
        [remedy("a", bad, command=same("first")), remedy("b", good), remedy("c", Edit("other", "k", None, "1"))],
        plan,
        documents,
        FactBook(),
    )
    assert kept is not None and kept.edits == (good,) and kept.steps == plan.steps
    assert [len(one.edits) for one in remedies] == [0, 1, 1]
    words = remedies[0].command
    assert words is not None and words.en.startswith("first; by hand")
    assert all("f:3" in text and KEY in text and "2" in text for text in (words.en, words.zh))


def test_two_commands_that_differ_in_words_beyond_the_edit_are_caught() -> None:
    """An edit that damages its neighbour is no edit, even where the key then has its value."""
    text = f"{LORA}{KEY}: 8\nbf16: true\n"
    documents = read(text).documents
    entry = next(entry for entry in documents[0].entries if entry.key == KEY)
    wrong = replace(documents[0], entries=(entry._replace(end=text.index("true"), written="8\nbf16: "),))
    assert not EditCheck([wrong]).passes([Edit("f", KEY, "8", "2")])


# -- any config of the corpus, with anything strange in it

FILES = sorted(
    path
    for path in CORPUS.rglob("*")
    if path.suffix in (".yaml", ".yml", ".json", ".toml", ".sh", ".py", ".slurm") and not path.name.endswith("expected.yaml")
    if path.stat().st_size < 40_000
)
STRANGE = ["\r", "\f", "\x85", "\u2028", "\t", "\ufeff", " # c\n", "\\", "\n\n", "  ", "é", "😀", "\n# 显存\n", "\\\n", '"', "'", "`"]
_WORDS = {"count": ("4", "16"), "ratio": ("0.5",), "switch": ("enabled", "disabled")}


@cache
def knobs(framework: str) -> tuple[str, ...]:
    """Knobs for which a framework has a key."""
    return tuple(sorted({key.knob for key in framework_tables.table(framework).keys if key.key and not key.read_only}))


def values(knob: str) -> list[Value]:
    entry = declared(knob)
    if entry is None or not entry.is_knob:
        return []
    return [*entry.words] if entry.kind == "word" else [typed(knob, word) for word in _WORDS.get(entry.kind, ())]


def parses(form: str, text: str) -> bool:
    """Whether a program of the language itself takes the text."""
    try:
        if form == "python":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ast.parse(text)
        elif form == "yaml":
            list(yaml.compose_all(text, yaml.CSafeLoader))
        elif form == "toml":
            tomllib.loads(text)
        elif form == "json":
            json.loads(text)
        elif form == "shell" and which("bash"):
            return not subprocess.run(["bash", "-n"], input=text.encode(), capture_output=True, check=False).returncode
    except (SyntaxError, ValueError, yaml.YAMLError):
        return False
    return True


def strange(text: str, data: st.DataObject) -> str:
    """The text with up to three strange pieces in it, half of them at line ends."""
    if data.draw(st.integers(0, 5)) == 0:
        text = text.replace("\n", "\r\n")
    for piece in data.draw(st.lists(st.sampled_from(STRANGE), max_size=3)):
        ends = [match.start() for match in re.finditer(r"\n|\Z", text)]
        at = data.draw(st.sampled_from(ends) if data.draw(st.booleans()) else st.integers(0, len(text)))
        text = text[:at] + piece + text[at:]
    return text


@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(st.data())
def test_every_edit_that_is_offered_works(data: st.DataObject) -> None:
    path: Path = data.draw(st.sampled_from(FILES))
    text = strange(path.read_bytes().decode("utf-8", "replace"), data)
    found = read(text)
    documents = [document for document in found.documents if document.entries]
    assume(documents)
    document = data.draw(st.sampled_from(documents))
    present = sorted({knob for entry in document.entries for knob in entry.knobs})
    is_present: bool = data.draw(st.booleans())
    knob: str = data.draw(st.sampled_from([*(present if present and is_present else knobs(document.framework)), "none"]))
    assume(values(knob))
    value = data.draw(st.sampled_from(values(knob)))
    assume(holds(text, found, document, knob, value))


@for_each("path", sample(FILES, 10))
def test_every_edit_of_every_config_can_be_undone(path: Path) -> None:
    """Each knob that the file sets, and in a sweep each that it might, takes another value: read again, the file says that and nothing
    else, and its patch applied backwards gives every byte back."""
    text = path.read_bytes().decode("utf-8", "replace")
    found = read(text)
    for document in found.documents:
        present = sorted({knob for entry in document.entries for knob in entry.knobs})
        others = [knob for knob in knobs(document.framework) if knob not in present] if document.entries else []
        for knob in (*sample(present, 2), *(others if SWEEP else others[:1])):
            for value in values(knob)[:2]:
                holds(text, found, document, knob, value)


def holds(text: str, found: Settings, document: Document, knob: str, value: Value) -> bool:
    """Whether an edit of the knob is offered; if so, that it does what it says and nothing else."""
    edits = knob_edits.edits(found.documents, FactBook(found.facts), {knob: value})
    if not edits or not all(edit.target == "f" for edit in edits):  # in a file that this one names
        return False
    check = EditCheck(found.documents)
    if not (check.passes(edits) and check.has_values(edits, {knob: value})):
        return True  # said in words
    new = patching.texts(found.documents, edits)["f"]
    again = read(new)
    form = "" if document.form == "shell" and document.text.lstrip()[:1] in ("[", "{", "-") else document.form
    assert parses(form, new) or not parses(form, text), new
    assert FactBook(again.facts).value(knob) in (None, value) or is_ignored(again, edits)
    edited_keys = {name for edit in edits for name in (edit.key, edit.renamed)}
    before, after = rest(found, edited_keys), rest(again, edited_keys)
    if document.framework == "lexicon" and not after:
        return True  # a file of an unknown program is read only while its values show one
    assert {key: (before[key], after.get(key)) for key in before if before[key] != after.get(key)} == {}
    assert untouched(text, new, patching.file_splices(found.documents, edits))
    diff = patching.diff(found.documents, edits)
    assert (patched(text, diff), patched(new, diff, "+", "-")) == (new, text)
    if all(edit.frm is not None and edit.to is not None and is_value(found, edit) for edit in edits):
        assert patching.texts(again.documents, [swapped(edit) for edit in edits])["f"] == text
    return True


def patched(text: str, diff: str, old: str = "-", new: str = "+") -> str:
    """A text after a unified diff, or with the signs exchanged before it; every line that the diff takes must stand there."""
    lines, result, at = text.split("\n"), list[str](), 0
    kept = [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    rows = diff.split("\n")[2:-1]
    for number, row in enumerate(rows):
        ended = rows[number + 1].startswith("\\") if number + 1 < len(rows) else False
        if row.startswith("@@"):
            ranges = re.findall(r"[-+](\d+)(?:,(\d+))?", row)
            first, count = ranges[0 if old == "-" else 1]
            start = int(first) - (count != "0")
            result += kept[at:start]
            at = start
        elif row[:1] in (" ", old):
            assert kept[at] == row[1:] + "\n" * (not ended), row
            result += [kept[at]] if row[:1] == " " else []
            at += 1
        elif row[:1] == new:
            result.append(row[1:] + "\n" * (not ended))
    return "".join([*result, *kept[at:]])


def is_ignored(found: Settings, edits: tuple[Edit, ...]) -> bool:
    return bool(
        {edit.key for edit in edits} & {fact.value for fact in found.facts if fact.name in ("config.ignored_key", "config.unknown_key")}
    )


def is_value(found: Settings, edit: Edit) -> bool:
    """Whether the edit replaces one value with another, not an option that has none."""
    entries = (entry for document in found.documents for entry in document.entries if entry.key == edit.key)
    return all(entry.start < entry.end for entry in entries)


def swapped(edit: Edit) -> Edit:
    return edit._replace(frm=edit.to, to=edit.frm)


def rest(found: Settings, but: set[str | None]) -> dict[tuple[str, str], str]:
    """What is written at each other key; blocks and calls left out, and the ends of continued lines, which are no part of a value."""
    return {
        (document.framework, entry.key): entry.written.replace("\\\n", "")
        for document in found.documents
        for entry in document.entries
        if not any(key and (entry.key.startswith(key) or key.startswith(entry.key)) for key in but)
        and not (document.form == "python" and ("(" in entry.written or entry.key.endswith("()")))
    }


def untouched(old: str, new: str, splices: list[Splice]) -> bool:
    """Whether all of the old text outside the edited spans stands in the new one, byte for byte and in order."""
    at = place = 0
    for splice in sorted(dict.fromkeys(splices), key=lambda splice: (splice.start, splice.end)):
        piece = old[place : max(splice.start, place)]
        if not new.startswith(piece, at):
            return False
        at, place = at + len(piece) + len(splice.new), max(place, splice.end)
    return new[at:] == old[place:]


def test_the_words_of_a_document_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a key may stand in a document is asked for each of its settings: reading all of them each time took a minute."""
    asked: list[str] = []

    def counted(key: str) -> str:
        asked.append(key)
        return name_of(key)

    monkeypatch.setattr(config_settings, "name_of", counted)
    lines = tuple(Entry(f"--option_{number}", "1", 0, 1, 1, 1) for number in range(300))
    document = Document("run.sh", "transformers", "shell", "", lines)
    key = next(key for key in framework_tables.table("transformers").keys)._replace(where={"option_7": ("1",)})
    assert all(is_usable(document, key) for _ in lines)
    assert len(asked) == len(lines)
