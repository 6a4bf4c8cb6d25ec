"""How an answer speaks: one quantity has one figure, a release is named, a screen is enough (eighteen lines where little is known)."""

from __future__ import annotations

import re

from cases import diagnosed, folders
from collected import for_each
from sweep import sample

from diagnose import explain
from diagnose.phrases import Lang
from diagnose.render.parts.view import View
from diagnose.render.text.one_screen import LINES, LITTLE, render

BARE = (
    "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 10.76 GiB total capacity; 9.65 GiB already allocated; "
    "13.44 MiB free; 9.71 GiB reserved in total by PyTorch)"
)


def one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text)


@for_each("lang", ["en", "zh"])
def test_kept_activations_have_one_figure(lang: Lang) -> None:
    """The headline counts what the bar draws: the attention scores with the other activations."""
    text = render(diagnosed("axolotl-2143-deepseek-v2-lite"), lang, View())
    assert text.count("72.18") == 3 and "36.68" not in text


@for_each(
    "case, lang, said",
    [
        ("llamafactory-6800", "en", "upgrade llamafactory to 0.9.4 or later"),
        ("llamafactory-6800", "zh", "把 llamafactory 升级到 0.9.4 或更新版本"),
        ("openrlhf-964", "en", "1. Upgrade openrlhf to 0.7.1 or later"),
    ],
)
def test_the_release_that_mends_it_is_named(case: str, lang: Lang, said: str) -> None:
    assert said.replace(" ", "") in one_line(render(diagnosed(case), lang, View())).replace(" ", "")


def test_where_nobody_knows_whether_it_trains_the_first_step_holds_for_both() -> None:
    diagnosis = explain(BARE)
    assert "1. Take a smaller batch: fewer rows, images or requests at a time: same results" in one_line(render(diagnosis, "en", View()))
    assert "减小批大小：每次处理更少的样本、图像或请求：" in render(diagnosis, "zh", View())


@for_each("lang", ["en", "zh"])
def test_an_answer_fits_its_screen(lang: Lang) -> None:
    long = {}
    for name in sample(folders(), 60):
        diagnosis = diagnosed(name)
        lines = len(render(diagnosis, lang, View()).rstrip("\n").split("\n"))
        if diagnosis.outlook is None and lines > LINES:
            long[name] = lines
    assert not long


@for_each("lang", ["en", "zh"])
def test_little_known_is_said_in_eighteen_lines(lang: Lang) -> None:
    for log in (BARE, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"):
        diagnosis = explain(log)
        assert diagnosis.outcome.usual and len(render(diagnosis, lang, View()).rstrip("\n").split("\n")) <= LITTLE
