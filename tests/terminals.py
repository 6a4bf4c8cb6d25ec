"""Commands that `oomdoctor run` supervises, and the pseudo-terminal of their user."""

from __future__ import annotations

import os
import select
import sys
import time

from checkout import ROOT

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.64 GiB. GPU 0 has a total capacity of 79.25 GiB of which "
    "1.41 GiB is free. Process 4242 has 77.80 GiB memory in use. Of the allocated memory 70.51 GiB is allocated by PyTorch, and "
    "5.51 GiB is reserved by PyTorch but unallocated."
)

RUN = [sys.executable, "-m", "diagnose", "run"]


def environment(**more: str) -> dict[str, str]:
    """This environment without launchers, in English, with what a test adds."""
    left = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SLURM", "RANK", "WORLD", "OMPI", "PMI", "LC_", "COLUMNS"))
    }
    return {**left, "LANG": "C.UTF-8", "PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1", **more}


class Terminal:
    """A pseudo-terminal with `oomdoctor run` at its other end, as a user's shell would have started it."""

    def __init__(self, master: int, pid: int) -> None:
        self.master, self.pid, self.seen = master, pid, b""

    def until(self, wanted: bytes, seconds: float = 20) -> bytes:
        """All that was printed, as soon as it holds what is waited for."""
        end = time.monotonic() + seconds
        while wanted not in self.seen:
            assert time.monotonic() < end, (wanted, self.seen)
            self._read(0.1)
        return self.seen

    def _read(self, seconds: float) -> bool:
        if not select.select([self.master], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        self.seen += data
        return bool(data)

    def end(self) -> int:
        """Read to the end; the exit status."""
        while self._read(20):
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
