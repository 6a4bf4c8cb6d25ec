"""pytest plugin: adds a section to the report of a test that ran out of memory. Enable it with `-p diagnose.live.pytest_plugin`."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

SECTION = "out of memory"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("oomdoctor_configs", "configs of the jobs that the tests run, for the section on memory", type="paths", default=[])


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[object]) -> Generator[None, Any, None]:
    outcome = yield
    if call.excinfo is None:
        return
    report = outcome.get_result()
    if report.failed:
        text = section(call.excinfo.value, item.config.getini("oomdoctor_configs"))
        if text:
            report.sections.append((SECTION, text))


def section(error: BaseException, configs: list[Any]) -> str:
    """The explanation of an exception as text; empty if it is no memory error or cannot be explained."""
    # imported here: most test runs never need the renderer
    from diagnose.live.watching import Watch, locale_language
    from diagnose.render.formats import RENDERERS
    from diagnose.render.parts.view import View

    answers: list[str] = []
    Watch(configs, report=lambda diagnosis: answers.append(RENDERERS["text"](diagnosis, locale_language(), View()))).handle(error)
    return "".join(answers)
