"""The pictures of the documentation: a headless Chromium opens what the program makes, `python benchmarks/pictures.py`.

docs/images/answer.webp is the page of `oomdoctor explain --format html`, docs/images/paste.webp the form of `oomdoctor serve`, filled in
but not yet sent: both show corpus/llamafactory-6800. docs/images/week.webp is the report of `oomdoctor triage --out` on benchmarks/week.py.
docs/images/knobs.webp is the playground of the built site, docs/images/site.webp four of its pages in both languages, made small. Needs a
Chromium on PATH, a Chinese font, the extras `serve` and `triage`, and `make site`.
"""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "site" / "tests")]

from browser import Browser, chromium  # noqa: E402 - it lies beside the tests that use it
from serving import serving  # noqa: E402
from week import lay  # noqa: E402

IMAGES = ROOT / "docs" / "images"
CASE = ROOT / "corpus" / "llamafactory-6800"
CONFIGS = ("qwen2vl_dpo.yaml", "ds_z3_config.json")

#: In CSS pixels, as a README shows it; the largest picture that a repository should carry.
WIDTH, LARGEST = 900, 200_000


def answer(browser: Browser, folder: Path) -> bytes:
    """The upper part of the page: the verdict, the bar, the plan."""
    options = [word for name in CONFIGS for word in ("--config", name)]
    page = folder / "answer.html"
    with page.open("wb") as file:
        command = [sys.executable, "-m", "diagnose", "explain", "error.log", *options, "--format", "html", "--lang", "en"]
        subprocess.run(command, cwd=CASE, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=file, check=True)
    return taken(browser, page.as_uri(), 900)


def paste(browser: Browser) -> bytes:
    """The form, with a log pasted and two configs chosen."""
    with serving("--workers", "1") as server:
        browser.go(server.url + "/?lang=en")
        browser.fill("#log", (CASE / "error.log").read_text(encoding="utf-8"))
        browser.choose("#config_file", *(CASE / name for name in CONFIGS))
        return taken(browser, "", 1060)


def week(browser: Browser, folder: Path) -> bytes:
    """The report of a week of failures: the answer, the figures, the chart."""
    jobs = folder / "week"
    target = folder / "report.html"
    command = [sys.executable, "-m", "diagnose", "triage", str(lay(jobs)), "--out", str(target), "--lang", "en"]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return taken(browser, target.as_uri(), 1010, width=1180)


def knobs(browser: Browser) -> bytes:
    """The playground with the plan turned on."""
    from static_site import served

    with served() as site:
        turn_the_plan_on(browser, f"{site}/play/")
        return taken(browser, "", 930, width=1180)


def turn_the_plan_on(browser: Browser, playground: str) -> None:
    """Open the playground with a failure, turn its plan on, and show what it does."""
    browser.start_over(scripts=True)
    browser.go(f"{playground}#example=llamafactory-6800")
    browser.until("document.documentElement.dataset.answered", 300)
    browser.value("document.getElementById('tab-knobs').click(); document.getElementById('apply-plan').click()")
    browser.until("!document.getElementById('made').hidden", 60)
    browser.call("Emulation.setDeviceMetricsOverride", width=1180, height=930, deviceScaleFactor=1, mobile=False)
    browser.value("document.getElementById('result').scrollIntoView({behavior: 'instant'})")


def pages(browser: Browser, folder: Path) -> bytes:
    """Home, playground, accuracy and a page of the docs: English above, Chinese below."""
    from static_site import served

    tiles = []
    with served() as site:
        for language, manual in ((site, "docs/docs/memory/"), (f"{site}/zh", "docs/")):
            for page in ("", "play/", "accuracy/", manual):
                if page == "play/":
                    turn_the_plan_on(browser, f"{language}/{page}")
                picture = taken(browser, "" if page == "play/" else f"{language}/{page}", 930, width=1180)
                tiles.append(f'<img src="data:image/webp;base64,{base64.b64encode(picture).decode()}">')
    sheet = folder / "sheet.html"
    style = (
        "body{margin:0;padding:6px;background:#777;display:grid;grid-template-columns:repeat(4,1fr);gap:6px}img{width:100%;display:block}"
    )
    sheet.write_text(f"<style>{style}</style>{''.join(tiles)}", encoding="utf-8")
    return taken(browser, sheet.as_uri(), 634, width=1590)


def taken(browser: Browser, url: str, height: int, width: int = WIDTH) -> bytes:
    """What the window shows, as WebP."""
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
    if url:
        browser.go(url)
    return base64.b64decode(browser.call("Page.captureScreenshot", format="webp", quality=85)["data"])


def main() -> int:
    if chromium() is None:
        sys.exit("no Chromium on PATH")
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # a browser that was ended may still write
        browser = Browser(Path(folder) / "profile")
        try:
            pictures = {
                "answer": answer(browser, Path(folder)),
                "paste": paste(browser),
                "week": week(browser, Path(folder)),
                "knobs": knobs(browser),
                "site": pages(browser, Path(folder)),
            }
        finally:
            browser.close()
    for name, data in pictures.items():
        (IMAGES / f"{name}.webp").write_bytes(data)
        print(f"docs/images/{name}.webp  {len(data):,} bytes")
    return int(any(len(data) > LARGEST for data in pictures.values()))


if __name__ == "__main__":
    sys.exit(main())
