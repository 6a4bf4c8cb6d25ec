"""A variable is set as the shell of the job sets it, in every form of the answer."""

from __future__ import annotations

from dataclasses import replace

import pytest
from collected import for_each
from samples import SAMPLES

from diagnose.adapters.formats.settings import Document
from diagnose.diagnosis import Diagnosis
from diagnose.facts import Input
from diagnose.parse.model.event import Frame
from diagnose.render.formats import RENDERERS
from diagnose.render.markup.chat_within_limit import chat
from diagnose.render.parts import advice_text, words
from diagnose.render.parts.view import View

SET = ("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",)


def job(script: str = "", frame: str = "", encoding: str = "utf-8") -> Diagnosis:
    """A failure whose plan sets a variable; the script that started it, the file in its traceback, how its log was written."""
    sample = SAMPLES["dpo_logits"]()
    events = tuple(replace(event, frames=(Frame(frame, 9, "step"),) if frame else ()) for event in sample.events)
    documents = (Document("run.cmd", "shell", "shell", script, ()),) if script else ()
    return replace(sample, events=events, documents=documents, inputs=(Input("error.log", "log", 9, 1, encoding),))


@for_each(
    "told, shell",
    [
        (job(), "bash"),
        (job(frame="/job/train.py"), "bash"),
        (job(script="#!/bin/bash\npython train.py\n", frame="C:\\job\\train.py"), "bash"),
        (job(script="@echo off\r\nset X=1\r\npython train.py\r\n"), "cmd"),
        (job(script='$env:X = "1"\npython train.py\n'), "powershell"),
        (job(frame="C:\\job\\train.py"), "windows"),
        (job(frame="D:/job/train.py"), "windows"),
        (job(frame="C:\\job\\train.py", encoding="utf-16"), "powershell"),
    ],
)
def test_the_script_says_which_shell_it_is_else_the_traceback(told: Diagnosis, shell: str) -> None:
    assert advice_text.shell(told) == shell


def test_where_only_windows_is_known_both_of_its_shells_are_served() -> None:
    """`set` means another thing to PowerShell, and `$env:` nothing to the other."""
    assert advice_text.shell_lines(SET, job(frame="C:\\job\\train.py")) == [
        "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        '$env:PYTORCH_CUDA_ALLOC_CONF = "expandable_segments:True"  # PowerShell',
    ]


@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_no_form_tells_windows_to_export(form: str) -> None:
    windows, linux = (RENDERERS[form](job(frame=frame), "en", View(verbose=True)) for frame in ("C:\\job\\train.py", "/job/train.py"))
    assert "export PYTORCH" in linux and "set PYTORCH" in windows and "export PYTORCH" not in windows


def test_a_message_neither() -> None:
    assert "export" not in chat(job(frame="C:\\job\\train.py"), "slack").text


@pytest.mark.parametrize(
    ("target", "shown"),
    [
        ("command line", "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:512"),
        ("train.sh", "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:512"),
        ("pod.yaml", "PYTORCH_CUDA_ALLOC_CONF: max_split_size_mb:512"),
    ],
)
def test_a_variable_that_is_added_is_spelt_as_its_place_spells_it(target: str, shown: str) -> None:
    """It is no key of a mapping where a shell reads it."""
    assert words.setting("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:512", target) == shown


@for_each(
    "key, target, shown",
    [
        ("tokenizer.max_seq_len", "train.sh", "tokenizer.max_seq_len=2048"),
        ("tokenizer.max_seq_len", "8B_full.yaml", "tokenizer.max_seq_len: 2048"),
        ("--max_length", "train.sh", "--max_length 2048"),
        ("max_length", "train.py", "max_length=2048"),
    ],
)
def test_a_setting_stands_as_its_file_writes_it(key: str, target: str, shown: str) -> None:
    assert words.setting(key, "2048", target) == shown
