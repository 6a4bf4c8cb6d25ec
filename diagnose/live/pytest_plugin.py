"""A failing test that ran out of memory gets a section in its report. Switch it on with `-p diagnose.live.pytest_plugin`."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

SECTION = "out of memory"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("oomdoctor_configs", "configs of the jobs that the tests run, for the section on memory", type="paths", default=[])


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Generator[None, Any, None]:
    outcome = yield
    if call.excinfo is None:
        return
    report = outcome.get_result()
    if report.failed:
        text = section(call.excinfo.value, item.config.getini("oomdoctor_configs"))
        if text:
            report.sections.append((SECTION, text))


def section(error: BaseException, configs: list[Any]) -> str:
    """The answer about an exception; empty where it is none of memory, or where it cannot be explained."""
    from diagnose.live.watching import Watch, language
    from diagnose.render.formats import RENDERERS
    from diagnose.render.parts.view import View

    kept: list[str] = []
    Watch(configs, report=lambda found: kept.append(RENDERERS["text"](found, language(), View()))).passing(error)
    return "".join(kept)
