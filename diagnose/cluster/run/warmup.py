"""Diagnoses a failure on import, so that a fork server, which can only import modules, loads all tables and grammars for its workers."""

from __future__ import annotations

from diagnose import workers
from diagnose.cluster.run.job_work import work as work
from diagnose.cluster.store.digests import digest
from diagnose.pipeline import explain

digest(explain(workers.WARMUP_LOG))
