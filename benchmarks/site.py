"""How soon the playground answers: `python benchmarks/site.py` (after `make site`).

Prints, of a browser with an empty cache, the seconds from opening the page to the first answer, then those of each later answer and of
each turn of a knob. Beside the seconds on the clock stand those of the processor that the browser took in all its processes: a busy
machine changes the first figure much and the second little.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / folder) for folder in ("tests", "site", "site/tests")]

from browser import Browser, chromium  # noqa: E402
from static_site import SITE, served  # noqa: E402

FIRST = "llamafactory-6800"
LATER = ("trl-3172", "openrlhf-392", "openrlhf-964", "before-the-run", "llamafactory-6800")
#: What the issue asks for, in seconds: the first answer, each later one, a turn of a knob.
BARS = {"first": 6.0, "later": 0.5, "turn": 0.15}
TICK = os.sysconf("SC_CLK_TCK")


def main() -> None:
    if chromium() is None or not (SITE / "sw.js").exists():
        sys.exit("benchmarks/site.py: needs chromium, and the site (`make site`)")
    with served() as site, tempfile.TemporaryDirectory() as profile:
        browser = Browser(Path(profile))
        try:
            measure(browser, site)
        finally:
            browser.close()


def measure(browser: Browser, site: str) -> None:
    browser.start_over(scripts=True)
    before = processor(browser)
    browser.go(f"{site}/play/#example={FIRST}")
    browser.until("window.measure?.since_start", 300)
    tell("first answer, empty cache", browser.value("window.measure.since_start") / 1000, processor(browser) - before, BARS["first"])
    browser.until("document.documentElement.dataset.answered", 300)
    for name in LATER:
        count, before = browser.value("Number(document.documentElement.dataset.answered)"), processor(browser)
        browser.value(f"document.querySelector('[data-example=\"{name}\"]').click()")
        browser.until(f"Number(document.documentElement.dataset.answered) > {count}", 300)
        tell(f"later answer, {name}", browser.value("window.measure.open") / 1000, None, BARS["later"])
    browser.until("document.getElementById('knob-train.max_seq_len') !== null")
    for place in (2, 3, 1):
        count = browser.value("Number(document.getElementById('turned').dataset.count)")
        slider = "document.getElementById('knob-train.max_seq_len')"
        browser.value(f"{slider}.value = {place}; {slider}.dispatchEvent(new Event('input', {{bubbles: true}}))")
        browser.until(f"Number(document.getElementById('turned').dataset.count) > {count}", 60)
        tell("turn of a knob", browser.value("window.measure.turn") / 1000, None, BARS["turn"])
        browser.until("!document.getElementById('made').hidden", 60)


def tell(what: str, seconds: float, processor_seconds: float | None, bar: float) -> None:
    used = "" if processor_seconds is None else f"  {processor_seconds:6.2f} s of processor"
    print(f"{what:40} {seconds:6.2f} s  (at most {bar:g} s){used}")


def processor(browser: Browser) -> float:
    """Seconds that the browser's processes have taken of the processor so far."""
    parents, times = {}, {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(folder.name)] = int(fields[1])
            times[int(folder.name)] = (int(fields[11]) + int(fields[12])) / TICK
    ours = [browser.process.pid]
    for process in ours:
        ours += [child for child, parent in parents.items() if parent == process]
    return sum(times[process] for process in ours if process in times)


if __name__ == "__main__":
    main()
