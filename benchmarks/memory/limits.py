"""What no model of the settings can do better: figures of one source that differ though the settings agree."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from memory.rows import Refused, Row, block, model_of, source

#: Fields of a row that say how it was set up; the others describe it in words or say what came of it.
SETTINGS = ("kind", "compare", "lengths", "gpus", "gpu", "model_id", "model_dims", "software", "knobs", "facts", "unknown")

#: What an engine takes is given back while it sleeps. The completions of a prompt lengthen its buffers for experts (`engine_tokens` in
#: rules/ledger.yaml), and those stay; of them the trainer holds no more at a time than its micro batch, and some bytes per token.
SHARE, COMPLETIONS = "rollout.gpu_memory_utilization", "rollout.num_generations"


class Limit(NamedTuple):
    """The smallest worst and mean error that any function of the settings has on rows that agree in them."""

    rows: int
    worst: float
    mean: float


def limit(rows: Iterable[Row], *, asleep: bool) -> Limit | None:
    """Of rows with a figure; `asleep`: whether settings of an engine that sleeps tell rows apart. None where no two agree."""
    groups: dict[str, list[float]] = {}
    for row in rows:
        groups.setdefault(_settings(row, asleep=asleep), []).append(float(row["measured_gib"]))
    alike = [figures for figures in groups.values() if len(figures) > 1]
    if not alike:
        return None
    count = sum(map(len, alike))
    return Limit(count, max(map(_worst, alike)), sum(map(_least, alike)) / count)


def _worst(figures: Sequence[float]) -> float:
    """The best one answer lies between the ends: p/low - 1 = 1 - p/high where p is 2*low*high / (low + high)."""
    return (max(figures) - min(figures)) / (max(figures) + min(figures))


def _least(figures: Sequence[float]) -> float:
    """The least sum of errors of one answer, which is one of the figures: between two of them the sum is a straight line."""
    return min(sum(abs(answer / figure - 1) for figure in figures) for answer in figures)


def _settings(row: Row, *, asleep: bool) -> str:
    fields: dict[str, Any] = {name: row.get(name) for name in SETTINGS}
    fields["source"], fields["model"] = source(row), row.get("model_id") or row.get("model")
    knobs = block(row, "knobs")
    if not asleep and knobs.get("rollout.sleep"):
        left_out = {SHARE} if _experts(row) else {SHARE, COMPLETIONS}
        fields["knobs"] = {name: value for name, value in knobs.items() if name not in left_out}
    return json.dumps(fields, sort_keys=True, default=str)


def _experts(row: Row) -> bool:
    try:
        return bool(model_of(row).experts)
    except Refused:
        return True
