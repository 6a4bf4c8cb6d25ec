"""--format html and sarif end to end: the real process writes them to standard output, masked unless told otherwise."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from checkout import ROOT
from forked import ENTRY, forked

CASE = ROOT / "corpus" / "llamafactory-6800"


def oomdoctor(*words: str, cwd: Path = CASE) -> subprocess.CompletedProcess[str]:
    return forked(ENTRY, *words, cwd=cwd, env={**os.environ, "COLUMNS": "80", "LC_ALL": "C.UTF-8"})


def test_a_page_is_written_with_the_contracts_status() -> None:
    done = oomdoctor("explain", "error.log", "--config", "qwen2vl_dpo.yaml", "--format", "html", "--lang", "zh")
    assert done.returncode == 0 and done.stdout.startswith("<!doctype html>") and '<html lang="zh-CN">' in done.stdout
    assert 'href="#in1-L84"' in done.stdout and "+cutoff_len: " in done.stdout.replace("</span>", "").replace('<span class="add">', "")


def test_code_scanning_is_written_for_both_commands() -> None:
    edited = {"explain": "qwen2vl_dpo.yaml", "check": "qwen2vl_dpo.yaml"}  # where the first step is taken: the length
    for command in (("explain", "error.log", "--config"), ("check", "--config")):
        done = oomdoctor(*command, "qwen2vl_dpo.yaml", "--format", "sarif")
        results = json.loads(done.stdout)["runs"][0]["results"]
        assert done.returncode == (0 if command[0] == "explain" else 4)
        assert results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == edited[command[0]]


@pytest.mark.parametrize("form", ["html", "sarif", "markdown"])
def test_what_is_handed_on_is_masked(form: str, tmp_path: Path) -> None:
    (tmp_path / "train.yaml").write_text(
        "cutof_len: 4096\nhub_token: hf_InventedInventedInventedInvented\nstage: sft\nfinetuning_type: lora\n"
    )
    words = ("check", "--config", "train.yaml", "--format", form)
    assert "hf_Invented" not in oomdoctor(*words, cwd=tmp_path).stdout


@pytest.mark.parametrize("form", ["html", "sarif", "json"])
def test_two_documents_do_not_share_standard_output(form: str) -> None:
    done = oomdoctor("explain", "error.log", "--format", form, "--patch", "-")
    assert done.returncode == 2 and done.stdout == "" and f"--format {form}" in done.stderr


def test_facts_are_no_diagnosis() -> None:
    done = oomdoctor("facts", "error.log", "--format", "html")
    assert done.returncode == 2 and done.stdout == "" and len(done.stderr.splitlines()) == 1
