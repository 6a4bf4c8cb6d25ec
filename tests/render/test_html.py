"""The page: one file that runs and loads nothing, whose every link leads somewhere, and in which a stranger's text stays text."""

from __future__ import annotations

import re
import traceback
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from collected import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from jinja2 import UndefinedError
from samples import SAMPLES
from sweep import examples

from diagnose.diagnosis import Diagnosis
from diagnose.facts import Notice, Witness
from diagnose.phrases import Lang, same
from diagnose.render.formats import RENDERERS
from diagnose.render.markup import html, page_templates
from diagnose.render.parts.view import View

LANGS: tuple[Lang, Lang] = ("en", "zh")
SHEET = page_templates.asset(*html.SHEET)
ATTACKS = [
    "<script>alert(1)</script>",
    "</pre></code><img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)",
    "</style><style>*{display:none}",
    "</title><meta http-equiv=refresh content=0;url=//evil>",
    "javascript:alert(1)",
    'https://evil.example/" onclick="x',
    "<a href=//evil>x</a><!-- ",
    "&lt;b&gt; &#x3c;script&#x3e;",
    "]]><script>",
]


class Page(HTMLParser):
    """What a page is made of."""

    VOID = {"meta", "br", "hr", "rect", "line", "path", "col"}

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.ids: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, tag


def infected(text: str) -> Diagnosis:
    """A diagnosis in which every text that comes from outside says something hostile."""
    sample = SAMPLES["dpo_logits"]()
    cause = sample.judgement.causes[0]._replace(title=same(text), explanation=same(text), url=text, rule=text,
                    evidence=(Witness(text, 3, 1, text), Witness("error.log", 84, 1, text)))  # fmt: skip
    remedy = replace(sample.outcome.remedies[0], title=same(text), references=(text,), url=text, command=same(text), env=(text,))
    outcome = sample.outcome._replace(remedies=(remedy, *sample.outcome.remedies[1:]))
    return replace(
        sample,
        verdict=sample.verdict._replace(headline=same(text)),
        judgement=sample.judgement._replace(causes=(cause,)),
        outcome=outcome,
        notices=(Notice("error", "config.x", same(text), Witness(text, 1, 1, text)),),
        events=(replace(sample.events[0], exception=text), *sample.events[1:]),
    )


@for_each("lang", LANGS)
@for_each("name", SAMPLES)
def test_it_is_one_well_formed_file_that_runs_and_loads_nothing(name: str, lang: Lang) -> None:
    page = Page(RENDERERS["html"](SAMPLES[name](), lang, View()))
    assert not page.open
    assert not {"script", "iframe", "object", "embed", "link", "img", "form", "base", "foreignobject"} & set(page.tags)
    assert not [each for each in page.attributes if each[1].startswith("on") or each[1] in ("style", "src", "srcdoc", "action")]
    assert len(page.ids) == len(set(page.ids))
    assert page.tags["h1"] == page.tags["main"] == page.tags["header"] == 1


@for_each("name", SAMPLES)
def test_every_link_within_leads_somewhere_and_every_other_is_plain_https(name: str) -> None:
    page = Page(RENDERERS["html"](SAMPLES[name](), "en", View()))
    targets = [value for tag, attribute, value in page.attributes if tag == "a" and attribute == "href"]
    assert all(target[1:] in page.ids if target.startswith("#") else target.startswith("https://") for target in targets)
    named = [value for _, attribute, value in page.attributes if attribute == "aria-labelledby"]
    assert set(named) <= set(page.ids)


def test_the_evidence_is_linked_to_the_lines_that_it_names() -> None:
    page = Page(RENDERERS["html"](SAMPLES["dpo_logits"](), "en", View()))
    assert "in1-L84" in page.ids and ("a", "href", "#in1-L84") in page.attributes


@for_each("attack", ATTACKS)
def test_what_a_stranger_wrote_stays_text(attack: str) -> None:
    """In the headline, a cause, a remedy, a file's name, a line of the log, an address."""
    harmless, hostile = (Page(RENDERERS["html"](infected(text), "en", View())) for text in ("quite harmless words", attack))
    assert set(hostile.tags) <= set(harmless.tags) | {"code"} and not hostile.open
    assert {(tag, name) for tag, name, _ in hostile.attributes} <= {(tag, name) for tag, name, _ in harmless.attributes} | {
        ("a", name) for name in ("href", "rel")
    }
    for _, name, value in hostile.attributes:
        if name == "href":
            assert value.startswith(("#", "https://", "http://"))


@settings(max_examples=examples(60), deadline=None)
@given(st.text(max_size=80))
def test_any_text_makes_a_well_formed_page(text: str) -> None:
    assert not Page(RENDERERS["html"](infected(text), "en", View())).open


def test_a_policy_allows_the_pages_own_style_and_nothing_else() -> None:
    """The sheet's hash is right, so that a browser that keeps to the policy shows the page as it is meant."""
    from base64 import b64encode
    from hashlib import sha256

    text = RENDERERS["html"](SAMPLES["dpo_logits"](), "en", View())
    sheet = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    assert sheet is not None
    digest = b64encode(sha256(sheet[1].encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in page_templates.policy(SHEET)
    policy = next(value for tag, name, value in Page(text).attributes if tag == "meta" and name == "content" and "default-src" in value)
    assert policy == page_templates.policy(SHEET) and "default-src 'none'" in policy
    assert "url(" not in SHEET and "@import" not in SHEET


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_words_stand_out_from_what_is_behind_them(mode: str) -> None:
    """Contrast of at least 4.5 to 1 for every colour of text, on light and dark (WCAG 2.2, 1.4.3)."""
    blocks = re.findall(r":root\{([^}]*)\}", SHEET)
    colours = dict(re.findall(r"--(\w+):(#[0-9a-f]+)", blocks[0])) | (
        dict(re.findall(r"--(\w+):(#[0-9a-f]+)", blocks[1])) if mode == "dark" else {}
    )
    pairs = [("fg", "bg"), ("fg", "soft"), ("dim", "bg"), ("link", "bg"), ("bad", "bg"), ("bad", "badbg"), ("good", "goodbg"),
             ("good", "soft"), ("note", "notebg"), ("bad", "soft"), ("dim", "soft"), ("fg", "mark")]  # fmt: skip
    for front, back in pairs:
        assert contrast(colours[front], colours[back]) >= 4.5, (front, back)


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(sign * 2 for sign in colour[1:])
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_a_patch_can_be_selected_whole() -> None:
    text = RENDERERS["html"](SAMPLES["dpo_logits"](), "en", View())
    assert "--- a/qwen2vl_dpo.yaml" in text and 'class="copy"' in text and "user-select:all" in SHEET


def test_a_filter_makes_markup_of_nothing_else() -> None:
    assert page_templates.link("javascript:alert(1)") == "javascript:alert(1)"
    assert page_templates.link("https://a.example/ <b>") == "https://a.example/ &lt;b&gt;"
    assert page_templates.link('https://a.example/"').startswith('<a href="https://a.example/&#34;" rel="noopener')
    assert page_templates.prose("a `b` <c>") == "a <code>b</code> &lt;c&gt;"
    assert page_templates.prose("it`s <b>") == "it`s &lt;b&gt;"


def test_a_mistake_in_a_template_is_an_error_that_names_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though line breaks and indentation do not get into a page."""
    (tmp_path / "some.html.j2").write_text("<p>\n  <b>{{\n lang }}</b>\n\n  {{ unknown }}\n</p>\n")
    (tmp_path / "other.html.j2").write_text("<p>\n  <b>{{\n lang }}</b>\n\n  {{ '<' }}\n</p>\n")
    monkeypatch.setattr(page_templates, "TEMPLATES", tmp_path)
    assert "".join(page_templates.page("other", "en")) == "<p><b>en</b>&lt;</p>"
    with pytest.raises(UndefinedError, match="unknown") as error:
        list(page_templates.page("some", "en"))
    lines = [frame.lineno for frame in traceback.extract_tb(error.tb) if frame.filename.endswith("some.html.j2")]
    assert lines[-1] == 5


def test_a_body_can_be_put_into_another_page() -> None:
    """For pages with a head of their own."""
    body: Any = html.body(SAMPLES["dpo_logits"](), "zh")
    assert body.startswith("<svg") and "<html" not in body and "<style" not in body
