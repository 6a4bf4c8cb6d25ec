"""The console script. It runs without garbage collection, which a process of a quarter of a second does not need."""

from __future__ import annotations

import gc
import os
import sys


def run() -> None:
    """Run the command line without garbage collection, and end without the final collection, which takes a fifth of the time for a
    hundred thousand objects. A command that started processes (triage) exits normally."""
    gc.set_threshold(700_000, 20, 20)
    try:
        main()
    finally:
        if "multiprocessing" not in sys.modules:
            gc.freeze()


def main() -> None:
    """Entry point: parse the command line, answer, exit with the documented status."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by whoever started us
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123 - as long as the process
    from diagnose.surfaces.cli import usage
    from diagnose.surfaces.cli.commands import app

    sys.exit(usage.answered(app))


if __name__ == "__main__":
    run()
