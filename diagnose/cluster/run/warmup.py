"""A failure diagnosed on import: tables and grammars are read, and all that a diagnosis needs is loaded."""

from __future__ import annotations

from diagnose import workers
from diagnose.cluster.run.job_work import work as work
from diagnose.cluster.store.digests import digest
from diagnose.pipeline import explain

digest(explain(workers.PRACTICE))
