"""A program is told what to do in its own words; that no answer has those of another program, tests/every_answer.py holds."""

from __future__ import annotations

from pathlib import Path

from every_answer import NAME

from diagnose import explain
from diagnose.plan.remedies.remedy_rules import rules


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
