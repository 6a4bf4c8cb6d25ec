"""How the property tests run: without a clock, and in CI with the same examples each time; what several modules of tests start."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    import httpx
    from chatting import Kept
    from serving import Server

# A first example loads tables; a deadline would measure that, or the machine's other work.
settings.register_profile("local", deadline=None)
# CI judges a change, so it must not fail by what it happened to draw; the search for new examples is for people's machines.
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.fixture(scope="module")
def crew() -> Iterator[Kept]:
    """What diagnoses for the chat bots of a module, which each close their own desk."""
    from chatting import Kept

    held = Kept(workers=1, seconds=30, capacity=64)
    yield held
    held.end()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """`oomdoctor serve` with one worker and small requests, for a module."""
    from serving import serving

    with serving("--workers", "1", "--max-mib", "2") as held:
        yield held


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[httpx.Client]:
    """A client of it."""
    import httpx

    with httpx.Client(base_url=server.url, timeout=60, trust_env=False) as held:
        yield held
