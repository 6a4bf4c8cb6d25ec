"""The built pages: their policy, their links, their looks in both languages, and that nothing is asked of another host."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlparse

import pytest
from accessibility import violations
from browser import Browser
from docs_pages import Inline, hash_source
from static_site import SITE

SHELL = ("/", "/zh/", "/play/", "/zh/play/", "/accuracy/", "/zh/accuracy/")
DOCS = (
    "/docs/",
    "/docs/docs/surfaces/",
    "/docs/docs/memory/",
    "/docs/docs/generated/causes/logits/",
    "/zh/docs/",
    "/zh/docs/causes/logits/",
)


def pages() -> list[Path]:
    return sorted(SITE.rglob("*.html"))


def policy_of(page: str) -> dict[str, list[str]]:
    found = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert found, "no policy"
    return {name: values for name, *values in (part.split() for part in found[1].replace("&#39;", "'").split(";"))}


def test_every_page_has_a_strict_policy() -> None:
    """Scripts are files of the site, or inline ones whose hash the policy names; nothing else is let in, and no other host is named."""
    assert len(pages()) > 200
    for path in pages():
        page = path.read_text(encoding="utf-8")
        policy, inline = policy_of(page), Inline()
        inline.feed(page)
        assert policy["default-src"] == ["'none'"] and policy["connect-src"] == ["'self'"] and policy["form-action"] == ["'none'"], path
        allowed = policy["script-src"]
        assert not {"'unsafe-inline'", "'unsafe-eval'", "*"} & {*allowed, *policy["style-src"]}, path
        assert {*map(hash_source, inline.scripts)} <= {*allowed}, path
        assert not [value for values in policy.values() for value in values if "." in value or "//" in value], path
        assert page.index("Content-Security-Policy") < page.index("<script"), path


def test_every_link_within_the_site_leads_somewhere() -> None:
    lost = set()
    for path in pages():
        base = "http://site/" + path.relative_to(SITE).as_posix().removesuffix("index.html")
        text = re.sub(r'<script type="application/json".*?</script>', "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        for address in re.findall(r'(?:href|src)="?([^"\s>]+)', text):
            if address.startswith(("http", "#", "data:", "mailto:")):
                continue
            place = SITE / unquote(urlparse(urljoin(base, address)).path).lstrip("/")
            if not (place.is_file() or (place / "index.html").is_file()):
                lost.add((str(path.relative_to(SITE)), address))
    assert not lost


def test_the_engine_is_small() -> None:
    """Runtime, package, rules and YAML: at most 12 MB as a host sends them."""
    import gzip

    assert sum(len(gzip.compress(path.read_bytes(), 9)) for path in (SITE / "engine").iterdir()) <= 12_000_000


@pytest.mark.parametrize("path", [*SHELL, *DOCS])
def test_a_page_in_a_browser(site: str, browser: Browser, path: str) -> None:
    """Nothing is asked of another host, the console stays empty, and axe finds nothing in light and dark and on a telephone."""
    browser.go(site + path)
    asked = [event["params"]["request"]["url"] for event in browser.events if event["method"] == "Network.requestWillBeSent"]
    assert asked and not [address for address in asked if not address.startswith((site, "data:", "blob:"))]
    assert browser.value("document.documentElement.lang") == (
        "zh-CN" if path.startswith("/zh/") and path in SHELL else "zh" if "/zh/" in path else "en"
    )
    assert complaints(browser) == []
    for scheme, width in (("light", 1280), ("dark", 1280), ("light", 390)):
        look(browser, scheme, width)
        browser.until("![...document.querySelectorAll('.md-typeset__scrollwrap')].some((box) => box.tabIndex)")
        assert violations(browser) == [], (scheme, width)
        if path in SHELL:
            assert browser.value("document.documentElement.scrollWidth") <= width


def look(browser: Browser, scheme: str, width: int) -> None:
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    # While a tab still fades in, its colour is not the one that a reader gets.
    browser.until("!document.getAnimations().some((each) => each instanceof CSSTransition)")


def complaints(browser: Browser) -> list[Any]:
    """What the browser wrote into its console, and exceptions that nobody caught."""
    thrown = [event["params"] for event in browser.events if event["method"] == "Runtime.exceptionThrown"]
    return [*browser.complaints(), *thrown]
