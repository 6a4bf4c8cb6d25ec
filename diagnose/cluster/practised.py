"""A failure diagnosed on import: tables and grammars are read, and all that a diagnosis needs is loaded."""

from __future__ import annotations

from diagnose import workers
from diagnose.cluster.digest import digest
from diagnose.cluster.work import work as work
from diagnose.explain import explain

digest(explain(workers.PRACTICE))
