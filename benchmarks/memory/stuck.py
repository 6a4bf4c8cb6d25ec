"""What torch's allocator holds of decoder layers while the loss is computed, in steps whose layers are computed again in backward.

    python benchmarks/memory/stuck.py [--tokens T ...]

Steps of gaps.py with a forward pass without gradients, which lets every block go as soon as it is read, and the blocks of a cross entropy
of whole logits between forward and backward. Nothing here is measured. The table holds, for real widths, what is reserved beside what is
allocated at the peak and beside the blocks of the loss that nothing fits in (`laid` of blocks.py), as a share of what a layer takes that is
computed again (layer_recomputed of the ledger): `STUCK` in blocks.py are its ends. They are 45 to 65 % where layers learn, 91 to 108 %
where adapters share their input, 74 to 99 % where they copy it, 70 to 93 % where they cast it to fp32 on the way.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[2])]

from memory.allocator import Block  # noqa: E402 - found by the line above
from memory.gaps import INPUTS, RANK, Steps, Widths  # noqa: E402

#: Qwen2.5 0.5B, 3B, 7B and Llama 2 7B with their vocabularies, but for Llama's: Qwen's, which is wider than its layers.
REAL = (
    (Widths(896, 4864, 896, 128), 24),
    (Widths(2048, 11008, 2048, 256), 36),
    (Widths(3584, 18944, 3584, 512), 28),
    (Widths(4096, 11008, 4096, 4096), 32),
)
VOCABULARY = 151936


class WithLoss(Steps):
    """Micro batches through all layers and a cross entropy in fp32 (`upcast`) or of 16-bit logits."""

    def __init__(self, widths: Widths, tokens: int, inputs: str, layers: int, *, upcast: bool) -> None:
        super().__init__(widths, tokens, inputs, layers)
        self.upcast = upcast

    def run(self, times: int) -> None:
        for _ in range(times):
            stream, checkpoints = self.take(2 * self.widths.h), []
            for _ in range(self.layers):
                checkpoints.append(stream)
                stream = self.passed()
            self.store.give(*stream)
            self.loss()
            (gradient,) = self.take(2 * self.widths.h)
            for checkpoint in reversed(checkpoints):
                after, kept = self.forward()
                self.store.give(*after)
                self.backward(kept, gradient)
                self.store.give(*checkpoint)
            self.store.give(gradient)

    def loss(self) -> None:
        """Logits, fp32 copy, log-softmax, its gradient and that of the logits, which is cast where they were."""
        each = 4 if self.upcast else 2
        logits = self.take(2 * VOCABULARY)
        copy = self.take(4 * VOCABULARY) if self.upcast else []
        log_softmax = self.take(each * VOCABULARY)
        self.store.give(*copy, *logits)
        gradient, of_logits = self.take(each * VOCABULARY, each * VOCABULARY)
        self.store.give(gradient, *log_softmax)
        cast = self.take(2 * VOCABULARY)
        self.store.give(of_logits, *cast)

    def laid(self) -> int:
        """Bytes of the loss's blocks beyond those in use at its peak: 16-bit logits serve no fp32 block."""
        return 2 * VOCABULARY * self.tokens if self.upcast else 0

    def passed(self) -> list[Block]:
        """A layer's output, without gradients."""
        h, f, q, k = self.widths
        normed = self._normed()
        query, key, value = self._product(h, q), self._product(h, k), self._product(h, k)
        turned = self._rotated(q) + self._rotated(k)
        self.store.give(*normed, *query, *key)
        attended = self.take(2 * q)
        self.store.give(*turned, *value)
        added = self._product(q, h)
        residual = self.take(2 * h)
        self.store.give(*attended, *added)
        normed = self._normed()
        gate = self._product(h, f)
        active = self.take(2 * f)
        self.store.give(*gate)
        up = self._product(h, f)
        product = self.take(2 * f)
        self.store.give(*normed, *active, *up)
        added = self._product(f, h)
        out = self.take(2 * h)
        self.store.give(*product, *added, *residual)
        return out

    def _normed(self) -> list[Block]:
        h = self.widths.h
        wide = self.take(4 * h, 4 * h, 4 * h, 2 * h)
        out = self.take(2 * h)
        self.store.give(*wide)
        return out

    def _product(self, read: int, made: int) -> list[Block]:
        """A linear's output, with that of its adapter."""
        out = self.take(2 * made)
        if self.inputs == "whole":
            return out
        copy = self.take((4 if self.inputs == "cast" else 2) * read) if self.inputs in ("cast", "copied") else []
        low = self.take(2 * RANK)
        parts = self.take(2 * made, 2 * made)
        whole = self.take(2 * made)
        self.store.give(*copy, *low, *parts, *out)
        return whole


def share(widths: Widths, layers: int, tokens: int, inputs: str, *, upcast: bool) -> float:
    """Reserved beyond allocated and beyond the loss's own blocks at their peaks, over the working set of a layer."""
    alone = Steps(widths, tokens, inputs, 2)
    alone.run(1)
    steps = WithLoss(widths, tokens, inputs, layers, upcast=upcast)
    steps.run(2)
    return (steps.store.most_reserved - steps.store.most_allocated - steps.laid()) / alone.most


def main() -> None:
    ask = argparse.ArgumentParser(description="blocks of layers that are computed again, while the loss is computed")
    ask.add_argument("--tokens", type=int, nargs="+", default=[2048, 4096, 8192])
    lengths = ask.parse_args().tokens
    print(f"{'inputs':8}{'loss':>8}{'h':>6}" + "".join(f"{tokens:>8}" for tokens in lengths))
    for inputs in INPUTS:
        for upcast in (False, True):
            for widths, layers in REAL:
                shares = "".join(f"{100 * share(widths, layers, tokens, inputs, upcast=upcast):7.1f}%" for tokens in lengths)
                print(f"{inputs:8}{'fp32' if upcast else '16 bits':>8}{widths.h:6}{shares}")


if __name__ == "__main__":
    main()
