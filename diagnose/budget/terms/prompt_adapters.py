"""LLaMA-Adapter: frozen layers that attend to a learned prompt as well, and, in its second version, linears with a learned scale and bias.
Both as LitGPT builds them."""

from __future__ import annotations

from typing import Any

from diagnose.budget.model.role_setup import Setup
from diagnose.budget.model.software_table import table
from diagnose.budget.terms.layer_mode import Mode

SOURCE = "LitGPT litgpt/adapter.py, litgpt/adapter_v2.py"


def kept(job: Setup, how: Mode) -> list[str]:
    """Kept per token of a layer: the attention to the prompt, which its gate scales; and what every linear gives before its scale."""
    entry = _entry(job)
    if entry is None:
        return []
    linears = f"{how.each}*(q + 2*k + 2*h + {2 if job.model is None or job.model.gated else 1}*f)"
    return [f"{how.each}*q", *([linears] if entry["scales"] else [])]


def scales(job: Setup) -> bool:
    """Whether linears have a scale and a bias that learn, and norms learn, too."""
    entry = _entry(job)
    return entry is not None and bool(entry["scales"])


def _entry(job: Setup) -> dict[str, Any] | None:
    entry: dict[str, Any] | None = table()["prompts"].get(job.trainable.kind)
    return entry
