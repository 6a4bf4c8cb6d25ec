"""Verdicts to priced remedies, rejected advice, the cheapest plan that fits, questions; edits and patches."""

from __future__ import annotations

from diagnose.plan.choose.advice import make
from diagnose.plan.remedies.remedy import Outcome

__all__ = ["Outcome", "make"]
