"""Jobs that a server keeps for the next question about them, under handles that nobody can guess."""

from __future__ import annotations

import secrets
from collections import OrderedDict

from diagnose.surfaces.server.question import Question

#: Jobs and bytes that are kept at most; the oldest goes first.
JOBS, BYTES = 32, 128 << 20


class KeptJobs:
    """The last jobs by handle, in memory only."""

    def __init__(self) -> None:
        self._jobs: OrderedDict[str, Question] = OrderedDict()

    def keep(self, question: Question) -> str:
        """Keep a job; its handle. A job that is asked about again keeps its own."""
        known = next((handle for handle, kept in self._jobs.items() if kept == question), None)
        handle = known or secrets.token_urlsafe(9)
        self._jobs[handle] = question
        self._jobs.move_to_end(handle)
        while len(self._jobs) > JOBS or (len(self._jobs) > 1 and sum(map(_size, self._jobs.values())) > BYTES):
            self._jobs.popitem(last=False)
        return handle

    def find(self, handle: str) -> Question | None:
        return self._jobs.get(handle)


def _size(question: Question) -> int:
    return sum(len(data) for _, data in (*question.logs, *question.configs))
