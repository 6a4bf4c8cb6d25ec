"""The manual is written from the rules, and what is written agrees with them."""

from __future__ import annotations

import posixpath
import re
from functools import cache
from pathlib import Path

from checkout import ROOT
from collected import for_each

from diagnose import rule_files
from diagnose.decide import rule_loader as causes
from diagnose.manual import manual_pages
from diagnose.manual.blocks import Block, Grid, Heading, Items, Paragraph, code, markdown, plain, quoted
from diagnose.manual.rule_index import HOME, LANGS, WORD_FIELD, PageAddress, load_index
from diagnose.manual.rule_wording import condition
from diagnose.plan.remedies import remedy_rules as remedies
from diagnose.surfaces.terminal.rules_command import render_blocks


@cache
def pages() -> dict[str, str]:
    return manual_pages.pages()


def anchors(text: str) -> set[str]:
    return set(re.findall(r'<a id="([^"]+)"></a>', text))


# -- the pages of this checkout


def test_the_written_pages_are_those_of_the_rules() -> None:
    """A rule that was changed without `make docs` leaves a manual that says something else."""
    folder = ROOT / HOME
    written = {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in folder.rglob("*.md")}
    stale = sorted(name for name in written.keys() | pages().keys() if written.get(name) != pages().get(name))
    assert not stale, "run `make docs`"


def test_the_manual_stays_small() -> None:
    assert sum(len(text.encode()) for text in pages().values()) < 3_600_000


def test_every_link_leads_somewhere() -> None:
    """To a page and an anchor of the manual, or to a file of the repository."""
    lost = []
    for name, text in pages().items():
        for address in re.findall(r"\]\(([^)]+)\)", text):
            path, _, anchor = address.partition("#")
            goal = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
            inside = goal in pages() and (not anchor or anchor in anchors(pages()[goal]))
            outside = (ROOT / HOME / goal).resolve()
            if not inside and not (goal not in pages() and outside.is_relative_to(ROOT) and outside.exists()):
                lost.append(f"{name}: {address}")
    assert not lost


def test_the_address_in_a_report_is_the_place_of_the_rule() -> None:
    """`url` of causes and remedies."""
    found, _ = causes.rules(trial=True)
    for url, name in [(rule.url, rule.id) for rule in found] + [(rule.url, rule.id) for rule in remedies.rules(trial=True)]:
        assert url.startswith(f"{HOME}/")
        page, _, anchor = url.removeprefix(f"{HOME}/").partition("#")
        assert anchor == name and anchor in anchors(pages()[page]), url


def test_every_rule_stands_on_its_page_in_both_languages() -> None:
    for entry in load_index().entries:
        for lang in LANGS:
            assert f"## {quoted(entry.raw['title'][lang])}\n" in pages()[PageAddress(lang, f"{entry.room}/{entry.word}.md").file]


def test_every_word_that_has_rules_has_a_name_and_causes_a_meaning() -> None:
    """Without them a page would be headed by a word of ours."""
    ours, render = rule_files.table("phrases")["manual"], rule_files.table("phrases")["render"]
    assert not [word for word in load_index().words("causes") if f"cause_{word}" not in ours or f"means_{word}" not in ours]
    assert not [word for word in load_index().words("remedies") if f"remedy_{word}" not in render]


def test_every_fact_and_knob_is_in_the_dictionaries() -> None:
    assert set(rule_files.table("facts")) <= anchors(pages()["facts.md"])
    assert set(rule_files.table("knobs")) <= anchors(pages()["zh/knobs.md"])


# -- what a page says


def test_a_cause_page_says_when_and_shows_its_examples_as_a_table() -> None:
    text = pages()["causes/software_bug.md"]
    assert "- `parallel.context > 1` — *sequence or context parallel degree* is more than 1" in text
    assert "| likely | nobody says which release ran | `version.openrlhf`: unknown |" in text
    assert "The list and its copy take 4.25 GiB" in text  # the figures of the first example
    assert "| 很可能 | `version.openrlhf`：未知 |" in pages()["zh/causes/software_bug.md"]


def test_a_remedy_page_names_the_key_of_each_framework_with_its_releases() -> None:
    text = pages()["remedies/lower_seq_len.md"]
    assert "| alpaca_lora, llamafactory, llamafactory_v1 | `cutoff_len: N` |" in text and "| trl | `max_length: N` | ≥ 0.16.0 |" in text
    assert "- The trained model changes." in text and "| `cutoff_len: 4096` | `cutoff_len: 1536` |" in text
    assert "`PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`" in pages()["remedies/expandable_segments.md"]


def test_a_remedy_page_leads_back_to_its_causes() -> None:
    assert "[Logits and loss](../causes/logits.md)" in pages()["remedies/liger_kernel.md"]


def test_the_matrix_has_a_column_for_each_framework_with_keys() -> None:
    row = next(line for line in pages()["knobs.md"].splitlines() if line.startswith("| `train.max_seq_len` |"))
    assert "`sequence_len`" in row and "`max_seq_length` ≤ 0.19.9" in row


@for_each(
    "line, english, chinese",
    [
        ("log.requested > log.free", "*the request that failed* is more than *free on the card*", "“失败的申请大小”大于“显存空闲量”"),
        ("log.on_card == disabled", "*it is device memory that ran out*: no", "“耗尽的是显存而非主机内存”：否"),
        ("log.on_card != disabled", "*it is device memory that ran out*: yes", "“耗尽的是显存而非主机内存”：是"),
        (
            "log.free >= 10% of log.capacity",
            "*free on the card* is at least 10 % of *capacity of the card as printed*",
            "“显存空闲量”不小于“打印的显存总量”的 10%",
        ),
    ],
)
def test_conditions_are_said_in_words(line: str, english: str, chinese: str) -> None:
    assert condition(line, "en") == f"`{line}` — {english}"
    assert condition(line, "zh") == f"`{line}`：{chinese}"


# -- writing


def test_pages_of_rules_that_are_gone_are_removed_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "causes").mkdir()
    (tmp_path / "causes" / "old.md").write_text(f"{manual_pages.MARK}\n\n# gone\n")
    (tmp_path / "notes.md").write_text("by hand")
    assert manual_pages.write(tmp_path) == len(pages())
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.md")} == {*pages(), "notes.md"}


def test_a_rule_of_the_users_is_shown_beside_ours_and_has_no_address(tmp_path: Path) -> None:
    """Rule packs are read by `rules show --rules DIR`; the manual of the repository does not hold them."""
    file = next((ROOT / "rules" / "causes").glob("fragmented-reserve.yaml"))
    (tmp_path / "house-rule.yaml").write_text(
        file.read_text(encoding="utf-8").replace("fragmented-reserve", "house-rule"), encoding="utf-8"
    )
    shown = markdown(manual_pages.article("fragmentation", "en", [tmp_path]))
    assert '<a id="house-rule">' in shown and '<a id="fragmented-reserve">' in shown
    found, _ = causes.rules([tmp_path])
    assert next(rule for rule in found if rule.id == "house-rule").url == ""


def test_a_rule_that_cannot_be_read_is_left_to_the_checker(tmp_path: Path) -> None:
    """`rules show` of one rule must not fail on another file."""
    (tmp_path / "half.yaml").write_text("id: half\ncause: logits\ntitle: {en: half, zh: 一半}\n", encoding="utf-8")
    (tmp_path / "odd.yaml").write_text("id: odd\nremedy: bf16\ntitle: odd\nturns: none\nprice: cheap\n", encoding="utf-8")
    assert {"half", "odd"}.isdisjoint(load_index([tmp_path]).names()) and manual_pages.article("logits", "zh", [tmp_path])


# -- blocks


def test_a_text_of_a_rule_is_no_markdown() -> None:
    """`2 * a * b` would be read as emphasis, <name> as HTML and __init__ as bold."""
    text = "2 * a * b, <name>, __init__ and max_split_size_mb, `a * b`"
    assert quoted(text) == r"2 \* a \* b, \<name>, \__init_\_ and max_split_size_mb, `a * b`"
    assert plain(quoted(text)) == "2 * a * b, <name>, __init__ and max_split_size_mb, a * b"


def test_cells_keep_their_bars() -> None:
    assert markdown([Grid(("a",), (("x | y",),))]) == "| a |\n| --- |\n| x \\| y |\n"


def test_a_terminal_shows_the_same_words_without_their_marks() -> None:
    blocks: list[Block] = [
        Heading(1, "Title"),
        Paragraph("see [the rule](../causes/logits.md#logits-dominate) and [`a.yaml`](../../a.yaml)"),
        Items(("*free on the card*<br>`x > 1`",)),
        Grid(("verdict", "facts", "more"), (("fires", code("a.b"), ""),)),
    ]
    assert render_blocks(blocks, 80).splitlines() == [
        "Title", "=====", "", "see the rule (logits-dominate) and a.yaml", "", "- free on the card", "  x > 1", "",
        "verdict  facts | more", "fires    a.b",
    ]  # fmt: skip


@for_each("lang", LANGS)
@for_each("room", sorted(WORD_FIELD))
def test_no_line_of_an_article_is_wider_than_the_terminal(room: str, lang: str) -> None:
    from diagnose.render.parts.wrapping import cells

    for word in load_index().words("causes" if room == "causes" else "remedies")[::5]:
        wide = [
            line for line in render_blocks(manual_pages.article(word, "zh" if lang == "zh" else "en"), 80).splitlines() if cells(line) > 80
        ]
        assert not wide
