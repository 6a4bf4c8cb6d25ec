"""Every kind of file in rules/ has a declared form: a wrong key is refused with its line, in both languages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from diagnose import rule_files
from diagnose.families import Family
from diagnose.parse.messages.message_spec import StatementSpec
from diagnose.vet import schemas, tables

RULES = rule_files.home() / "rules"


def sample(kind: str) -> Path:
    """A file of a kind: the first of its folder."""
    single = RULES / f"{kind}.yaml"
    return single if single.is_file() else min((RULES / kind).glob("*.yaml"))


def test_our_own_tables_are_clean() -> None:
    """What we ship has no key that nobody reads."""
    assert [str(fault) for fault in tables.check(RULES)] == []


def test_every_file_is_of_a_kind() -> None:
    """A new table is declared before it is shipped, and a table that is gone is no longer declared."""
    there = {file.relative_to(RULES).parts[0].removesuffix(".yaml") for file in RULES.glob("**/*.yaml")}
    assert there == schemas.KINDS.keys() | schemas.RULES.keys()


@pytest.mark.parametrize("kind", schemas.KINDS)
def test_a_wrong_key_is_refused_with_its_line(tmp_path: Path, kind: str) -> None:
    """In a copy of our own file, whose last line is the wrong one."""
    text = sample(kind).read_text(encoding="utf-8").rstrip("\n")
    listed = isinstance(yaml.load(text, yaml.CSafeLoader), list)
    copy = tmp_path / f"{kind}.yaml"
    copy.write_text(f"{text}\n{'- {nobody: 1}' if listed else 'nobody: {nobody: {nobody: 1}}'}\n", encoding="utf-8")
    found = list(tables.of_file(copy, kind))
    assert {fault.line for fault in found} == {text.count("\n") + 2}, [str(fault) for fault in found]
    assert all("nobody" in fault.to("en") or "missing" in fault.to("en") for fault in found)


@pytest.mark.parametrize(
    ("kind", "written", "wrong"),
    [
        ("frameworks", "rank: ", "rnak: "),
        ("frameworks", "    default: ", "    defualt: "),
        ("models", "    hidden_size: ", "    hiden_size: "),
        ("hardware", "    arch: ", "    arhc: "),
        ("tensors", "  group: ", "  gruop: "),
        ("losses", "    when: {", "    wehn: {"),
        ("ledger", "slots: ", "slosts: "),
        ("effective", "over: [", "ovre: ["),
        ("families", "allocator: cuda", "alocator: cuda"),
        ("statements", "{family: ", "{famly: "),
        ("facts", "kind: size", "knid: size"),
        ("phrases", "{en: ", "{enn: "),
    ],
)
def test_a_misspelt_key_inside_is_refused_with_its_line(tmp_path: Path, kind: str, written: str, wrong: str) -> None:
    """However deep it stands, and with the key that was meant where one is near."""
    files = sorted((RULES / kind).glob("*.yaml")) or [RULES / f"{kind}.yaml"]
    text = next(text for file in files if f"{written}" in (text := file.read_text(encoding="utf-8")) and not text.startswith(written))
    text = f"\n{text}"
    at = text.index(written)
    copy = tmp_path / f"{kind}.yaml"
    copy.write_text(text.replace(written, wrong, 1), encoding="utf-8")
    key = wrong.strip(" {[").partition(":")[0]
    said = [fault for fault in tables.of_file(copy, kind) if key in fault.to("en")]
    assert [fault.line for fault in said] == [text[:at].count("\n") + 1]
    assert "did you mean" in said[0].to("en")
    assert "是否想写" in said[0].to("zh")


def test_a_value_of_another_form_is_refused(tmp_path: Path) -> None:
    """A list where a word belongs would be read as one long word."""
    copy = tmp_path / "roles.yaml"
    copy.write_text("- role: [actor, critic]\n", encoding="utf-8")
    assert [fault.to("en") for fault in tables.of_file(copy, "roles")] == [f"{copy}:1: role does not have the form that is needed here"]


@pytest.mark.parametrize("text", ["a: [", "", "a: &b 1\nc: *d\n"])
def test_what_is_no_table_is_a_fault_not_a_crash(tmp_path: Path, text: str) -> None:
    """Somebody edits by hand."""
    copy = tmp_path / "families.yaml"
    copy.write_text(text, encoding="utf-8")
    assert list(tables.of_file(copy, "families"))


def test_a_long_sentence_of_an_answer_is_refused_with_its_line(tmp_path: Path) -> None:
    """Sentences that no rule brings are held to the same length; a placeholder is one word, and two short sentences are no long one."""
    path = tmp_path / "phrases.yaml"
    words = " ".join(["word"] * 20)
    path.write_text(f'fine: {{en: "{words} {{x}}. {words}.", zh: 好}}\nlong: {{en: "{words} {words}", zh: 长}}\n', encoding="utf-8")
    found = list(tables.of_file(path, "phrases"))
    assert [fault.line for fault in found] == [2] and "40 words" in found[0].to("en")


def test_readers_and_declarations_name_the_same_fields() -> None:
    """Tables with a type of their own in the code are declared with its fields."""
    assert set(schemas.FamilyRow.model_fields) == set(Family._fields)
    assert set(schemas.Statement.model_fields) == set(StatementSpec._fields)


def test_a_start_does_without_the_declarations() -> None:
    """pydantic takes longer to import than a diagnosis takes."""
    code = "import sys, diagnose.pipeline, diagnose.surfaces.terminal.answer_command; print('pydantic' in sys.modules)"
    env = {**os.environ, "PYTHONPATH": str(rule_files.HERE.parent)}
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env).stdout.strip() == "False"
