"""What torch's allocator reserves beside what it has allocated, in steps whose decoder layers are computed again in backward.

    python benchmarks/memory/gaps.py [--tokens T ...]

The blocks are those of a layer of Llama's kind as transformers and PEFT make them one after the other, forward and backward, with the
rules of allocator.py. Nothing here is measured. The table holds, for real widths, the gaps as a share of the layer that is computed again
(layer_recomputed of the ledger): `GAPS` in blocks.py are its ends at lengths where a layer outweighs the loss. They are 9 to 20 % where
layers learn, 15 to 22 % where adapters share their input, 8 to 14 % where they copy it, 0 to 3 % where they cast it to fp32 on the way.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import NamedTuple

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[2])]

from memory.allocator import Allocator, Block  # noqa: E402 - found by the line above

#: What becomes of a linear's input: it is kept as it is, by the linear or by an adapter that shares it, or the adapter makes a 16-bit copy
#: (autocast), on its way over an fp32 one where PEFT casts it first (tuners/lora/layer.py Linear.forward).
INPUTS = ("whole", "shared", "copied", "cast")
RANK = 8


class Widths(NamedTuple):
    """Hidden size, inner width of the MLP, query and key widths."""

    h: int
    f: int
    q: int
    k: int


#: Qwen2.5 0.5B, 1.5B, 3B, 7B and Llama 2 7B.
REAL = (
    Widths(896, 4864, 896, 128),
    Widths(1536, 8960, 1536, 256),
    Widths(2048, 11008, 2048, 256),
    Widths(3584, 18944, 3584, 512),
    Widths(4096, 11008, 4096, 4096),
)

#: What autograd holds of a layer, by the step of backward that lets it go.
Kept = dict[str, list[Block]]


class Steps:
    """Micro batches of `tokens` tokens through `layers` layers; `most` is the largest working set of one layer in bytes."""

    def __init__(self, widths: Widths, tokens: int, inputs: str, layers: int = 8) -> None:
        self.widths, self.tokens, self.inputs, self.layers = widths, tokens, inputs, layers
        self.store, self.most = Allocator(), 0

    def take(self, *per_token: int) -> list[Block]:
        return [self.store.take(width * self.tokens) for width in per_token]

    def run(self, times: int) -> None:
        for _ in range(times):
            stream, checkpoints = self.take(2 * self.widths.h), []
            for _ in range(self.layers):
                after, kept = self.forward()
                self._drop(kept)
                checkpoints.append(stream)
                stream = after
            self.store.give(*stream)
            (gradient,) = self.take(2 * self.widths.h)
            for checkpoint in reversed(checkpoints):
                before = self.store.allocated
                self.store.most_allocated, most = before, self.store.most_allocated
                after, kept = self.forward()
                self.store.give(*after)
                self.backward(kept, gradient)
                self.most = max(self.most, self.store.most_allocated - before)
                self.store.most_allocated = max(most, self.store.most_allocated)
                self.store.give(*checkpoint)
            self.store.give(gradient)

    def forward(self) -> tuple[list[Block], Kept]:
        """The layer's output and what autograd keeps."""
        h, f, q, k = self.widths
        kept: Kept = {}
        normed = self._norm(kept, "first_norm")
        query = self._linear(kept, "query", h, q)
        key = self._linear(kept, "key", h, k)
        value = self._linear(kept, "value", h, k)
        turned = self._rotated(q) + self._rotated(k)
        self.store.give(*query, *key)
        kept["attention"] = [*turned, *value, *self.take(2 * q)]
        added = self._linear(kept, "output", q, h)
        kept["reads_first"] = self._if_read(normed)
        residual = self.take(2 * h)
        self.store.give(*added)
        normed = self._norm(kept, "second_norm")
        gate = self._linear(kept, "gate", h, f)
        active = self.take(2 * f)
        up = self._linear(kept, "up", h, f)
        product = self.take(2 * f)
        kept["gate_out"], kept["mlp"] = gate, [*active, *up]
        added = self._linear(kept, "down", f, h)
        kept["reads_product"], kept["reads_second"] = self._if_read(product), self._if_read(normed)
        out = self.take(2 * h)
        self.store.give(*added, *residual)
        return out, kept

    def backward(self, kept: Kept, gradient: Block) -> None:
        """The layer's gradient is added up in place."""
        h, f, q, k = self.widths
        of_product = self._linear_back(kept, "down", f, h, "reads_product")
        of_up, of_active = self.take(2 * f), self.take(2 * f)
        self.store.give(*of_product, *kept.pop("mlp"))
        of_normed = self._linear_back(kept, "up", h, f)
        self.store.give(*of_up)
        of_gate = self.take(2 * f)
        self.store.give(*of_active, *kept.pop("gate_out"))
        self.store.give(*self._linear_back(kept, "gate", h, f, "reads_second"), *of_gate)
        self._norm_back(kept, "second_norm", of_normed)
        of_attention = self._linear_back(kept, "output", q, h)
        grads = self.take(2 * q, 2 * k, 2 * k)
        self.store.give(*of_attention, *kept.pop("attention"))
        for place, width in ((0, q), (1, k)):
            turned = self._rotated(width)
            self.store.give(grads[place])
            grads[place : place + 1] = turned
        of_normed = self._linear_back(kept, "value", h, k)
        self.store.give(*self._linear_back(kept, "key", h, k), *self._linear_back(kept, "query", h, q, "reads_first"), *grads)
        self._norm_back(kept, "first_norm", of_normed)
        assert not kept

    def _norm(self, kept: Kept, name: str) -> list[Block]:
        """RMSNorm: an fp32 copy that stays, its square, its product, that in 16 bits, and the output."""
        h = self.widths.h
        kept[name] = self.take(4 * h)
        self.store.give(*self.take(4 * h))
        product = self.take(4 * h, 2 * h)
        out = self.take(2 * h)
        self.store.give(product[0])
        if self.inputs == "whole":
            kept[name].append(product[1])
        else:
            self.store.give(product[1])
        return out

    def _norm_back(self, kept: Kept, name: str, of_output: list[Block]) -> None:
        h = self.widths.h
        scaled = self.take(2 * h)
        self.store.give(*of_output)
        wide = self.take(4 * h)
        self.store.give(*scaled)
        parts = self.take(4 * h, 4 * h)
        self.store.give(*wide, parts[0], *kept.pop(name))
        given = self.take(2 * h)
        self.store.give(parts[1], *given)

    def _linear(self, kept: Kept, name: str, read: int, made: int) -> list[Block]:
        out = self.take(2 * made)
        kept[name] = []
        if self.inputs == "whole":
            return out
        wide = self.take(4 * read) if self.inputs == "cast" else []
        kept[name] += self.take(2 * read) if self.inputs in ("cast", "copied") else []
        kept[name] += self.take(2 * RANK)
        product = self.take(2 * made)
        scaled = self.take(2 * made)
        self.store.give(*product)
        total = self.take(2 * made)
        self.store.give(*scaled, *out, *wide)
        return total

    def _linear_back(self, kept: Kept, name: str, read: int, made: int, reads: str = "") -> list[Block]:
        """The gradient of the linear's input; `reads`: what is let go with it."""
        if self.inputs == "whole":
            self.store.give(*kept.pop(name), *kept.pop(reads, []))
            return self.take(2 * read)
        scaled, low = self.take(2 * made), self.take(2 * RANK)
        self.store.give(*scaled)
        given = self.take(2 * read)
        self.store.give(*kept.pop(name), *low, *kept.pop(reads, []))
        if self.inputs == "cast":
            wide = self.take(4 * read)
            self.store.give(*given)
            given = self.take(2 * read)
            self.store.give(*wide)
        self.store.give(*self.take(2 * read))  # the linear's own, added to it
        return given

    def _rotated(self, width: int) -> list[Block]:
        parts = self.take(*[2 * width] * 4)
        out = self.take(2 * width)
        self.store.give(*parts)
        return out

    def _if_read(self, blocks: list[Block]) -> list[Block]:
        """Inputs stay where a linear or its adapter keeps them."""
        if self.inputs in ("whole", "shared"):
            return blocks
        self.store.give(*blocks)
        return []

    def _drop(self, kept: Kept) -> None:
        for blocks in kept.values():
            self.store.give(*blocks)


def share(widths: Widths, tokens: int, inputs: str) -> float:
    """Reserved beyond allocated at their peaks, over the working set of a layer."""
    steps = Steps(widths, tokens, inputs)
    steps.run(3)
    return (steps.store.most_reserved - steps.store.most_allocated) / steps.most


def main() -> None:
    ask = argparse.ArgumentParser(description="gaps between the blocks of layers that are computed again")
    ask.add_argument("--tokens", type=int, nargs="+", default=[8192, 16384, 32768, 65536])
    lengths = ask.parse_args().tokens
    print(f"{'inputs':8}{'h':>6}{'f':>7}" + "".join(f"{tokens:>8}" for tokens in lengths))
    for inputs in INPUTS:
        for widths in REAL:
            shares = "".join(f"{100 * share(widths, tokens, inputs):7.1f}%" for tokens in lengths)
            print(f"{inputs:8}{widths.h:6}{widths.f:7}{shares}")


if __name__ == "__main__":
    main()
