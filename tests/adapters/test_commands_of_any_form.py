"""Commands as people hand them over: pages, scripts of any shell, Python, notebooks, Makefiles, containers; and what ended them early."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import yaml
from cases import CORPUS, without_advice
from checkout import ROOT
from collected import for_each
from sweep import sample

from diagnose.adapters import config_reader
from diagnose.adapters.formats.settings import ConfigSource, Settings
from diagnose.adapters.launch.launch_command import Launch, launches
from diagnose.diagnosis import Diagnosis
from diagnose.facts import FactBook, declared
from diagnose.parse.model.reading import Reading
from diagnose.pipeline import explain
from diagnose.plan.edits import knob_edits
from diagnose.plan.patch import patching
from diagnose.plan.remedies.remedy import Edit
from diagnose.scan.source import Source
from diagnose.units import Size

OOM = (
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB (GPU 0; 23.69 GiB total capacity; 21.10 GiB already "
    "allocated; 1.20 GiB free; 21.90 GiB reserved in total by PyTorch)\n"
)
#: By name: how it is handed over (`as`: a page, a log, or the name of a file), its text, the knobs that it says (`reads`), options that
#: never reached the program (`lost`), codes of notices (`says`).
CASES: dict[str, dict[str, Any]] = {
    name: case
    for file in sorted((ROOT / "tests" / "commands").glob("*.yaml"))
    for name, case in yaml.load(file.read_bytes(), yaml.CSafeLoader).items()
}


@cache
def read_case(name: str) -> Diagnosis:
    """What is read of a case, without advice."""
    with without_advice():
        return diagnosed(name)


def diagnosed(name: str) -> Diagnosis:
    case = CASES[name]
    if case["as"] == "page":
        return explain(Source.text(f"{case['text']}\nThe error:\n```\n{OOM}```\n", "page.md"))
    if case["as"] == "log":
        return explain(Source.text(case["text"], "console.log"))
    return explain(Source.text(OOM, "error.log"), configs=[ConfigSource(case["as"], case["text"].encode())])


@for_each("name", CASES)
def test_what_a_command_says_is_read(name: str) -> None:
    case, diagnosis = CASES[name], read_case(name)
    book = FactBook(diagnosis.facts)
    read = {knob: f"{size.bytes / 2**30:g}GiB" if isinstance(size := book.value(knob), Size) else size for knob in case.get("reads", {})}
    assert read == case.get("reads", {})
    assert {"key": set(case.get("lost", ())) - {fact.value for fact in diagnosis.facts if fact.name == "config.ignored_key"}} == {
        "key": set()
    }
    assert set(case.get("says", ())) <= {notice.code for notice in diagnosis.notices}


@for_each("name", sample(list(CASES), 10))
def test_a_command_is_advised_on(name: str) -> None:
    """Without the failure of a rule."""
    assert not diagnosed(name).judgement.faults


@for_each("name", [name for name, case in CASES.items() if case["as"] not in ("page", "log")])
def test_an_edit_changes_nothing_but_the_value_where_it_stands(name: str) -> None:
    """Or no edit of the file is offered, where the value is made of several places."""
    case, diagnosis = CASES[name], read_case(name)
    for document in diagnosis.documents:
        for entry in document.entries:
            if "train.micro_batch_size" in entry.knobs and "train.micro_batch_size" in case.get("reads", {}) and entry.start < entry.end:
                edit = Edit(
                    document.name, entry.key, entry.written, entry.written.replace(str(case["reads"]["train.micro_batch_size"]), "77")
                )
                changed = patching.texts(diagnosis.documents, [edit])[document.name]
                assert len(changed) - len(case["text"]) in (0, 1), changed
                if edit.to != edit.frm:
                    assert changed.count("77") == case["text"].count("77") + 1


@for_each("ending", ["  # why \\\n", "  --a 1 \\ \n", "  --a 1\n"])
def test_what_ended_a_command_is_the_first_thing_said(ending: str) -> None:
    """Before the causes and the advice, with the line."""
    from diagnose.render.text import one_screen

    text = f"torchrun run_clm.py \\\n  --output_dir o \\\n{ending}  --per_device_train_batch_size 4\n"
    shown = one_screen.render(explain(Source.text(OOM, "error.log"), configs=[ConfigSource("run.sh", text.encode())]))
    assert "line 3" in " ".join(shown.split())
    assert 0 < shown.index("--per_device_train_batch_size") < shown.index("Why:")


def test_variables_that_are_used_later_are_not_lost() -> None:
    text = "A=1 \\\n  B=2\npython t.py --output_dir o --per_device_train_batch_size $A --num_train_epochs $B\n"
    assert [notice.code for notice in read("run.sh", text).notices] == []


# -- each form of one command gives the same knobs


def read(name: str, text: str) -> Settings:
    return config_reader.read([ConfigSource(name, text.encode())], Reading(), FactBook())


def knobs(name: str, text: str) -> dict[str, Any]:
    settings = read(name, text)
    book = FactBook(settings.facts)
    stated = [fact for fact in settings.facts if fact.origin in ("config", "guessed")]
    names = {fact.name for fact in stated if (entry := declared(fact.name)) is not None and entry.is_knob}
    return {name: book.value(name) for name in sorted(names)}


def words(launch: Launch) -> list[str]:
    """The command as words; options with several values as such."""
    start = {"accelerate": ["accelerate", "launch"], "ray": ["ray", "job", "submit", "--", "python3"], "": []}.get(
        launch.launcher, [launch.launcher]
    )
    program = launch.program.split()
    program = ["-m", *program] if "." in program[0] and not program[0].endswith((".py", ".sh")) else program
    flags = [
        [
            word
            for flag in options
            for word in (
                [f"{flag.key}={flag.value}"]
                if not flag.key.startswith("-")
                else [flag.key, *(flag.items or ([flag.value] if flag.value is not None else []))]
            )
        ]
        for options in (launch.launcher_flags, launch.flags)
    ]
    return [*start, *flags[0], *program, *flags[1]]


@cache
def commands() -> dict[str, list[str]]:
    """A command of each folder of the corpus that has a script whose options are all literal."""
    result: dict[str, list[str]] = {}
    for file in sorted(CORPUS.glob("*/*.sh")):
        for launch in launches(file.read_text(encoding="utf-8")):
            flags = (*launch.flags, *launch.launcher_flags)
            is_plain = all(
                flag.sure and flag.key.isascii() and not set("$'\"\\\n`{}[]() %~") & set(f"{flag.key}{flag.value}") for flag in flags
            )
            if launch.program and len(launch.flags) > 3 and is_plain and not launch.files and not launch.orphan:
                result[file.parent.name] = words(launch)
    return result


def lines(command: list[str], sign: str) -> str:
    return f" {sign}\n  ".join(shlex.join(command).split(" --")).replace("\n  ", "\n  --") if sign else shlex.join(command)


def in_notebook(source: str) -> str:
    return json.dumps({"cells": [{"cell_type": "code", "source": source.splitlines(keepends=True)}], "nbformat": 4}, indent=1)


FORMS: dict[str, Callable[[list[str]], tuple[str, str]]] = {
    "continued": lambda command: ("run.sh", lines(command, "\\")),
    "cmd": lambda command: ("run.bat", "@echo off\n" + lines(command, "^")),
    "powershell": lambda command: ("run.ps1", "$env:OMP_NUM_THREADS = 1\n" + lines(command, "`")),
    "notebook": lambda command: ("run.ipynb", in_notebook("!" + lines(command, "\\"))),
    "makefile": lambda command: ("Makefile", "train:\n\t@" + lines(command, "\\").replace("\n", "\n\t") + "\n"),
    "compose, a text": lambda command: (
        "compose.yaml",
        yaml.safe_dump({"services": {"a": {"image": "b", "command": shlex.join(command)}}}),
    ),
    "compose, a list": lambda command: ("compose.yaml", yaml.safe_dump({"services": {"a": {"image": "b", "command": command}}})),
    "pod": lambda command: (
        "pod.yaml",
        yaml.safe_dump({"kind": "Pod", "spec": {"containers": [{"command": command[:1], "args": command[1:]}]}}),
    ),
    "pod, shell": lambda command: (
        "pod.yaml",
        yaml.safe_dump({"spec": {"containers": [{"command": ["bash", "-c", shlex.join(command)]}]}}),
    ),
    "launch.json": lambda command: ("launch.json", json.dumps({"configurations": [{"command": command[0], "args": command[1:]}]})),
    "python, a list": lambda command: ("go.py", f"import subprocess\nsubprocess.run({command!r})\n"),
    "python, a text": lambda command: ("go.py", f"import os\nos.system({shlex.join(command)!r})\n"),
    "docker": lambda command: ("run.sh", f"docker run --gpus all --rm -it image:tag {shlex.join(command)}\n"),
}


@for_each("form", FORMS)
def test_every_form_of_a_command_gives_the_same_knobs(form: str) -> None:
    assert len(commands()) > 10
    for folder, command in sample(list(commands().items()), 6):
        assert (folder, knobs(*FORMS[form](command))) == (folder, knobs("run.sh", shlex.join(command)))


def test_each_line_of_a_recipe_has_a_shell_of_its_own() -> None:
    """What one line exports, the next one does not have, unless a backslash joins them or all lines are one script."""
    recipe = "train:\n\texport CUDA_VISIBLE_DEVICES=0,1{}\n\tpython train.py --batch 8 --epochs 3\n"
    for text, cards in ((recipe.format(""), None), (recipe.format(" && \\"), "0,1"), (".ONESHELL:\n\n" + recipe.format(""), "0,1")):
        assert knobs("Makefile", text).get("env.cuda_visible_devices") == cards
        assert knobs("Makefile", text)["train.micro_batch_size"] == 8


@for_each("form", ["```\n{}\n```", "```bash\n{}\n```", "{}", "~~~\n$ {}\n~~~", "I use `{}` here.", "```\n!{}\n```", "- command: {}"])
def test_every_form_of_a_command_in_a_page_gives_the_same_knobs(form: str) -> None:
    for folder, command in sample(list(commands().items()), 2):
        page = f"### What I ran\n\nHere is my command:\n\n{form.format(shlex.join(command))}\n\nThe error:\n```\n{OOM}```\n"
        wanted = {name: value for name, value in knobs("run.sh", shlex.join(command)).items() if value is not None}
        book = FactBook(explain(Source.text(page, "page.md")).facts)
        assert (folder, {name: book.value(name) for name in wanted}) == (folder, wanted)


@pytest.mark.parametrize(
    "text",
    [
        "{" * 5000,
        '{"cells": [' * 400 + '"nbformat" "cell_type"',
        "a:\n\t$(" * 5000,
        "f'{" * 5000 + "--x",
        "x = y + y\n" * 2000 + "--",
        "command: [" * 3000,
    ],
)
def test_hostile_texts_are_read_quickly(text: str) -> None:
    for name in ("a.json", "Makefile", "x.py"):
        read(name, text)


# -- options cut short

CONTROLNET = "accelerate launch train_controlnet_sdxl.py --pretrained_model_name_or_path a/b --resolution 1024 --train_batch_size 4"


@for_each(
    "command, whole",
    [
        (f"{CONTROLNET} --gradient_accum 2", "--gradient_accumulation_steps"),
        (f"{CONTROLNET} --gradient_checkpointin", "--gradient_checkpointing"),
        ("deepspeed --module openrlhf.cli.train_sft --pretrain a/b --micro_train_batch 2 --max_len 2048", "--micro_train_batch_size"),
        ("llamafactory-cli train --model_name_or_path a/b --stage sft --per_device_train 2", "--per_device_train_batch_size"),
        ("vllm serve a/b --max-num-seqs 8 --gpu-mem 0.9", "--gpu-memory-utilization"),
    ],
)
def test_an_option_cut_short_is_the_one_that_begins_so(command: str, whole: str) -> None:
    """As argparse takes it, in the spelling of the command; nothing is called unknown, and the value is changed where it stands."""
    found = settings_of(command)
    assert whole in [entry.key for document in found.documents for entry in document.entries]
    assert not [notice for notice in found.notices if notice.code == "config.unknown_key"]


@for_each(
    "command",
    [
        "llamafactory-cli train --model_name_or_path a/b --stage sft --per_device 2",  # training or evaluation
        f"{CONTROLNET} --checkpoint 2",  # more than one
        f"{CONTROLNET} --model x",  # it may be the script's own
        "accelerate launch --mixed_prec bf16 train.py",  # allow_abbrev=False
        "trl sft --model_name_or_path a/b --dataset_name d --per_device_train 2",  # the same
    ],
)
def test_an_option_cut_short_is_left_alone_where_the_parser_refuses_it(command: str) -> None:
    found = settings_of(command)
    written = {word for word in command.split() if word.startswith("--")}
    assert written >= {entry.key for document in found.documents for entry in document.entries if entry.key.startswith("--")}


def test_the_value_of_an_option_cut_short_is_changed_where_it_stands() -> None:
    found = settings_of(f"{CONTROLNET} --gradient_accum 2")
    edits = knob_edits.edits(found.documents, FactBook(found.facts), {"train.gradient_accumulation": 8})
    assert edits
    assert patching.texts(found.documents, edits) == {"run.sh": f"{CONTROLNET} --gradient_accum 8\n"}


def settings_of(command: str) -> Settings:
    return config_reader.read([ConfigSource("run.sh", f"{command}\n".encode())], Reading(), FactBook())
