"""How likely a request of unrelated size prints as one of the tensors that were tried: what separates an identity from a coincidence."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log, log2

from diagnose.budget.attribution.tensor_candidate import Candidate, Query, evaluate_bytes, settled_values
from diagnose.budget.attribution.tensor_table import Tensor
from diagnose.budget.model.formulas import Number

#: Printed requests lie between these bytes, and no doubling between them is much more frequent than another.
SMALLEST, LARGEST = 20 * 2**20, 80 * 2**30
#: Sizes are round that are an odd number up to this times a power of two. They are far more frequent than others, because lengths, batches
#: and most dimensions are round; they are compared with each other alone.
ROUND = 31
#: A match is an identity below this chance.
BAR = 0.02


@dataclass(slots=True, eq=False)
class Trial:
    """What was held against one request: the tensors of the run, the numbers they were evaluated with (`rounds`, of which those from
    `guessed` on have lengths that nobody set), and how many times all of it was done with other dimensions or allocators."""

    tensors: list[Tensor]
    rounds: list[dict[str, Number]]
    guessed: int = 1
    times: int = 1
    sizes: dict[tuple[int, int], set[int]] = field(default_factory=dict)

    def chance(self, candidate: Candidate, request: Query) -> float:
        """The probability, 0 to 1, that some request between SMALLEST and LARGEST matches one of the tensors that the same evidence (frame
        and phase, phase, neither) allows. 1 where a length was free."""
        if candidate.free:
            return 1.0
        key = request.evidence(candidate.tensor), candidate.round
        if key not in self.sizes:
            self.sizes[key] = self._tried_sizes([tensor for tensor in self.tensors if request.evidence(tensor) >= key[0]], key[1])
        sizes = self.sizes[key] | {candidate.bytes}
        if is_round(candidate.bytes):
            return min(1.0, sum(map(is_round, sizes)) * self.times / _round_sizes())
        return min(1.0, len(sizes) * self.times * log((request.high + 1) / request.low) / log(LARGEST / SMALLEST))

    def _tried_sizes(self, peers: list[Tensor], last: int) -> set[int]:
        sizes = {
            evaluate_bytes(symbols, settled)
            for numbers in self.rounds[: last + 1]
            for tensor in peers
            if not tensor.at_least
            for settled in settled_values(tensor, numbers)
            for symbols in tensor.bytes
        }
        return {size for size in sizes if size is not None and SMALLEST <= size <= LARGEST}


def is_round(size: int) -> bool:
    """Whether a size is a small odd number times a power of two."""
    return size // (size & -size) <= ROUND


def _round_sizes() -> float:
    """How many round sizes lie between SMALLEST and LARGEST."""
    return (ROUND + 1) / 2 * log2(LARGEST / SMALLEST)
