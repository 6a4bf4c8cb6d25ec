"""An added key that an older release lacks is said to be so, in every format, where that release may be in use; else nothing is said."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

from collected import for_each

from diagnose import rule_files
from diagnose.adapters.formats.settings import Document
from diagnose.adapters.schema import declared_keys, framework_tables
from diagnose.diagnosis import Diagnosis
from diagnose.facts import Fact, FactBook, Witness
from diagnose.phrases import Lang, same
from diagnose.pipeline import explain
from diagnose.plan.edits import key_releases
from diagnose.plan.remedies.remedy import Edit, Since
from diagnose.render.markup import html
from diagnose.render.markup.chat_within_limit import chat
from diagnose.render.text import one_screen
from diagnose.scan.source import Source
from diagnose.surfaces.terminal import patch_writer
from diagnose.units import Version

SEVERAL = [
    name
    for name in sorted(rule_files.table("declared"))
    if (record := declared_keys.record(name)) is not None and len({column.release for column in record.columns}) > 1
]


def later_keys(name: str) -> Iterator[tuple[str, str, Version, Version]]:
    """(entry point, key, the last recorded release that lacks it, the newest) of the keys that a table may add and a newer release has."""
    record, table = declared_keys.record(name), framework_tables.table(name)
    assert record is not None
    for entry in dict.fromkeys(column.entry for column in record.columns):
        words = [declared_keys._words(entry)]
        own = [column for column in declared_keys._at(record.columns, words) if column.entry == entry]
        alone = own == declared_keys._at(record.columns, words)  # a word names no other entry point as well
        for key in {key.key for key in table.keys if key.addable and not key.struct and key.version == table.version and key.reads(entry)}:
            lacking = [column.release for column in own if column.number not in record.names.get(key, frozenset())]
            if alone and lacking and lacking[-1] < own[-1].release:
                yield entry, key, lacking[-1], own[-1].release


def since(name: str, entry: str, key: str, release: Version | None = None) -> Since | None:
    """What is said of a key that an edit adds to a file of this entry point."""
    facts = [] if release is None else [Fact(framework_tables.table(name).version, release, "log", Witness("run.log", 1))]
    document = Document("run.yaml", name, "yaml", "", (), entry=entry)
    (edit,) = key_releases.dated([Edit("run.yaml", key, None, "1")], [document], FactBook(facts))
    return edit.since


@for_each("name", SEVERAL)
def test_a_key_that_an_older_release_lacks_says_so_unless_a_newer_one_is_in_use(name: str) -> None:
    for entry, key, lacking, newest in later_keys(name):
        said = since(name, entry, key)
        assert said is not None, (entry, key)
        assert lacking < Version(said.release) <= newest, (entry, key, said)
        assert said.before != key
        assert since(name, entry, key, newest) is None, (entry, key)


def test_there_are_such_keys() -> None:
    """Else the property above holds for nothing."""
    assert sum(1 for name in SEVERAL for _ in later_keys(name)) > 200


def test_a_key_that_stands_there_already_or_is_removed_says_nothing() -> None:
    document = Document("run.yaml", "axolotl", "yaml", "", ())
    edits = [Edit("run.yaml", "activation_offloading", "false", "true"), Edit("run.yaml", "activation_offloading", "true", None)]
    assert [edit.since for edit in key_releases.dated(edits, [document], FactBook())] == [None, None]


@for_each(
    "framework, entry, key, wanted",
    [
        ("swift", "swift sft", "use_liger_kernel", Since("swift", "3.3", "use_liger")),  # by its table, whose release is the nearer
        ("axolotl", "", "activation_offloading", Since("axolotl", "0.12")),
        ("pytorch", "", "from_pretrained.dtype", Since("transformers", "4.56")),  # a key of another library
        ("pytorch", "", "from_pretrained.attn_implementation", None),  # older than all recorded ones
    ],
)
def test_the_release_is_the_tables_own_where_it_has_one(framework: str, entry: str, key: str, wanted: Since | None) -> None:
    assert since(framework, entry, key) == wanted


def test_a_key_that_another_needs_says_it_too() -> None:
    assert since("prime_rl", "", "model.optim_cpu_offload") == Since("prime_rl", "0.4")


def test_of_a_release_between_two_recorded_ones_nobody_knows() -> None:
    """RLOOConfig of TRL 0.17 lacks it, that of 0.24 has it: of 0.19 both are said."""
    said = since("trl", "RLOOConfig", "beta", Version("0.19.0"))
    assert said == Since("trl", "0.24", after="0.17")
    assert key_releases.text(said).en == "new after TRL 0.17, there by 0.24 at the latest"
    assert key_releases.text(said).zh == "TRL 0.17 之后新增，最迟 0.24 已有"
    for known in (Version("0.24.0"), Version("1.0")):
        assert since("trl", "RLOOConfig", "beta", known) is None


def test_a_programs_own_words_say_it_behind_the_key() -> None:
    words = same("Add --blocks_to_swap N: so many blocks stay on the host.")
    said = key_releases.in_words(words, "kohya", (), FactBook())
    assert said.en == "Add --blocks_to_swap N (kohya sd-scripts 0.10.1 or newer): so many blocks stay on the host."
    assert said.zh.startswith("Add --blocks_to_swap N（需 kohya sd-scripts 0.10.1 及以上）")
    known = FactBook([Fact("version.kohya", Version("0.10.1"), "log", Witness("run.log", 1))])
    assert key_releases.in_words(words, "kohya", (), known) == words


# -- in every format

CONFIG = """base_model: meta-llama/Llama-3.1-8B
adapter: lora
sequence_len: 8192
micro_batch_size: 1
gradient_checkpointing: true
flash_attention: true
"""
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB. GPU 0 has a total capacity of 23.65 GiB of which 1.20 GiB is "
    "free. Of the allocated memory 20.00 GiB is allocated by PyTorch, and 1.20 GiB is reserved by PyTorch but unallocated.\n"
)
CLAUSE = {"en": "Axolotl 0.12 or newer", "zh": "需 Axolotl 0.12 及以上"}


def answer(folder: Path, log: str = "") -> Diagnosis:
    """A failure whose plan moves activations to the host, by a key that came with 0.12."""
    config = folder / "run.yaml"
    config.write_text(CONFIG)
    found = explain(Source.text(f"{log}{OOM}", "run.log"), configs=[config], set={"report.helped": "activation_offload"})
    assert any(edit.key == "activation_offloading" for remedy in found.outcome.remedies for edit in remedy.edits)
    return found


@for_each("lang", ["en", "zh"])
def test_every_format_says_it(lang: Lang, tmp_path: Path) -> None:
    found = answer(tmp_path)
    screen = one_screen.render(found, lang)
    assert CLAUSE[lang] in screen.replace("\n", " ")
    message = chat(found, "slack", lang)
    for text in (found.to_markdown(lang), html.render(found, lang), message.text):
        assert CLAUSE[lang] in text
    report = json.loads(json.dumps(found.to_dict(lang)))
    said = [edit["since"] for remedy in report["remedies"] for edit in remedy["edits"] if "since" in edit]
    assert {"program": "axolotl", "release": "0.12"} in said
    known = answer(tmp_path, "axolotl==0.19.0\n")
    assert not any(edit.since for remedy in known.outcome.remedies for edit in remedy.edits)
    assert CLAUSE[lang] not in one_screen.render(known, lang)


def test_a_patch_says_it_above_the_files_and_still_applies(tmp_path: Path) -> None:
    found = answer(tmp_path)
    patch, config = tmp_path / "plan.diff", str(tmp_path / "run.yaml")
    patch_writer.write(found, [config], str(patch), False, "en")
    head, _, rest = patch.read_text().partition("--- ")
    assert f"# activation_offloading: {CLAUSE['en']}" in head
    assert CLAUSE["en"] not in rest
    subprocess.run(["git", "apply", "--unsafe-paths", "-p1", str(patch)], cwd=tmp_path, check=True, capture_output=True)
    assert "activation_offloading" in Path(config).read_text()
