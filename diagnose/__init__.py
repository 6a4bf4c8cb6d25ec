"""oomdoctor: why a training job ran out of GPU memory, and what to change.

`explain`, `check`, `triage`, `Report`, `watch` and `install_excepthook` are imported on first use: importing this package imports no
room of it.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from diagnose.cluster.triage import triage
    from diagnose.explain import check, explain
    from diagnose.live.watching import install_excepthook, watch
    from diagnose.phrases import Lang
    from diagnose.report import Diagnosis, Json
    from diagnose.typed import Report

__version__ = "0.1.0"
__all__ = ["Report", "__version__", "check", "explain", "install_excepthook", "triage", "watch"]


def to_dict(diagnosis: Diagnosis, lang: Lang = "en") -> dict[str, Json]:
    """The report of the contract."""
    from diagnose.render import data

    return data.to_dict(diagnosis, lang)


def to_markdown(diagnosis: Diagnosis, lang: Lang = "en", *, redact: bool = True, verbose: bool = False) -> str:
    """What one pastes into a chat; secrets and names masked unless `redact` is False."""
    from diagnose.render import RENDERERS, View
    from diagnose.render import redact as masks

    return RENDERERS["markdown"](masks.diagnosis(diagnosis) if redact else diagnosis, lang, View(verbose=verbose))


class _Package(ModuleType):
    """`diagnose.explain` is the function, although a module of that name exists: the import system may not put it there."""

    def __getattr__(self, name: str) -> object:
        if name in ("explain", "check"):
            from diagnose.explain import check, explain

            return {"explain": explain, "check": check}[name]
        if name in ("watch", "install_excepthook"):
            from diagnose.live.watching import install_excepthook, watch

            return {"watch": watch, "install_excepthook": install_excepthook}[name]
        if name == "triage":
            from diagnose.cluster.triage import triage

            return triage
        if name == "Report":
            from diagnose.typed import Report

            return Report
        raise AttributeError(f"module 'diagnose' has no attribute {name!r}")

    def __setattr__(self, name: str, value: object) -> None:
        if not (name == "explain" and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
