"""The playground, driven as a person drives it."""

from __future__ import annotations

from pathlib import Path

from browser import Browser


class Playground:
    """The playground as a person uses it."""

    def __init__(self, browser: Browser, site: str, path: str = "/play/") -> None:
        self.browser = browser
        browser.call("Network.enable")
        self.site = site
        browser.go(site + path)
        browser.until("document.documentElement.dataset.engine", 120)

    def answered(self) -> int:
        return int(self.browser.value("document.documentElement.dataset.answered ?? 0"))

    def does(self, script: str) -> None:
        """Run what leads to an answer, and wait for it."""
        before = self.answered()
        self.browser.value(script)
        self.browser.until(f"Number(document.documentElement.dataset.answered ?? 0) > {before}", 120)

    def example(self, name: str) -> None:
        self.does(f"document.querySelector('[data-example=\"{name}\"]').click()")

    def explain(self) -> None:
        self.does("document.getElementById('explain').click()")

    def drop(self, path: Path) -> None:
        """Drop a file or a folder on the page."""
        before = self.answered()
        for kind in ("dragEnter", "dragOver", "drop"):
            data = {"items": [], "files": [str(path)], "dragOperationsMask": 1}
            self.browser.call("Input.dispatchDragEvent", type=kind, x=300, y=300, data=data)
        self.browser.until(f"Number(document.documentElement.dataset.answered ?? 0) > {before}", 120)

    def turned(self, script: str) -> None:
        """Run what turns a knob, and wait for bars and patch."""
        counts = "Number(document.getElementById('{}').dataset.count ?? 0)"
        bars, rest = (int(self.browser.value(counts.format(name))) for name in ("turned", "knobs"))
        self.browser.value(script)
        self.browser.until(f"{counts.format('turned')} > {bars} && {counts.format('knobs')} > {rest}", 60)

    def text(self, name: str) -> str:
        return str(self.browser.value(f"document.getElementById('{name}').textContent"))
