"""The console script: a process of a fifth of a second need neither collect garbage nor tidy up."""

from __future__ import annotations

import gc
import os
import sys


def run() -> None:
    """The command line, with less ado: tearing three hundred modules down takes a tenth of the time of a diagnosis.

    What has started other processes (triage) leaves as any program does.
    """
    gc.set_threshold(700_000, 20, 20)
    from diagnose.surfaces.cli.command_line import main

    try:
        main()
        status: object = 0
    except SystemExit as left:
        status = left.code
    if "multiprocessing" in sys.modules or not (status is None or isinstance(status, int)):
        sys.exit(status)  # type: ignore[arg-type]
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:  # the reader (head, less) has seen enough; a full disk was complained of when it was written to
        pass
    os._exit(status or 0)
