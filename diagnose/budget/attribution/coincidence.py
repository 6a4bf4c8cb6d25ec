"""How much a size says by itself: what else of this run's dimensions prints alike."""

from __future__ import annotations

import re
from functools import cache

from diagnose.budget.attribution.tensor_candidate import Candidate, Query
from diagnose.budget.attribution.tensor_table import tensors
from diagnose.budget.model.formulas import Formula, Number, Span, formula

#: What a product of dimensions is multiplied with: one to eight bytes per element, one to four of them side by side (pairs, queries
#: with keys and values, several copies).
MULTIPLES = tuple(sorted({width * copies for width in (1, 2, 4, 8) for copies in (1, 2, 3, 4)}))


def alike(candidates: list[Candidate], values: dict[str, Number], query: Query) -> int:
    """How many readings of the request there are: tensors that were found, and further sizes that print alike among all products of
    the table with small multiples, whatever the conditions of the run."""
    named = [candidate for candidate in candidates if not candidate.tensor.at_least]
    sizes: set[int] = set()
    for shape in _shapes():
        if any(name not in values or isinstance(values[name], Span) for name in shape.names):
            continue
        shape_bytes = shape.evaluate(values)
        if isinstance(shape_bytes, Span) or shape_bytes <= 0 or shape_bytes * MULTIPLES[-1] < query.low or shape_bytes > query.high:
            continue
        sizes.update(int(shape_bytes * times) for times in MULTIPLES if query.low <= shape_bytes * times <= query.high)
    return len(named) + len(sizes - {candidate.bytes for candidate in named})


@cache
def _shapes() -> tuple[Formula, ...]:
    """The products of the table without their plain numbers."""
    products = {_bare(symbols) for tensor in tensors() if not tensor.at_least for symbols in tensor.bytes}
    return tuple(formula(symbols) for symbols in sorted(products) if symbols)


def _bare(symbols: str) -> str:
    """A product without its plain factors; a sum inside brackets stays as it is."""
    parts = re.findall(r"(?:[^*()]|\((?:[^()]|\([^()]*\))*\))+", symbols)
    return "*".join(part for part in parts if not part.isdigit())
