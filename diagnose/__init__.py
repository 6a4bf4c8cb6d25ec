"""oomdoctor: why a training job ran out of GPU memory, and what to change.

`explain`, `check`, `triage`, `Report`, `watch` and `install_excepthook` are imported on first use: importing this package imports no
room of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from diagnose.version import __version__

if TYPE_CHECKING:
    from diagnose.cluster.run.triage_run import triage
    from diagnose.live.watching import install_excepthook, watch
    from diagnose.pipeline import check, explain
    from diagnose.render.data.pydantic_report import Report

__all__ = ["Report", "__version__", "check", "explain", "install_excepthook", "triage", "watch"]


#: Where the names of the public interface are defined.
_PUBLIC = {
    "Report": "diagnose.render.data.pydantic_report",
    "check": "diagnose.pipeline",
    "explain": "diagnose.pipeline",
    "install_excepthook": "diagnose.live.watching",
    "triage": "diagnose.cluster.run.triage_run",
    "watch": "diagnose.live.watching",
}


def __getattr__(name: str) -> object:
    """A name of the public interface, imported when it is first asked for."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'diagnose' has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)
