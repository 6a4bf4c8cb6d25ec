"""The playground in a browser: answers and knobs are those of the command line; it stays quick, works offline, keeps what is given."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import snapshots_made
from accessibility import violations
from browser import Browser
from cases import CORPUS, expected, references
from playground import Playground
from static_site import SITE, served
from test_pages import complaints, look


def oomdoctor(folder: Path, *words: str) -> Any:
    """What the command line prints as JSON."""
    done = subprocess.run(
        [sys.executable, "-m", "diagnose", *words, "--format", "json"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def configs(name: str) -> list[str]:
    return [word for config in expected(name)["inputs"].get("configs", []) for word in ("--config", config)]


def given(name: str) -> list[str]:
    """The words of the command line for a reference failure."""
    options = expected(name)["inputs"].get("options", {})
    return [*configs(name), *(word for option, value in options.items() for word in (f"--{option}", str(value)))]


def test_every_reference_failure_is_an_example() -> None:
    examples = (SITE / "play" / "index.html").read_text(encoding="utf-8")
    assert references() and all(f'data-example="{name}"' in examples for name in references())


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_answers_equal_those_of_the_command_line(ready: Playground, lang: str) -> None:
    speak(ready, lang)
    for name in references():
        ready.example(name)
        assert json.loads(ready.text("json")) == oomdoctor(CORPUS / name, "explain", "error.log", *given(name), "--lang", lang), name
    assert complaints(ready.browser) == []


def speak(page: Playground, lang: str) -> None:
    page.browser.value(f"document.querySelector('[data-lang={lang}]').click()")
    page.browser.until(f"document.documentElement.lang.startsWith('{lang}')")


def test_what_is_pasted_is_answered_as_a_file_is(ready: Playground, tmp_path: Path) -> None:
    speak(ready, "en")
    case = CORPUS / "llamafactory-6800"
    for field, file, name in (("log", "error.log", "pasted.log"), ("config", "qwen2vl_dpo.yaml", "pasted-config")):
        text = (case / file).read_text(encoding="utf-8")
        (tmp_path / name).write_text(text, encoding="utf-8")
        ready.browser.fill(f"#{field}", text)
    ready.explain()
    assert json.loads(ready.text("json")) == oomdoctor(tmp_path, "explain", "pasted.log", "--config", "pasted-config")
    for field in ("log", "config"):
        ready.browser.fill(f"#{field}", "")


def test_one_paste_of_several_configs_is_told_apart(ready: Playground) -> None:
    speak(ready, "en")
    case = CORPUS / "llamafactory-6800"
    ready.browser.fill("#log", (case / "error.log").read_text(encoding="utf-8"))
    ready.browser.fill(
        "#config", "\n".join((case / name).read_text(encoding="utf-8") for name in ("qwen2vl_dpo.yaml", "ds_z3_config.json"))
    )
    ready.explain()
    told = json.loads(ready.text("json"))
    known = {fact["name"]: fact["value"] for fact in told["facts"]}
    assert known["train.max_seq_len"] == 4096 and known["zero.stage"] == 3 and told["plan"]["fits"] == "yes"
    for field in ("log", "config"):
        ready.browser.fill(f"#{field}", "")


@pytest.mark.parametrize("archive", [False, True])
def test_what_is_dropped_is_answered_as_the_command_line_answers_it(ready: Playground, tmp_path: Path, archive: bool) -> None:
    """A folder of a run, or an archive of it: log and configs are found in it."""
    speak(ready, "en")
    shutil.copytree(CORPUS / "llamafactory-6800", tmp_path / "run", ignore=shutil.ignore_patterns("expected*"))
    dropped = Path(shutil.make_archive(str(tmp_path / "run"), "gztar", tmp_path, "run")) if archive else tmp_path / "run"
    ready.drop(dropped)
    told, asked = json.loads(ready.text("json")), oomdoctor(tmp_path, "explain", dropped.name)
    ready.browser.value("while (document.querySelector('#list button')) document.querySelector('#list button').click()")
    for part in ("verdict", "causes", "plan"):
        assert told[part] == asked[part]
    assert told["plan"]["fits"] == "yes"


def test_a_card_that_is_named_holds_for_the_example_on_the_page(ready: Playground) -> None:
    """With nothing pasted, the answer that is shown is computed again for that card; a card that nobody has is said with those near it."""
    speak(ready, "en")
    ready.example("before-the-run")
    ready.browser.fill("#gpu", "H200-141GB")
    ready.explain()
    assert "H200-141GB" in ready.text("text")
    ready.browser.fill("#gpu", "A100-90GB")
    ready.explain()
    assert "A100-80GB" in ready.text("status")
    ready.browser.fill("#gpu", "")


def test_a_snapshot_is_drawn(ready: Playground, tmp_path: Path) -> None:
    """As a flame graph and a curve, from the file alone."""
    speak(ready, "en")
    path = tmp_path / "oom.pickle"
    path.write_bytes(pickle.dumps(snapshots_made.made(), protocol=4))
    ready.browser.choose("#files", path)
    ready.explain()
    assert ready.browser.value("document.querySelectorAll('#body figure.flame svg svg').length") > 1
    assert violations(ready.browser) == [] and complaints(ready.browser) == []
    ready.browser.value("document.querySelector('#list button').click()")


#: Three knobs of the first reference failure: how each is turned on the page, and what the command line is told.
KNOBS = {
    "train.max_seq_len": ("slider", "1024"),
    "train.micro_batch_size": ("slider", "2"),
    "train.optimizer": ("choice", "adamw_8bit"),
}


def test_knobs_turn_as_what_if_does(ready: Playground) -> None:
    """Three of them, each on top of those before: the figures are those of `oomdoctor what-if`, and the patch says the same."""
    speak(ready, "en")
    name = "llamafactory-6800"
    ready.example(name)
    ready.browser.value("document.getElementById('tab-knobs').click()")
    changes: list[str] = []
    for knob, (kind, value) in KNOBS.items():
        ready.turned(turning(knob, kind, value))
        changes.append(f"{knob}={value}")
        assert json.loads(ready.browser.value("JSON.stringify(window.shown())")) == oomdoctor(
            CORPUS / name, "what-if", "error.log", *given(name), *changes
        ), changes
    assert "-cutoff_len: 4096" in ready.text("diff") and "+cutoff_len: 1024" in ready.text("diff")
    ready.turned("document.getElementById('reset').click()")
    assert ready.browser.value("document.querySelectorAll('.knob.changed').length") == 0


def turning(knob: str, kind: str, value: str) -> str:
    control = f"document.getElementById('knob-{knob}')"
    if kind == "choice":
        return f"{control}.value = {json.dumps(value)}; {control}.dispatchEvent(new Event('change', {{bubbles: true}}))"
    return (
        f"{control}.value = JSON.parse({control}.dataset.values).indexOf({value}); "
        f"{control}.dispatchEvent(new Event('input', {{bubbles: true}}))"
    )


def test_the_plan_is_switches(ready: Playground) -> None:
    """All of its steps turned on give the peak that the plan predicts."""
    speak(ready, "en")
    ready.example("llamafactory-6800")
    plan = json.loads(ready.text("json"))["plan"]
    ready.turned("document.getElementById('apply-plan').click()")
    shown = json.loads(ready.browser.value("JSON.stringify(window.shown())"))
    assert shown["after"]["need"] == plan["predicted_peak"]["bytes"] and shown["after"]["fits"] == plan["fits"]
    ready.turned("document.querySelector('#switches input:checked').click()")
    assert json.loads(ready.browser.value("JSON.stringify(window.shown())"))["after"]["need"] > plan["predicted_peak"]["bytes"]


def test_configs_alone_are_checked_and_mapped(ready: Playground) -> None:
    """The map's field of the present batch and length is the job as it is; another field sets both."""
    speak(ready, "en")
    ready.example("before-the-run")
    assert ready.browser.value("document.getElementById('tab-knobs').getAttribute('aria-selected')") == "true"
    words = ["check", "qwen2vl_dpo.yaml", "ds_z3_config.json", "--gpu", "A100-80GB", "--gpus", "8"]
    assert json.loads(ready.text("json")) == oomdoctor(CORPUS / "llamafactory-6800", *words)
    assert ready.browser.value("document.querySelectorAll('.fitmap td button').length") >= 25
    assert ready.browser.value("document.querySelector('.fitmap .now').className").split() == ["yes", "now"]
    ready.turned('document.querySelector(\'.fitmap [data-rows="8"][data-length="4096"]\').click()')
    assert "change=train.micro_batch_size%3D8" in ready.browser.value("location.hash")


def test_a_question_is_a_field(ready: Playground) -> None:
    """What is chosen there is known from then on, as by `--set`."""
    speak(ready, "en")
    ready.browser.fill("#log", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.")
    ready.explain()
    field = "document.querySelector('#fields [data-fact=\"run.regime\"]')"
    assert {"train", "serve"} <= set(ready.browser.value(f"[...{field}.options].map((option) => option.value)"))
    ready.browser.value(f"{field}.value = 'serve'")
    ready.does("document.getElementById('question-form').requestSubmit()")
    assert not ready.browser.value("document.querySelector('#body section[aria-labelledby=questions]')?.offsetHeight")  # asked once
    facts = {fact["name"]: fact["value"] for fact in json.loads(ready.text("json"))["facts"]}
    assert facts["run.regime"] == "serve" and "set=run.regime%3Dserve" in ready.browser.value("location.hash")
    ready.browser.fill("#log", "")


def test_what_failed_is_not_advised_again(ready: Playground) -> None:
    """A button notes it in this browser, and the answer goes on from there; the address does not tell."""
    speak(ready, "en")
    ready.example("openrlhf-392")
    first = json.loads(ready.text("json"))["plan"]["steps"]
    ready.does("document.querySelector('#tried-list [data-result=failed]').click()")
    assert first[0] not in json.loads(ready.text("json"))["plan"]["steps"]
    assert "You noted: optimizer offload failed" in ready.text("text") and "offload" not in ready.browser.value("location.href")
    assert violations(ready.browser) == [] and complaints(ready.browser) == []
    ready.browser.value("localStorage.removeItem('notes')")
    ready.example("openrlhf-392")
    assert json.loads(ready.text("json"))["plan"]["steps"] == first


def test_the_address_holds_settings_and_no_log(ready: Playground) -> None:
    """A link of an example opens it with the same knobs; a pasted log leaves nothing in the address."""
    speak(ready, "en")
    ready.browser.fill("#log", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. secret-host-17")
    ready.explain()
    assert "secret" not in ready.browser.value("location.href")
    ready.browser.fill("#log", "")


@pytest.mark.parametrize("tab", ["answer", "knobs", "text", "json"])
def test_the_answer_is_accessible(ready: Playground, tab: str) -> None:
    """axe finds nothing in the answer and at the knobs, in light and dark and on a telephone, where nothing is wider than the screen."""
    speak(ready, "en")
    ready.example("llamafactory-6800")
    ready.browser.value(f"document.getElementById('tab-{tab}').click()")
    for scheme, width in (("light", 1280), ("dark", 1280), ("light", 390)):
        look(ready.browser, scheme, width)
        assert violations(ready.browser) == [], (scheme, width)
        assert ready.browser.value("document.documentElement.scrollWidth") <= width
    look(ready.browser, "light", 1280)


def test_the_site_leaves_the_drawings_of_an_answer_as_they_are(ready: Playground) -> None:
    """What its buttons look like is none of a drawing's business."""
    ready.example("llamafactory-6800")
    assert ready.browser.value("getComputedStyle(document.querySelector('#body .gauge svg')).borderTopWidth") == "0px"


def test_the_keyboard_reaches_the_tabs(ready: Playground) -> None:
    ready.example("llamafactory-6800")
    ready.browser.value("document.getElementById('tab-answer').focus()")
    for key in ("ArrowRight", "ArrowRight"):
        for kind in ("keyDown", "keyUp"):
            ready.browser.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)
    assert ready.browser.value("document.activeElement.id") == "tab-text"
    assert ready.browser.value("document.getElementById('panel-text').hidden") is False


def test_a_large_log_leaves_the_page_alive(ready: Playground, tmp_path: Path) -> None:
    """While 100 MB are read, the page answers clicks; the failure at its end is found."""
    speak(ready, "en")
    line = (
        b"{'loss': 0.6931, 'grad_norm': 1.2345678, 'learning_rate': 5e-06, 'epoch': 0.01}  12%|#2  | 600/50000 [00:12<10:00:00, 1.23it/s]\n"
    )
    with (tmp_path / "large.log").open("wb") as log:
        log.write(line * (100 * 2**20 // len(line)))
        log.write((CORPUS / "llamafactory-6800" / "error.log").read_bytes())
    ready.browser.choose("#files", tmp_path / "large.log")
    ready.browser.until("document.getElementById('list').children.length === 1")
    ready.browser.value(
        "window.waits = []; window.clicks = setInterval(() => { const began = performance.now(); "
        "setTimeout(() => window.waits.push(performance.now() - began), 0); document.getElementById('theme').click(); }, 50)"
    )
    ready.explain()
    waits = sorted(ready.browser.value("clearInterval(window.clicks) ?? window.waits"))
    ready.browser.value("document.querySelector('#list button').click()")
    assert "4.64 GiB requested" in ready.text("text")
    assert len(waits) > 10 and waits[len(waits) * 95 // 100] < 100, waits[-10:]


def test_it_works_offline(browser: Browser) -> None:
    """After one visit the server may be gone: the page loads again and answers, and nothing was asked of another host."""
    with served() as site:
        page = Playground(browser, site)
        browser.until("document.documentElement.dataset.kept === 'engine'", 120)
    assert not [
        event["params"]["request"]["url"]
        for event in browser.events
        if event["method"] == "Network.requestWillBeSent" and not event["params"]["request"]["url"].startswith((site, "data:", "blob:"))
    ]
    again = Playground(browser, site, "/play/?again")
    again.example("llamafactory-6800")
    assert "OUT OF MEMORY" in again.text("text")
    assert page.site == again.site


@pytest.mark.parametrize(("start", "word", "found"), [("/docs/", "allocator", "allocator"), ("/zh/docs/", "显存", "显存")])
def test_the_docs_are_searched_offline(browser: Browser, start: str, word: str, found: str) -> None:
    """After one visit of the docs any page of them is found and opened without the server."""
    with served() as site:
        browser.go(site + start)
        browser.until("document.documentElement.dataset.kept === 'docs'", 120)
    browser.go(site + start + "?again")
    browser.value("document.querySelector('label[for=__search]').click()")
    browser.value(
        "(() => { const field = document.querySelector('.md-search__input'); field.focus(); "
        f"field.value = {json.dumps(word)}; field.dispatchEvent(new KeyboardEvent('keyup', {{bubbles: true}})); "
        "field.dispatchEvent(new InputEvent('input', {bubbles: true})); })()"
    )
    browser.until("document.querySelectorAll('.md-search-result__link').length > 0", 30)
    assert found in browser.value("document.querySelector('.md-search-result__list').textContent").lower()
    browser.press(".md-search-result__link")
    assert found in browser.value("document.querySelector('.md-content').textContent").lower()
