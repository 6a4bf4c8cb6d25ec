"""What the tests of the site share: the built site behind a server, and one browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from browser import Browser, chromium
from playground import Playground
from static_site import SITE, served


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without a browser, or a site to look at, everything here is skipped, and the last lines of the run say why."""
    missing = (
        "chromium is not installed" if chromium() is None else "" if (SITE / "sw.js").exists() else "the site is not built (`make site`)"
    )
    for item in items:
        if missing:
            item.add_marker(pytest.mark.skip(reason=missing))


@pytest.fixture(scope="session")
def site() -> Iterator[str]:
    with served() as address:
        yield address


@pytest.fixture(scope="session")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture
def browser(chrome: Browser) -> Browser:
    """A fresh page in which scripts run and every request is written down."""
    chrome.start_over(scripts=True)
    chrome.call("Network.enable")
    return chrome


@pytest.fixture(scope="session")
def ready(chrome: Browser, site: str) -> Playground:
    """The playground with its engine, loaded once."""
    chrome.start_over(scripts=True)
    return Playground(chrome, site)
