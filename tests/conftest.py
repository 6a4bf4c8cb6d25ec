"""How the property tests run: without a clock, and in CI with the same examples each time."""

from __future__ import annotations

import os

from hypothesis import settings

# A first example loads tables; a deadline would measure that, or the machine's other work.
settings.register_profile("local", deadline=None)
# CI judges a change, so it must not fail by what it happened to draw; the search for new examples is for people's machines.
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")
