"""axe-core in the page: what it finds, as short lines."""

from __future__ import annotations

import json
from functools import cache

import pytest
from browser import Browser
from site_parts import HERE

SCRIPT = HERE / "node_modules" / "axe-core" / "axe.min.js"


@cache
def axe() -> str:
    if not SCRIPT.exists():
        pytest.skip("axe-core is not installed (`npm ci` in site/)")
    return SCRIPT.read_text(encoding="utf-8")


def violations(browser: Browser) -> list[str]:
    """Rule and place of each violation that axe finds in what is shown now."""
    browser.call("Runtime.evaluate", expression=axe())
    found = browser.awaited(
        "axe.run().then((r) => JSON.stringify(r.violations.map((v) => [v.id, v.nodes.slice(0, 4).map((n) => n.target.join(' '))])))"
    )
    return [f"{rule}: {' | '.join(places)}" for rule, places in json.loads(found)]
