"""A program is told what to do in its own words: no answer has an option, key or variable that another program has."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from pathlib import Path

from cases import CORPUS, diagnosed
from collected import for_each

from diagnose import explain
from diagnose.adapters.schema import framework_tables
from diagnose.plan.remedies.remedy_rules import rules

#: Options, variables and names of settings in a sentence.
NAME = re.compile(r"--[a-z][\w-]+|\b[A-Z]{2,}(?:_[A-Z]+)+\b|\b[a-z]+(?:_[a-z]+)+\b")


@cache
def names_of_programs() -> dict[str, set[str]]:
    """By name that stands in the words of a remedy for one program: the programs that have it."""
    found = defaultdict(set)
    for rule in rules():
        for program, text in rule.programs.items():
            if program.endswith("_oom"):  # a scheduler's own words, beside the general ones
                continue
            for name in NAME.findall(text.en):
                found[name].add(program)
    return found


@cache
def own_names(program: str) -> set[str]:
    if program not in framework_tables.names():
        return set()
    plain = {part.strip("-").replace("-", "_") for key in framework_tables.known(program) for part in (key, key.rpartition(".")[2])}
    return plain | {f"--{name}" for name in plain} | {f"--{name.replace('_', '-')}" for name in plain}


def cases_of_programs() -> list[str]:
    return [folder.name for folder in sorted(CORPUS.iterdir()) if (folder / "expected.yaml").is_file()]


@for_each("name", cases_of_programs())
def test_no_answer_has_words_of_another_program(name: str) -> None:
    diagnosis = diagnosed(name)
    program = next((str(fact.value) for fact in diagnosis.facts if fact.name == "run.program"), None)
    if program is None:
        return
    known = names_of_programs()
    told = [text for remedy in diagnosis.outcome.remedies for text in (remedy.title.en, remedy.why.en)]
    strange = (
        {word for text in told for word in NAME.findall(text) if word in known and program not in known[word]} - own_names(program) - PLAIN
    )
    assert not strange, f"{program}: {sorted(strange)}"


#: Names that general advice may use: of CUDA, PyTorch and Python, whatever some trainer calls its settings.
PLAIN = {
    "CUDA_VISIBLE_DEVICES",
    "state_dict_type",
    "local_rank",
    "inference_mode",
    "from_pretrained",
    "pin_memory",
    "batch_size",
    "vllm_tensor_parallel_size",
}


@for_each("name", cases_of_programs())
def test_general_words_are_no_settings_of_another_program(name: str) -> None:
    """What is said to a known program for want of words of its own names no setting that other tables have and its own has not."""
    diagnosis = diagnosed(name)
    program = next((str(fact.value) for fact in diagnosis.facts if fact.name == "run.program"), None)
    if program is None:
        return
    general = {rule.id for rule in rules() if program not in rule.programs}
    told = [remedy.why.en for remedy in diagnosis.outcome.remedies if remedy.rule in general]
    words = {word for text in told for word in NAME.findall(text) if "_" in word} - PLAIN - own_names(program)
    strange = {word for word in words if word in settings_of_tables()}
    assert not strange, f"{program}: {sorted(strange)}"


@cache
def settings_of_tables() -> frozenset[str]:
    return frozenset().union(*(own_names(name) for name in framework_tables.names()))


def test_the_two_languages_name_the_same() -> None:
    for rule in rules():
        for program, text in rule.programs.items():
            assert set(NAME.findall(text.en)) == set(NAME.findall(text.zh)), (rule.id, program)


def test_a_server_without_files_is_told_its_options(tmp_path: Path) -> None:
    """What a server is started with are options of a command, whatever its table calls them."""
    log = tmp_path / "router.log"
    log.write_text('INFO text_embeddings_router: src/lib.rs:248: Starting\nError: DriverError(CUDA_ERROR_OUT_OF_MEMORY, "out of memory")\n')
    told = [remedy.command.en for remedy in explain(log).outcome.remedies if remedy.command]
    assert "--max-batch-tokens 2048 (Text Embeddings Inference)" in told, told
