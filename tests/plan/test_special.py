"""Another release, and a key put right: remedies that no table of knobs can say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from workshop import GIB, TRAIN_YAML, cause, edit, job, judged, reprice

from diagnose import explain
from diagnose.adapters.formats.settings import Entry
from diagnose.decide.verdict import Judgement
from diagnose.facts import Fact, FactBook, Witness
from diagnose.plan import make
from diagnose.plan.choose import special_remedies
from diagnose.plan.patch import patching
from diagnose.plan.remedies.remedy import Outcome
from diagnose.units import Size

WASTEFUL = {
    "wasteful": {
        "id": "holds-everything-twice", "library": "openrlhf", "since": "0.6.0", "until": "0.7.1", "cure": "upgrade",
        "symptom": ["train.framework == openrlhf"],
    }
}  # fmt: skip


def outcome(facts: FactBook, judgement: Judgement) -> Outcome:
    return make(facts, reprice(facts), judgement, [TRAIN_YAML], reprice=reprice, edit=edit)


def test_a_release_known_to_be_bad_names_the_first_good_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command pins what cures; where the ledger does not depend on the release, the cause's bytes are what it takes away."""
    monkeypatch.setattr(special_remedies, "entries", lambda table: WASTEFUL.values())
    verdict = cause("software_bug", "upgrade_library")._replace(rule="holds-everything-twice", accounts_for=Size.exactly(4 * GIB))
    first = outcome(job(train__framework="openrlhf", version__openrlhf="0.7.0"), judged(verdict)).remedies[0]
    assert first.id == "upgrade_library"
    assert first.command is not None and first.command.en == "pip install 'openrlhf>=0.7.1'"
    assert first.saves is not None and first.saves.bytes == 4 * GIB


def test_a_bad_release_that_is_only_also_true_does_not_lead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(special_remedies, "entries", lambda table: WASTEFUL.values())
    bug = cause("software_bug", "upgrade_library", also_true=True)._replace(rule="holds-everything-twice")
    found = outcome(job(), judged(cause("activations", "gradient_checkpointing"), bug))
    assert found.remedies[0].id == "gradient_checkpointing"


def test_going_back_is_rejected_where_no_release_is_known_to_be_bad() -> None:
    found = outcome(job(version__torch="2.5.1"), judged(cause("activations", "gradient_checkpointing")))
    said = next(each.reason.en for each in found.rejected if each.id == "downgrade_library")
    assert "torch 2.5.1" in said


UNREAD = Entry("sequence_length", "2048", 17, 21, 1, 18)


def misspelt(**facts: str) -> FactBook:
    book = job(**{"train__max_seq_len": "512", **facts})
    seen = Witness("train.yaml", 1, key="sequence_length")
    unread = [
        Fact("config.unknown_key", "sequence_length", "config", seen),
        Fact("config.wanted_knob", "train.max_seq_len", "config", seen),
    ]
    return FactBook([*book, *unread])


def test_a_key_that_is_not_read_is_renamed_with_its_value() -> None:
    facts = misspelt()
    document = replace(TRAIN_YAML, entries=(UNREAD,))
    found = make(
        facts, reprice(facts), judged(cause("config_not_effective", "fix_config_not_applied")), [document], reprice=reprice, edit=edit
    )  # fmt: skip
    first = found.remedies[0]
    assert (first.edits[0].key, first.edits[0].renamed, first.edits[0].to) == ("sequence_length", "train.max_seq_len", "2048")
    assert first.knobs == (("train.max_seq_len", 2048),) and first.saves is None


AXOLOTL = (
    "base_model: meta-llama/Llama-3.1-8B\nadapter: lora\nsequence_len: 8192\nmicro_batch_size: 4\n"
    "gradient_checkpoint: true  # ours\nbf16: auto\n"
)
SCRIPT = "deepspeed --module openrlhf.cli.train_sft --pretrain a/b --max_len 4096\n"
FAILED = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.57 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.02 GiB is "
    "free. Including non-PyTorch memory, this process has 78.12 GiB memory in use. Of the allocated memory 67.44 GiB is allocated by "
    "PyTorch, and 9.01 GiB is reserved by PyTorch but unallocated."
)


def test_a_misspelt_word_and_the_remedy_that_wants_it_are_one_edit(tmp_path: Path) -> None:
    """The line is renamed, not left to stand beside a new one, and what it says is read as the framework reads it."""
    (tmp_path / "axolotl.yaml").write_text(AXOLOTL, "utf-8")
    found = explain(FAILED, configs=[tmp_path / "axolotl.yaml"])
    assert found.outcome.plan is not None
    (new,) = patching.texts(found.documents, found.outcome.plan.edits).values()
    assert "gradient_checkpointing: true  # ours\n" in new
    assert new.count("gradient_checkpoint") == 1


def test_a_variable_that_an_edit_exports_is_not_to_be_exported_again(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(SCRIPT, "utf-8")
    found = explain(FAILED, configs=[tmp_path / "run.sh"])
    (remedy,) = (remedy for remedy in found.outcome.remedies if remedy.id == "expandable_segments")
    assert ([edit.key for edit in remedy.edits], remedy.env) == (["PYTORCH_CUDA_ALLOC_CONF"], ())
    assert "export PYTORCH_CUDA_ALLOC_CONF" not in found.to_markdown()
    assert "export PYTORCH_CUDA_ALLOC_CONF" in explain(FAILED).to_markdown()


def test_a_script_that_moves_the_model_first_is_put_right_without_an_edit() -> None:
    found = outcome(job(script__cuda_before_shard="enabled"), judged(cause("config_not_effective", "fix_config_not_applied")))
    rules = [each.rule for each in found.remedies] + [each.rule for each in found.rejected]
    assert "shard-before-moving" in rules
