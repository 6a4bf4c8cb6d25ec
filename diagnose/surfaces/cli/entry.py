"""The console script: a process of a quarter of a second need not look for garbage."""

from __future__ import annotations

import gc
import os
import sys


def run() -> None:
    """The command line without garbage collection: among a hundred thousand objects a search at the end takes a fifth of the time.

    What has started other processes (triage) lives longer and leaves as any program does.
    """
    gc.set_threshold(700_000, 20, 20)
    try:
        main()
    finally:
        if "multiprocessing" not in sys.modules:
            gc.freeze()


def main() -> None:
    """Understand the words of the command line, answer, and leave with the exit status of the contract."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by whoever started us
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123 - as long as the process
    from diagnose.surfaces.cli import usage
    from diagnose.surfaces.cli.commands import app

    sys.exit(usage.answered(app))


if __name__ == "__main__":
    run()
