"""One test for many values: every value is checked, and all failures are reported together."""

from __future__ import annotations

import functools
import inspect
import traceback
from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

import pytest

Test = Callable[..., None]


def for_each(names: str, values: Iterable[Any]) -> Callable[[Test], Test]:
    """Like pytest.mark.parametrize, but one item: the test runs once for each value and fails once, with a line for each failing value.

    Stacked, it runs for the product. Fixtures are shared by all values. It fails too where nothing was checked: without values, or
    where the test skipped every one of them.
    """
    axis = (tuple(name.strip() for name in names.split(",")), list(values))

    def decorate(test: Test) -> Test:
        axes = [axis, *getattr(test, "axes", [])]
        check = getattr(test, "check", test)

        @functools.wraps(check)
        def run(**fixtures: Any) -> None:
            failures, checked = [], 0
            for choice in product(*(values for _, values in axes)):
                label, arguments = _arguments(axes, choice)
                try:
                    check(**arguments, **fixtures)
                except pytest.skip.Exception:
                    continue
                except (Exception, pytest.fail.Exception) as error:
                    lines = [
                        frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == inspect.getfile(check)
                    ]
                    failures.append(f"[{label}] line {lines[-1]}: {type(error).__name__}: {error}")
                checked += 1
            assert not failures, f"{len(failures)} of {checked} values fail\n" + "\n".join(failures)
            assert checked, "no value was checked"

        looped = {name for names, _ in axes for name in names}
        signature = inspect.signature(check)
        run.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[parameter for name, parameter in signature.parameters.items() if name not in looped]
        )
        run.axes, run.check = axes, check  # type: ignore[attr-defined]
        return run

    return decorate


def _arguments(axes: list[Any], choice: tuple[Any, ...]) -> tuple[str, dict[str, Any]]:
    """What a failing choice is called (its pytest id where it has one), and the test's arguments."""
    arguments: dict[str, Any] = {}
    labels = []
    for (names, _), value in zip(axes, choice, strict=True):
        is_param = hasattr(value, "marks")
        parts = value.values if is_param else value if len(names) > 1 else (value,)
        arguments |= dict(zip(names, parts, strict=True))
        labels.append((is_param and value.id) or ", ".join(getattr(part, "__name__", None) or repr(part)[:80] for part in parts))
    return "; ".join(labels), arguments
