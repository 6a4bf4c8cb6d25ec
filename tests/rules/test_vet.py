"""`rules check`: each kind of fault is found, named at its line, in both languages; our own rules have none."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnose.vet import links, rule_check
from diagnose.vet.fault import Fault
from diagnose.vet.paper import Paper, papers

GOOD = """\
id: sample-rule
cause: fragmentation
status: stable
title: {en: In pieces, zh: 碎片}
when:
  all:
    - log.requested > log.free
evidence: {en: "{log.requested} failed", zh: "{log.requested} 失败"}
remedies: [expandable_segments]
references: [https://docs.pytorch.org/docs/stable/notes/cuda.html]
given: {log.requested: 4 GiB, log.free: 1 GiB}
examples:
  - {name: more than is free, expect: fires}
  - {name: less, with: {log.free: 9 GiB}, expect: quiet}
  - {name: no figure, with: {log.free: unknown}, expect: unknown}
"""


def faults(folder: Path, text: str, name: str = "sample-rule") -> list[Fault]:
    (folder / "causes").mkdir(exist_ok=True)
    (folder / "causes" / f"{name}.yaml").write_text(text, encoding="utf-8")
    return [fault for fault in rule_check.check([folder]) if str(folder) in fault.file]


def test_our_own_rules_are_clean() -> None:
    assert [str(fault) for fault in rule_check.check()] == []


def test_a_good_rule_is_clean(tmp_path: Path) -> None:
    assert [str(fault) for fault in faults(tmp_path, GOOD)] == []


@pytest.mark.parametrize(
    ("change", "says", "line"),
    [
        (("cause: fragmentation", "cause: fragmentaton"), "fragmentation", 2),
        (("status: stable", "status: done"), "trial, stable, retired", 3),
        (("evidence:", "evidnce:"), "did you mean evidence", 8),
        (("title: {en: In pieces, zh: 碎片}", "title: {en: In pieces}"), "en and zh", 4),
        (("zh: 碎片", "zh: pieces"), "its language", 4),
        (("en: In pieces", "en: TODO"), "filler", 4),
        (("log.requested > log.free", "log.requestd > log.free"), "log.requested", 7),
        (("log.requested > log.free", "log.requested > 3"), "cannot be compared", 7),
        (("log.requested > log.free", "log.requested > 1 GB"), "GiB", 7),
        (("log.requested > log.free", "log.phase == loss and"), "cannot read", 7),
        (("{log.requested} 失败", "{log.free} 失败"), "different figures", 8),
        (("[expandable_segments]", "[expandable_segment]"), "expandable_segments", 9),
        (("https://docs.pytorch.org/docs/stable/notes/cuda.html", "https://pytorch.org"), "no https page", 10),
        (("log.free: 1 GiB", "log.free: 1 apple"), "is a size", 11),
        (("expect: fires", "expect: quiet"), "comes out fires", 13),
        (("with: {log.free: unknown}, expect: unknown", "with: {log.free: 8 GiB}, expect: quiet"), "no example is unknown", 13),
        (("    - log.requested > log.free\n", "    - log.requested > log.free\n    - log.requested > 1 GiB\n"), "no example misses", 8),
        (("id: sample-rule", "id: other-rule"), "not the file's name", 1),
        (("evidence:", "yields_to: [nobody]\nevidence:"), "neither a rule nor a cause", 8),
        (("{log.requested} failed", "{log.requested} failed" + " and then again" * 8), "a sentence of 26 words, at most 24", 8),
        (("{log.requested} failed", "at that Moment {log.requested} failed"), "says “Moment”", 8),
        (("{log.requested} 失败", "根据所给信息，{log.requested} 失败"), "says “根据所给”", 8),
    ],
)  # fmt: skip
def test_each_fault_is_found_at_its_line(tmp_path: Path, change: tuple[str, str], says: str, line: int) -> None:
    assert change[0] in GOOD
    found = faults(tmp_path, GOOD.replace(*change))
    said = [fault for fault in found if says in fault.message.en]
    assert said, [str(fault) for fault in found]
    assert said[0].line == line
    assert said[0].to("zh") != said[0].to("en")


def test_short_sentences_in_a_row_are_not_one_long_one(tmp_path: Path) -> None:
    """A figure with a point ends none, and part of another word is no word to avoid."""
    spoken = "momentum is 0.9 and {log.requested} failed in torch 2.1. " * 3
    assert faults(tmp_path, GOOD.replace("{log.requested} failed", spoken.strip())) == []


def test_every_value_of_one_line_needs_an_example(tmp_path: Path) -> None:
    """Of `in (loss, forward)` each value is deleted once, as each line is."""
    text = GOOD.replace("log.requested > log.free\n", "log.requested > log.free\n    - log.phase in (loss, forward)\n")
    found = faults(tmp_path, text.replace("log.free: 1 GiB}", "log.free: 1 GiB, log.phase: loss}"))
    assert [fault.line for fault in found if "log.phase == forward" in fault.message.en] == [8], [str(fault) for fault in found]
    assert not [fault for fault in found if "log.phase == loss" in fault.message.en]


def test_a_figure_that_the_rule_does_not_read_may_be_unknown_when_it_speaks(tmp_path: Path) -> None:
    text = GOOD.replace("{log.requested} failed", "{log.capacity} failed").replace("{log.requested} 失败", "{log.capacity} 失败")
    assert any("log.capacity" in fault.message.en for fault in faults(tmp_path, text))


def test_fields_stand_in_the_order_of_the_handbook(tmp_path: Path) -> None:
    lines = GOOD.splitlines(keepends=True)
    text = "".join([*lines[:2], lines[3], lines[2], *lines[4:]])
    assert [fault.message.en for fault in faults(tmp_path, text)] == ["status belongs before title"]


def test_neighbours_that_fire_on_each_other_need_an_order(tmp_path: Path) -> None:
    faults(tmp_path, GOOD)
    twin = GOOD.replace("sample-rule", "twin-rule").replace("cause: fragmentation", "cause: weights").replace("In pieces", "Again")
    assert any("sample-rule and twin-rule" in fault.message.en for fault in faults(tmp_path, twin, "twin-rule"))
    settled = twin.replace("evidence:", "yields_to: [sample-rule]\nevidence:")
    assert faults(tmp_path, settled, "twin-rule") == []


def test_yielding_in_a_circle_is_refused(tmp_path: Path) -> None:
    faults(tmp_path, GOOD.replace("evidence:", "yields_to: [twin-rule]\nevidence:"))
    twin = GOOD.replace("sample-rule", "twin-rule").replace("cause: fragmentation", "cause: weights")
    found = faults(tmp_path, twin.replace("evidence:", "yields_to: [sample-rule]\nevidence:"), "twin-rule")
    assert any("circle" in fault.message.en for fault in found)


def test_a_rule_does_not_yield_to_itself(tmp_path: Path) -> None:
    assert any("itself" in str(fault) for fault in faults(tmp_path, GOOD.replace("evidence:", "yields_to: [sample-rule]\nevidence:", 1)))


def test_faults_are_said_in_both_languages(tmp_path: Path) -> None:
    (fault,) = faults(tmp_path, GOOD.replace("[expandable_segments]", "[nothing]"))
    assert "not allowed" in fault.to("en") and "不允许" in fault.to("zh")


def test_an_id_is_given_once(tmp_path: Path) -> None:
    faults(tmp_path, GOOD)
    assert any("is taken by" in fault.message.en for fault in faults(tmp_path, GOOD, "other"))


FORMLESS = "id: sample-rule\ncause: logits\ntitle: t\nwhen: {{all: [{line}]}}\nevidence: e\nremedies: r\nreferences: r\nexamples: e\n"


@pytest.mark.parametrize(
    "text",
    [
        "id: [\n",
        "- 1\n- 2\n",
        "just words\n",
        "id: sample-rule\n",
        "\x00\x01",
        "id: &a x\ncause: *a\n",
        "id: sample-rule\ncause: logits\nwhen: no\n",
        FORMLESS.format(line="[log.free > 1 GiB]"),
        FORMLESS.format(line="log.on_card == enabled"),
    ],
)
def test_a_file_that_is_no_rule_is_a_fault_not_a_crash(tmp_path: Path, text: str) -> None:
    assert faults(tmp_path, text)


def test_all_faults_are_reported_at_once(tmp_path: Path) -> None:
    text = GOOD.replace("en: In pieces", "en: TODO").replace("[expandable_segments]", "[nothing]").replace("log.free: 1 GiB", "log.free: x")
    assert len(faults(tmp_path, text)) >= 3


def test_targets_of_a_cause_word_are_its_rules(tmp_path: Path) -> None:
    faults(tmp_path, GOOD)
    held = {str(item.data["id"]): item for item in papers(tmp_path) if isinstance(item, Paper)}
    yielding = Paper("x", "x", "causes", {"id": "x", "yields_to": ["fragmentation"]}, {})
    assert list(links.targets(yielding, held, links.rules_by_cause(held))) == ["sample-rule"]


REMEDY = """\
id: sample-remedy
remedy: lower_seq_len
status: stable
title: {en: Shorter, zh: 更短}
turns: train.max_seq_len
to: {largest: fits, step: 512}
saves: ledger
price: {results: change, speed: faster, effort: key}
not_when:
  - if: data.longest_sample <= 25% of train.max_seq_len
    en: Your samples are shorter.
    zh: 样本更短。
references: [https://docs.pytorch.org/docs/stable/notes/cuda.html]
examples:
  - {framework: llamafactory, value: "1536", before: "cutoff_len: 4096", after: "cutoff_len: 1536"}
"""


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("remedy: lower_seq_len", "remedy: lower_sequence"), "lower_seq_len"),
        (("turns: train.max_seq_len", "turns: train.max_len"), "no knob"),
        (("turns: train.max_seq_len", "turns: none"), "what to do"),
        (("results: change", "results: changes"), "may_change"),
        (("saves: ledger", "saves: log.nothing"), "log.nothing"),
        (("25% of train.max_seq_len", "25 GiB"), "cannot be compared"),
        (("    zh: 样本更短。\n", ""), "en and zh"),
        (("Your samples are shorter.", "Your samples are shorter" + " and shorter" * 11 + "."), "not_when has a sentence of 26 words"),
        (("not_when:", "programs:\n  llamacpp: {en: somebody else, zh: 别人}\nnot_when:"), "programs says “somebody else”"),
        (("framework: llamafactory", "framework: llamafactry"), "no framework"),
    ],
)
def test_each_fault_of_a_remedy_is_found(tmp_path: Path, change: tuple[str, str], says: str) -> None:
    assert change[0] in REMEDY
    (tmp_path / "remedies").mkdir()
    (tmp_path / "remedies" / "sample-remedy.yaml").write_text(REMEDY.replace(*change), encoding="utf-8")
    found = [fault for fault in rule_check.check([tmp_path]) if str(tmp_path) in fault.file]
    assert any(says in fault.message.en for fault in found), [str(fault) for fault in found]
