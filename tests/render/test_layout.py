"""Lines that fit: display width of mixed Chinese and English, wrapping, clipping, colour."""

from __future__ import annotations

from collected import for_each
from hypothesis import given, settings
from hypothesis import strategies as st

from diagnose.render.parts.wrapping import NEVER_FIRST, Page, cells, clip, pad, wrap

MIXED = st.text(alphabet="abc xyz_-/，。（）显存不足碎片 0123456789", max_size=200)


@for_each("text, width", [("GPU 3", 5), ("显存", 4), ("e\u0301", 1), ("", 0), ("（显）", 6)])
def test_a_wide_character_takes_two_columns(text: str, width: int) -> None:
    assert cells(text) == width


@settings(max_examples=150)
@given(MIXED, st.integers(min_value=20, max_value=100))
def test_no_line_is_wider_than_asked(text: str, width: int) -> None:
    """One closing mark may hang over: it may not begin a line."""
    assert all(cells(line) <= width + 2 for line in wrap(text, width, "  - "))


@settings(max_examples=100)
@given(MIXED, st.integers(min_value=20, max_value=60))
def test_wrapping_loses_nothing_but_blanks(text: str, width: int) -> None:
    assert "".join("".join(wrap(text, width)).split()) == "".join(text.split())


def test_chinese_breaks_between_characters_but_not_before_punctuation() -> None:
    lines = wrap("显存不足显存不足，显存不足。", 16)
    assert len(lines) > 1
    assert not any(line[0] in NEVER_FIRST for line in lines)


@for_each(
    "text, lines",
    [
        ("不影响结果，速度变慢", ["不影响结果，速度", "变慢"]),
        ("不影响结果，速度变慢。", ["不影响结果，速度", "变慢。"]),
        ("不影响结果 speeds 慢", ["不影响结果 speeds", "慢"]),  # the word before it is no Chinese one
        ("不影响结果速度（变慢", ["不影响结果速度（变", "慢"]),  # a bracket may not end a line
    ],
)
def test_no_chinese_character_stands_alone_on_the_last_line(text: str, lines: list[str]) -> None:
    assert wrap(text, 19) == lines


def test_words_are_kept_whole_where_they_fit() -> None:
    assert wrap("reserved but unallocated", 14) == ["reserved but", "unallocated"]


def test_a_word_longer_than_the_line_is_cut() -> None:
    assert wrap("x" * 50, 20) == ["x" * 20, "x" * 20, "x" * 10]


def test_later_lines_hang_under_the_first() -> None:
    assert wrap("one two three four", 12, "- ") == ["- one two", "  three four"]


def test_clip_and_pad_count_columns() -> None:
    assert clip("显存不足", 5) == "显存…"
    assert cells(pad("显存", 10)) == 10
    assert pad("7", 3, right=True) == "  7"


def test_colour_only_where_asked() -> None:
    plain, painted = Page(80), Page(80, colour=True)
    for page in (plain, painted):
        page.say("text", style="bad")
    assert plain.text() == "text\n"
    assert painted.text() == "\x1b[1;97;41mtext\x1b[0m\n"  # white on red: legible on light and dark
