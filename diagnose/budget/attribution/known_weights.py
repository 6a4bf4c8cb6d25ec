"""One weight of a known model, by its size alone: for a failure among weights where nothing says which model they are of."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from functools import cache
from typing import Any

from diagnose import rule_files
from diagnose.budget.attribution.text_products import Asked, Product
from diagnose.units import Size

#: Bytes of an element, on a card and in host memory, where weights are made in 32 bits first.
_WIDTHS, _HOST_WIDTHS = (2, 4, 1), (4, 2, 1)


def weight(asked: Asked, statements: str, families: Sequence[str], on_host: bool, capacity: Size | None) -> Product | None:
    """The weight of a known model that is as large as the request. To the byte any model's; else only of a family that the text shows, or
    of the layer that the statement makes. `statements`: those of the innermost frames. Of several the first of the catalogue
    whose model fits on the card."""
    widths = _HOST_WIDTHS if on_host and "half" not in statements else _WIDTHS
    found = [(row, width) for width in widths for row in _rows(-(-asked.low // width), asked.high // width)]
    if not found:
        return None
    shown = [layer for layer, pattern in rule_files.table("mentions")["layers"].items() if re.search(pattern, statements)]
    own = [pair for pair in found if pair[0][4] in families]
    chosen = own or found
    layer = [pair for pair in chosen if pair[0][1] in shown] if shown else []
    chosen = layer or chosen
    if not own and not asked.is_exact and not (layer and len({row[0] for row, _ in layer}) <= 2):
        return None
    room = capacity.bytes if capacity is not None and not on_host else 0
    fitting = [pair for pair in chosen if pair[0][6] * pair[1] <= room]
    (_, _, rows, columns, _, model, _, _), width = min(fitting or chosen, key=lambda pair: pair[0][7])
    tried = 12 if own else len({row[0] for row in _table() if row[1] in shown or not layer}) * len(_WIDTHS)
    return Product((rows, columns), width, "weight", asked.chance(tried), model, bool(own))


def _rows(low: int, high: int) -> list[tuple[int, str, int, int, str, str, int, int]]:
    table = _table()
    place = bisect_left(table, (low,))
    found = []
    while place < len(table) and table[place][0] <= high:
        found.append(table[place])
        place += 1
    return found


@cache
def _table() -> list[tuple[int, str, int, int, str, str, int, int]]:
    """Elements, layer, rows, columns, family, model, its parameters and its place in the catalogue of every large matrix, by its size."""
    return [tuple(row) for row in rule_files.kept("models.matrices", _build, "models")]


def _build() -> list[list[Any]]:
    from diagnose.catalogue.models import every_model

    rows: dict[tuple[str, int, int, str], list[Any]] = {}
    for place, model in enumerate(every_model()):
        matrices = [
            ("vocabulary", model.V, model.embed or model.h),
            ("mlp", model.f, model.h),
            ("attention", model.q, model.h),
            ("attention", model.k, model.h),
        ]
        if model.experts is not None:
            matrices.append(("mlp", model.experts.width, model.h))
        for layer, one, other in matrices:
            if one and other and one * other >= 1 << 20:
                rows.setdefault(
                    (layer, one, other, model.family), [one * other, layer, one, other, model.family, model.id, model.params, place]
                )
    return sorted(rows.values())
