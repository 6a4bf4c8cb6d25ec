"""The report in a real browser: read without scripts, sorted, filtered, followed to a diagnosis, printed; nothing comes from a network."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
from browser import Browser, chromium
from clusters import THOUSANDS, cluster, report_of_thousands
from collected import for_each

from diagnose.cluster.report.group_summaries import summarize
from diagnose.cluster.report.report_files import write_html

pytestmark = pytest.mark.skipif(chromium() is None, reason="chromium is not installed")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of 400 jobs, half of which failed."""
    target = tmp_path_factory.mktemp("report") / "report.html"
    store = cluster(400)
    write_html(store, summarize(store), target)
    return target


@pytest.fixture
def browser(chrome: Browser) -> Browser:
    """A browser with scripts, that keeps an account of what it asks for."""
    chrome.start_over()
    chrome.call("Emulation.setScriptExecutionDisabled", value=False)
    chrome.call("Network.enable")
    return chrome


def asked(browser: Browser) -> set[str]:
    """The addresses that the browser has asked for."""
    return {str(held["params"]["request"]["url"]) for held in browser.events if held["method"] == "Network.requestWillBeSent"}


#: The rows of a table that are shown; of the groups the first row of each.
SHOWN = """((table) => [...table.querySelectorAll("tbody")].filter((body) => !body.hidden)
  .flatMap((body) => table.classList.contains("groups") ? [body.rows[0]] : [...body.rows].filter((row) => !row.hidden)))"""


def column(browser: Browser, at: int, table: str = "#list-groups") -> list[str]:
    """The texts of a column, of the rows that are shown."""
    found: list[str] = browser.value(f"{SHOWN}(document.querySelector('{table}')).map((row) => row.cells[{at}].innerText.trim())")
    return found


def click(browser: Browser, selector: str) -> None:
    browser.value(f"document.querySelector({json.dumps(selector)}).click()")


def type_in(browser: Browser, selector: str, text: str) -> None:
    """Write into a field, and wait until the filter has looked."""
    field = f"document.querySelector({json.dumps(selector)})"
    browser.value(f"{field}.value = {json.dumps(text)}; {field}.dispatchEvent(new Event('input'))")
    browser.call("Runtime.evaluate", expression="new Promise((done) => setTimeout(done, 150))", awaitPromise=True)


def test_it_opens_with_the_answer_and_asks_for_nothing_else(report: Path, browser: Browser) -> None:
    browser.go(report.as_uri())
    assert browser.value("document.querySelector('h1').innerText") == "84 of 200 memory failures are one mistake."
    assert "disable_gradient_checkpointing: false" in browser.value("document.querySelector('.answer').innerText")
    assert browser.value("document.querySelector('.answer').getBoundingClientRect().top") < 300, "the answer stands at the top"
    assert asked(browser) == {report.as_uri()} and browser.complaints() == []
    assert browser.picture().startswith(b"\x89PNG")


def test_without_scripts_everything_is_there(report: Path, browser: Browser) -> None:
    """The tables stand in their order, the plans open, the filters that could do nothing are hidden."""
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    browser.go(report.as_uri())
    jobs = [int(text.split()[0]) for text in column(browser, 2)]
    hours = [float(text.replace(",", "")) for text in column(browser, 3)]
    assert hours == sorted(hours, reverse=True) and sum(jobs) == 200
    assert browser.value("getComputedStyle(document.querySelector('.tools')).display") == "none"
    assert browser.value("document.querySelectorAll('button').length") == 0
    click(browser, "#g-2 summary")
    assert "cutoff_len: 1536" in browser.value("document.querySelector('#g-2').innerText")


def test_sorting(report: Path, browser: Browser) -> None:
    """Numbers from the largest, texts from the first letter, a second click the other way round; what is unknown stands last. The plan
    of a group moves with it."""
    browser.go(report.as_uri())
    heads = "#list-groups thead th:nth-child({}) button"
    click(browser, heads.format(4))
    hours = [float(text.replace(",", "")) for text in column(browser, 3)]
    assert hours == sorted(hours, reverse=True)
    assert browser.value("document.querySelector('#list-groups thead th:nth-child(4)').getAttribute('aria-sort')") == "descending"
    click(browser, heads.format(4))
    assert [float(text.replace(",", "")) for text in column(browser, 3)] == hours[::-1]
    assert browser.value("document.querySelectorAll('#list-groups [aria-sort]').length") == 1
    click(browser, heads.format(2))
    names = [re.sub(r" (?:new|back|gone)$", "", text.partition("\n")[0]) for text in column(browser, 1)]
    assert names == sorted(names, key=str.casefold)
    click(browser, heads.format(7))
    fits = column(browser, 6)
    assert fits[-1] == "unknown" and "unknown" not in fits[: len(fits) - fits.count("unknown")]
    for at in range(1, 5):
        assert browser.value(f"document.querySelector('#g-{at}').rows.length") == 2


def test_filtering(report: Path, browser: Browser) -> None:
    """Every word must stand in the row, wherever; how many are left is said to those who do not see it, too."""
    browser.go(report.as_uri())
    type_in(browser, "#list-groups-filter", "LOGITS dpo")
    shown = column(browser, 1)
    assert 0 < len(shown) < 12 and all("logits" in text and "dpo" in text for text in shown)
    assert browser.value("document.querySelector('#list-groups-tools output').innerText") == f"{len(shown)} of 12 shown"
    type_in(browser, "#list-groups-filter", "")
    assert len(column(browser, 1)) == 12
    click(browser, ".all-jobs summary")
    type_in(browser, "#list-jobs-filter", "user-3 setting")
    jobs = column(browser, 0, "#list-jobs")
    assert jobs and all("<user-3>" in text for text in jobs)


def test_from_a_failure_to_its_diagnosis_and_back(report: Path, browser: Browser) -> None:
    browser.go(report.as_uri())
    name, target = browser.value(
        "(() => { const link = document.querySelector('#list-jobs tbody a'); return [link.textContent, link.hash]; })()"
    )
    browser.press("#list-jobs tbody a")
    assert browser.value("location.hash") == target
    assert browser.value("document.querySelector(':target').tagName") == "ARTICLE"
    text = browser.value("document.querySelector(':target').innerText")
    assert "Why" in text and "Change this" in text
    links = browser.value("[...document.querySelectorAll('#list-jobs a')].map((each) => [each.textContent, each.hash])")
    assert [name, target] in links
    assert all(url.startswith(report.parent.as_uri()) for url in asked(browser)) and browser.complaints() == []
    browser.press("nav a")
    assert browser.value("document.querySelector('h1').innerText").startswith("84 of 200")


@for_each("width", [320, 390, 768, 1280])
@for_each("scheme", ["light", "dark"])
def test_no_width_scrolls_sideways(report: Path, browser: Browser, width: int, scheme: str) -> None:
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    for page in (report, report.parent / "report-files" / "group-1-1.html"):
        browser.go(page.as_uri())
        for opened in ("#g-1 details", ".all-jobs details"):
            browser.value(f"document.querySelectorAll('{opened}').forEach((each) => each.open = true)")
        assert browser.value("document.documentElement.scrollWidth") <= browser.value("document.documentElement.clientWidth"), page.name


CONTRAST = """(() => {
  const light = (text) => { const [r, g, b] = text.match(/[\\d.]+/g).map(Number).map((each) => (each /= 255) <= 0.03928 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ground = (node) => { for (; node; node = node.parentElement) { const held = getComputedStyle(node).backgroundColor; if (!/^rgba.*, 0\\)$|transparent/.test(held)) return held; } return "rgb(255, 255, 255)"; };
  const low = [];
  for (const node of document.querySelectorAll("h1,h2,p,td,th,a,summary,dt,dd,code,.badge,.chip,.add,.del,.dim,button,label")) {
    if (!node.offsetParent || !node.innerText.trim()) continue;
    const [one, other] = [light(getComputedStyle(node).color), light(ground(node))].sort((a, b) => b - a);
    const ratio = (one + 0.05) / (other + 0.05);
    if (ratio < 4.5) low.push(node.tagName + "." + node.className + " " + ratio.toFixed(2) + " " + node.innerText.slice(0, 30));
  }
  return [...new Set(low)];
})()"""  # noqa: E501 - a script


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read(report: Path, browser: Browser, scheme: str) -> None:
    """The contrast of WCAG AA between every text and what is behind it."""
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    for page in (report, report.parent / "report-files" / "group-2-1.html"):
        browser.go(page.as_uri())
        browser.value("document.querySelectorAll('details').forEach((each) => each.open = true)")
        assert browser.value(CONTRAST) == []


def test_it_is_named_for_those_who_hear_it(report: Path, browser: Browser) -> None:
    """Every column has a heading, every row a name, every picture a text, every field a label."""
    browser.go(report.as_uri())
    assert browser.value("[...document.querySelectorAll('table.list thead th')].every((each) => each.scope === 'col')")
    assert browser.value("[...document.querySelectorAll('table.list tbody')].every((each) => each.querySelector('th[scope=row]'))")
    assert browser.value(
        "[...document.querySelectorAll('svg')].every((each) => each.getAttribute('aria-label') || each.getAttribute('aria-hidden'))"
    )
    assert browser.value("[...document.querySelectorAll('input')].every((each) => each.labels.length === 1)")
    assert browser.value("document.querySelectorAll('h1').length") == 1
    assert browser.value("document.documentElement.lang") == "en"


def test_print(report: Path, browser: Browser) -> None:
    """On paper the plans are open; filters and the list of all jobs are left out; a week's report is some pages."""
    browser.go(report.as_uri())
    browser.call("Emulation.setEmulatedMedia", media="print")
    assert browser.value("getComputedStyle(document.querySelector('.tools')).display") == "none"
    assert browser.value("getComputedStyle(document.querySelector('.all-jobs')).display") == "none"
    assert browser.value("document.querySelector('#g-2 pre').getBoundingClientRect().height") > 20
    pdf = base64.b64decode(browser.call("Page.printToPDF", preferCSSPageSize=True)["data"])
    assert pdf.startswith(b"%PDF") and 2 <= pdf.count(b"/Type /Page\n") <= 16


def test_ten_thousand_failures_open_at_once(browser: Browser) -> None:
    """Seconds on a busy machine, a fraction of one on an idle one; sorting them all as well."""
    browser.go((report_of_thousands() / "report.html").as_uri())
    timing: dict[str, Any] = browser.value("performance.getEntriesByType('navigation')[0].toJSON()")
    assert timing["loadEventEnd"] < 5000
    assert browser.value("document.querySelectorAll('#list-jobs tbody tr').length") == THOUSANDS
    click(browser, ".all-jobs summary")
    button = "document.querySelector('#list-jobs thead th:nth-child(7) button')"
    spent = browser.value(f"(() => {{ const begun = performance.now(); {button}.click(); return performance.now() - begun; }})()")
    assert spent < 3000
