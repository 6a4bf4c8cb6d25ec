"""The page of `oomdoctor serve` in a real browser with scripts switched off: paste, submit, read, copy the patch, apply it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from browser import Browser, chromium
from collected import for_each
from serving import CASE, CONFIGS, LOG, Server

pytestmark = pytest.mark.skipif(chromium() is None, reason="chromium is not installed")


@pytest.fixture
def browser(chrome: Browser) -> Browser:
    chrome.start_over()
    return chrome


def test_paste_submit_read_copy_apply(server: Server, browser: Browser, tmp_path: Path) -> None:
    """What is copied off the page is a patch that applies; the browser has nothing to complain of."""
    browser.go(server.url + "/?lang=en")
    browser.fill("#log", LOG)
    browser.fill("#gpus", "8")
    browser.choose("#config_file", CASE / "qwen2vl_dpo.yaml", CASE / "ds_z3_config.json")
    browser.press("button")
    assert "4.64 GiB" in browser.value("document.querySelector('h1').innerText")
    patch = browser.value("getSelection().selectAllChildren(document.querySelector('pre code.copy')); getSelection().toString()")
    assert browser.value("document.styleSheets.length") == 1 and browser.value("getComputedStyle(document.body).margin") == "0px"
    assert browser.complaints() == []
    assert browser.picture().startswith(b"\x89PNG")

    shutil.copy(CASE / "qwen2vl_dpo.yaml", tmp_path)
    done = subprocess.run(
        ["git", "apply", "-p1", "-"], input=patch.strip("\n") + "\n", cwd=tmp_path, text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    before, after = (folder.joinpath("qwen2vl_dpo.yaml").read_text() for folder in (CASE, tmp_path))
    assert before != after and len(before.splitlines()) == len(after.splitlines())

    browser.press("nav.top a")
    assert browser.value("document.querySelector('textarea').value") == ""


def test_a_file_that_is_too_large_is_said_on_the_page(server: Server, browser: Browser, tmp_path: Path) -> None:
    """Not as JSON, and not as a connection that broke."""
    (tmp_path / "large.log").write_bytes(b"x" * (3 << 20))
    browser.go(server.url + "/?lang=en")
    browser.choose("#log_file", tmp_path / "large.log")
    browser.press("button")
    assert "2 MiB" in browser.value("document.querySelector('[role=alert]').innerText")
    assert browser.value("document.querySelector('textarea').value") == ""


def test_a_telephone_shows_the_whole_answer(server: Server, browser: Browser) -> None:
    """Nothing but code blocks is wider than the screen, and no text is squeezed into a column of single words."""
    browser.call("Emulation.setDeviceMetricsOverride", width=400, height=800, deviceScaleFactor=1, mobile=True)
    browser.go(server.url + "/?lang=en")
    browser.fill("#log", LOG)
    browser.choose("#config_file", CASE / "qwen2vl_dpo.yaml", CASE / "ds_z3_config.json")
    browser.press("button")
    assert browser.value("document.documentElement.scrollWidth") <= 400
    assert browser.value("document.querySelector('.moments caption').getBoundingClientRect().width") > 300


def test_a_long_word_does_not_widen_the_page(server: Server, browser: Browser) -> None:
    """The words that a setting may have are joined without a blank, and break where the screen ends."""
    browser.call("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1, mobile=True)
    browser.go(server.url + "/?lang=en")
    browser.fill("#log", LOG)
    browser.fill("#config", "\n".join(each["text"] for each in CONFIGS))
    browser.press("button")
    assert "model.attention=eager|sdpa|" in browser.value("document.body.innerText")
    assert browser.value("document.documentElement.scrollWidth") <= 390


def test_a_mistake_in_chinese(server: Server, browser: Browser) -> None:
    """The language that is chosen holds for the mistake too, and what was typed is still there."""
    browser.go(server.url + "/?lang=zh")
    browser.fill("#log", LOG)
    browser.fill("#gpu", "abacus")
    browser.press("button")
    assert "abacus" in browser.value("document.querySelector('[role=alert]').innerText")
    assert browser.value("document.documentElement.lang") == "zh-CN"
    assert browser.value("document.querySelector('#log').value") == LOG
    assert browser.value("document.querySelector('#lang').value") == "zh"


@for_each("lang", ["en", "zh"])
def test_the_first_step_stands_on_the_first_screen_of_a_telephone(server: Server, browser: Browser, lang: str) -> None:
    browser.start_over()
    browser.call("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1, mobile=True)
    browser.go(f"{server.url}/?lang={lang}")
    browser.fill("#log", LOG)
    browser.choose("#config_file", CASE / "qwen2vl_dpo.yaml", CASE / "ds_z3_config.json")
    browser.press("button")
    assert browser.value("document.querySelector('.first').getBoundingClientRect().bottom") <= 844
    assert browser.value("document.querySelector('.first').innerText.length") > 6


@for_each("scheme", ["light", "dark"])
def test_the_borders_of_inputs_stand_out(server: Server, browser: Browser, scheme: str) -> None:
    """By 3 to 1 against what is behind them, as WCAG 1.4.11 asks."""
    browser.start_over()
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.go(server.url + "/?lang=en")
    for field in ("#log", "#config", "#lang", "#gpu", "#gpus", "#model"):
        colours = [
            [int(part) for part in re.findall(r"\d+", browser.value(f"getComputedStyle(document.querySelector('{where}')).{what}"))[:3]]
            for where, what in ((field, "borderTopColor"), (field, "backgroundColor"), ("body", "backgroundColor"))
        ]
        border, *behind = map(luminance, colours)
        assert all((max(border, each) + 0.05) / (min(border, each) + 0.05) >= 3 for each in behind), (field, colours)


def luminance(colour: list[int]) -> float:
    """Relative luminance of sRGB (WCAG 2)."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in (each / 255 for each in colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
