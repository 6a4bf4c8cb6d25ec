"""Update steps of a job, block by block, through the allocator that allocator.py simulates: what torch reserves beyond what it allocates.

    python benchmarks/memory/played.py [--tokens T ...]

The blocks of a decoder layer are those of Llama as transformers and PEFT make them one after the other, forward and backward, scaled to the
working set of the layer that the ledger counts; everything else has the sizes of the ledger's terms. Nothing here is measured or fitted.
The table holds the difference as a share of what is allocated, for steps of real widths whose layers are computed again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[2])]

from memory.allocator import GIB, PLAIN, Allocator, Block, Rules  # noqa: E402 - found by the line above

#: What becomes of a linear's input: it is kept as it is, by the linear or by an adapter that shares it, or the adapter makes a 16-bit copy
#: (autocast), on its way over an fp32 one where PEFT casts it first (tuners/lora/layer.py Linear.forward).
INPUTS = ("whole", "shared", "copied", "cast")
RANK = 8

LINEARS = ("query", "key", "value", "output", "gate", "up", "down")

#: Steps after which a job repeats itself: its optimizer's states are made in the first, in blocks that its passes left.
STEPS = 3

#: What autograd holds of a layer, by the step of backward that lets it go.
Kept = dict[str, list[Block]]


class Widths(NamedTuple):
    """Hidden size, inner width of the MLP, query and key widths."""

    h: int
    f: int
    q: int
    k: int


class Sharded(NamedTuple):
    """Bytes that FSDP gathers of a layer (`unit`) and of embedding and head in FSDP's `version`: as a part of the `root`, from a forward
    pass to its backward, or each as a unit (`end`); of a layer's gradients before they are reduced, and for each of these bytes those of
    the copy in which they are."""

    version: int = 0
    unit: int = 0
    root: int = 0
    end: int = 0
    gradient: int = 0
    copied: float = 0


ALONE = Sharded()


class Job(NamedTuple):
    """What is played, in bytes.

    `inputs`: one of INPUTS; `fused`: norms, rotation and activation are each one kernel (Liger, torch.compile). `layer`: the largest
    working set of a layer that is computed again, `checkpoint` what stays of it; 0: nothing is. `call`, `backward`: the blocks of the loss
    by name. `matrices`: shares of a layer's linears in all weights; `ends`: those of embedding and head (one where they are tied).
    `weights`, `gradients`, `states`, `temporaries`: all bytes of each, gradients as they wait for the update, states as the first one makes
    them; `flat`: all but weights are in a few flat tensors. `bucket`: of gradients on their way, during backward.
    """

    widths: Widths
    tokens: int
    layers: int
    inputs: str = "whole"
    fused: bool = False
    layer: int = 0
    checkpoint: int = 0
    call: tuple[tuple[str, int], ...] = ()
    backward: tuple[tuple[str, int], ...] = ()
    matrices: tuple[float, ...] = (0,) * len(LINEARS)
    ends: tuple[float, ...] = (0,)
    weights: int = 0
    gradients: int = 0
    states: int = 0
    temporaries: int = 0
    flat: bool = False
    bucket: int = 0
    sharded: Sharded = ALONE
    micro_batches: int = 1
    rules: Rules = PLAIN


class Player:
    """Steps of a job; `store` has what they reserve, `most` the largest working set of a layer."""

    def __init__(self, job: Job) -> None:
        self.job, self.store = job, Allocator(job.rules)
        self.scale, self.place, self.most = 1.0, 0, 0
        self.waiting: dict[tuple[str, int], Block] = {}
        self.gathered: Block | None = None

    def play(self) -> Allocator:
        job = self.job
        self._each(job.weights)
        if job.layer:
            self.scale = job.layer / working_set(job.widths, job.tokens, job.inputs, job.fused)
        for step in range(STEPS):
            for _ in range(job.micro_batches):
                self._micro_batch()
            if step == 0:
                self._each(job.states, 2)
            self.store.give(*self._each(job.temporaries), *self.waiting.values())
            self.waiting = {}
        return self.store

    def _take(self, *per_token: int) -> list[Block]:
        return [self.store.take(round(width * self.job.tokens * self.scale)) for width in per_token]

    def _each(self, size: int, times: int = 1) -> list[Block]:
        """So many bytes in the tensors that they are made of, `times` for each: those of the weights, one per unit in FSDP1."""
        job = self.job
        shares: Sequence[float] = [*job.ends, *job.matrices * job.layers]
        if job.flat and size != job.weights:
            shares = [1 / 3, 2 / 3]
        elif job.sharded.version == 1:
            shares = [sum(job.ends), *[sum(job.matrices)] * job.layers]
        return [self.store.take(round(size * share / times)) for share in shares for _ in range(times)] if size else []

    def _micro_batch(self) -> None:
        job, give = self.job, self.store.give
        root, unit = self._gather(job.sharded.root), self._gather(job.sharded.end)
        stream, kept = self._take(2 * job.widths.h), []
        for _ in range(job.layers):
            before, unit = unit, self._gather(job.sharded.unit)
            give(*before)
            if job.checkpoint:
                after = self._passed()
                kept.append((self._checkpoint(stream), Kept()))
            else:
                after, saved = self._forward()
                give(*stream)
                kept.append(([], saved))
            stream = after
        give(*unit)
        unit, last = self._gather(job.sharded.end), Kept()
        normed = self._norm(last, "last_norm")
        give(*stream)
        self._loss()
        (gradient,) = self._take(2 * job.widths.h)
        self._gradient("head", job.ends[-1])
        self._norm_back(last, "last_norm", normed)
        self._reduce("head", job.ends[-1], job.sharded.end)
        bucket = [self.store.take(job.bucket)] if job.bucket else []
        for self.place in reversed(range(job.layers)):
            before, unit = unit, self._gather(job.sharded.unit)
            checkpoint, saved = kept.pop()
            self._layer_back(saved, gradient)
            give(*checkpoint, *before)
            self._reduce("unit", sum(job.matrices), job.sharded.gradient)
        give(*unit, *bucket)
        self._gradient("embedding" if len(job.ends) > 1 else "head", job.ends[0])
        self._reduce("root", sum(job.ends), job.sharded.root)
        self._reduce("embedding", job.ends[0], job.sharded.end)
        give(gradient, *root)

    def _layer_back(self, saved: Kept, gradient: Block) -> None:
        """A layer in backward, computed again first where nothing is saved of it; its gradient is added up in place."""
        start = self.store.allocated
        self.store.most_allocated, most = start, self.store.most_allocated
        if not saved:
            after, saved = self._forward()
            self.store.give(*after)
        self._backward(saved, gradient)
        self.most = max(self.most, self.store.most_allocated - start)
        self.store.most_allocated = max(most, self.store.most_allocated)

    def _checkpoint(self, stream: list[Block]) -> list[Block]:
        """What stays of a layer that is computed again: its input, and what a policy keeps beside it; less where that is offloaded."""
        beside = self.job.checkpoint - sum(block.size for block in stream)
        if beside < 0:
            self.store.give(*stream)
            return [self.store.take(self.job.checkpoint)]
        return [*stream, *([self.store.take(beside)] if beside else [])]

    def _loss(self) -> None:
        """The blocks of the loss, then the 16-bit gradient of the head's output."""
        live = {name: self.store.take(size) for name, size in self.job.call}
        kept = dict(self.job.backward)
        self.store.give(*[live.pop(name) for name in list(live) if name not in kept])
        live |= {name: self.store.take(size) for name, size in kept.items() if name not in live}
        self.store.give(*[live.pop(name) for name in ("log_softmax", "log_softmax_gradient") if name in live])
        last = [self.store.take(kept["logits_gradient"] // 2)] if "logits_gradient" in live else []
        self.store.give(*live.values(), *last)

    def _gather(self, size: int) -> list[Block]:
        """A unit of FSDP in the stream that gathers; FSDP2 copies it into that which computes, and lets go of it at the next."""
        if not size:
            return []
        gathered = self.store.take(size, 1)
        if self.job.sharded.version == 1:
            return [gathered]
        copied = self.store.take(size)
        if self.gathered:
            self.store.give(self.gathered)
        self.gathered = gathered
        return [copied]

    def _reduce(self, name: str, share: float, whole: int) -> None:
        """A unit's gradients under FSDP, and their shard in the stream that reduces."""
        job = self.job
        if not job.gradients or not whole:
            return
        made = [self.store.take(whole)]
        if job.sharded.version == 2:
            made.append(self.store.take(round(whole * job.sharded.copied)))
        self._wait(name, self.store.take(round(job.gradients * share), 2))
        self.store.give(*made)

    def _gradient(self, name: str, share: float) -> None:
        if self.job.gradients and not self.job.sharded.version:
            self._wait(name, self.store.take(round(self.job.gradients * share)))

    def _wait(self, name: str, block: Block) -> None:
        """A gradient waits for the update, or is added to one that does."""
        if self.waiting.setdefault((name, self.place), block) is not block:
            self.store.give(block)

    def _passed(self) -> list[Block]:
        """A layer's output, without gradients: every block goes as soon as it is read."""
        (h, f, q, k), give = self.job.widths, self.store.give
        normed = self._normed()
        query, key, value = self._product(h, q), self._product(h, k), self._product(h, k)
        turned = self._rotated(q) + self._rotated(k)
        give(*normed, *query, *key)
        attended = self._take(2 * q)
        give(*turned, *value)
        added = self._product(q, h)
        residual = self._take(2 * h)
        give(*attended, *added)
        normed = self._normed()
        gate = self._product(h, f)
        if not self.job.fused:
            active = self._take(2 * f)
            give(*gate)
            gate = active
        up = self._product(h, f)
        product = self._take(2 * f)
        give(*normed, *gate, *up)
        added = self._product(f, h)
        out = self._take(2 * h)
        give(*product, *added, *residual)
        return out

    def _normed(self) -> list[Block]:
        h = self.job.widths.h
        wide = [] if self.job.fused else self._take(4 * h, 4 * h, 4 * h, 2 * h)
        out = self._take(2 * h)
        self.store.give(*wide)
        return out

    def _product(self, read: int, made: int) -> list[Block]:
        """A linear's output, with that of its adapter."""
        out = self._take(2 * made)
        if self.job.inputs == "whole":
            return out
        copy = self._take((4 if self.job.inputs == "cast" else 2) * read) if self.job.inputs in ("cast", "copied") else []
        low = self._take(2 * RANK)
        product = self._take(2 * made)
        scaled = self._take(2 * made)
        self.store.give(*product)
        whole = self._take(2 * made)
        self.store.give(*copy, *low, *scaled, *out)
        return whole

    def _forward(self) -> tuple[list[Block], Kept]:
        """The layer's output and what autograd keeps."""
        (h, f, q, k), give = self.job.widths, self.store.give
        kept: Kept = {}
        normed = self._norm(kept, "first_norm")
        query, key, value = self._linear(kept, "query", h, q), self._linear(kept, "key", h, k), self._linear(kept, "value", h, k)
        turned = self._rotated(q) + self._rotated(k)
        give(*query, *key)
        kept["attention"] = [*turned, *value, *self._take(2 * q)]
        added = self._linear(kept, "output", q, h)
        kept["reads_first"] = self._if_read(normed)
        residual = self._take(2 * h)
        give(*added)
        normed = self._norm(kept, "second_norm")
        gate = self._linear(kept, "gate", h, f)
        active = [] if self.job.fused else self._take(2 * f)
        up = self._linear(kept, "up", h, f)
        product = self._take(2 * f)
        kept["gate_out"], kept["mlp"] = gate, [*active, *up]
        added = self._linear(kept, "down", f, h)
        kept["reads_product"], kept["reads_second"] = self._if_read(product), self._if_read(normed)
        out = self._take(2 * h)
        give(*added, *residual)
        return out, kept

    def _backward(self, kept: Kept, gradient: Block) -> None:
        (h, f, q, k), give = self.job.widths, self.store.give
        of_product = self._linear_back(kept, "down", f, h, "reads_product")
        of_up, of_active = self._take(2 * f, 2 * f)
        give(*of_product, *kept.pop("mlp"))
        of_normed = self._linear_back(kept, "up", h, f)
        give(of_up)
        if self.job.fused:
            of_gate = of_active
        else:
            (of_gate,) = self._take(2 * f)
            give(of_active)
        give(*kept.pop("gate_out"))
        give(*self._linear_back(kept, "gate", h, f, "reads_second"), of_gate)
        self._norm_back(kept, "second_norm", of_normed)
        of_attention = self._linear_back(kept, "output", q, h)
        grads = self._take(2 * q, 2 * k, 2 * k)
        give(*of_attention, *kept.pop("attention"))
        for place, width in ((0, q), (1, k)):
            turned = self._rotated(width)
            give(grads[place])
            grads[place : place + 1] = turned
        of_normed = self._linear_back(kept, "value", h, k)
        give(*self._linear_back(kept, "key", h, k), *self._linear_back(kept, "query", h, q, "reads_first"), *grads)
        self._norm_back(kept, "first_norm", of_normed)
        assert not kept

    def _norm(self, kept: Kept, name: str) -> list[Block]:
        """RMSNorm: an fp32 copy that stays, its square, its product, that in 16 bits, and the output; of a fused one the input alone."""
        h, give = self.job.widths.h, self.store.give
        if self.job.fused:
            kept[name] = self._take(2 * h)
            return self._take(2 * h)
        kept[name] = self._take(4 * h)
        give(*self._take(4 * h))
        wide, product = self._take(4 * h, 2 * h)
        out = self._take(2 * h)
        give(wide)
        if self.job.inputs == "whole":
            kept[name].append(product)
        else:
            give(product)
        return out

    def _norm_back(self, kept: Kept, name: str, of_output: list[Block]) -> None:
        h, give = self.job.widths.h, self.store.give
        if self.job.fused:
            given = self._take(2 * h)
            give(*of_output, *kept.pop(name), *given)
            return
        scaled = self._take(2 * h)
        give(*of_output)
        wide = self._take(4 * h)
        give(*scaled)
        first, second = self._take(4 * h, 4 * h)
        give(*wide, first, *kept.pop(name))
        given = self._take(2 * h)
        give(second, *given)

    def _linear(self, kept: Kept, name: str, read: int, made: int) -> list[Block]:
        out, inputs = self._take(2 * made), self.job.inputs
        kept[name] = []
        if inputs == "whole":
            return out
        wide = self._take(4 * read) if inputs == "cast" else []
        kept[name] += self._take(2 * read) if inputs in ("cast", "copied") else []
        kept[name] += self._take(2 * RANK)
        product = self._take(2 * made)
        scaled = self._take(2 * made)
        self.store.give(*product)
        whole = self._take(2 * made)
        self.store.give(*scaled, *out, *wide)
        return whole

    def _linear_back(self, kept: Kept, name: str, read: int, made: int, reads: str = "") -> list[Block]:
        """The gradients of the linear's input and weight; `reads`: what is let go with it."""
        give, inputs = self.store.give, self.job.inputs
        if inputs == "whole":
            given = self._take(2 * read)
            self._gradient(name, self.job.matrices[LINEARS.index(name)])
            give(*kept.pop(name), *kept.pop(reads, []))
            return given
        scaled, low = self._take(2 * made), self._take(2 * RANK)
        give(*scaled)
        given = self._take(2 * read)
        give(*kept.pop(name), *low, *kept.pop(reads, []))
        if inputs == "cast":
            wide = self._take(4 * read)
            give(*given)
            given = self._take(2 * read)
            give(*wide)
        give(*self._take(2 * read))  # the linear's own, added to it
        return given

    def _rotated(self, width: int) -> list[Block]:
        parts = [] if self.job.fused else self._take(*[2 * width] * 4)
        out = self._take(2 * width)
        self.store.give(*parts)
        return out

    def _if_read(self, blocks: list[Block]) -> list[Block]:
        """Inputs stay where a linear or its adapter keeps them."""
        if self.job.inputs in ("whole", "shared"):
            return blocks
        self.store.give(*blocks)
        return []


@lru_cache(maxsize=256)
def working_set(widths: Widths, tokens: int, inputs: str, fused: bool) -> int:
    """Bytes of the largest working set of a layer that is computed again, before it is scaled."""
    alone = Player(Job(widths, tokens, 2, inputs, fused, checkpoint=2 * widths.h * tokens))
    alone.play()
    return alone.most


@lru_cache(maxsize=1024)
def gap(job: Job) -> int:
    """Bytes reserved beyond those allocated, at the peak of each."""
    store = Player(job).play()
    return store.most_reserved - store.most_allocated


#: Qwen2.5 0.5B, 3B, 7B and Llama 2 7B, with layers and vocabulary.
REAL = (
    (Widths(896, 4864, 896, 128), 24, 151936),
    (Widths(2048, 11008, 2048, 256), 36, 151936),
    (Widths(3584, 18944, 3584, 512), 28, 152064),
    (Widths(4096, 11008, 4096, 4096), 32, 32000),
)


def full(widths: Widths, layers: int, vocabulary: int, tokens: int, inputs: str) -> Job:
    """A job with 16-bit weights, Adam's states where they learn, and a cross entropy of fp32 logits."""
    h, f, q, k = widths
    linears, ends = [h * q, h * k, h * k, q * h, h * f, h * f, f * h], [vocabulary * h] * 2
    params = sum(linears) * layers + sum(ends)
    logits = vocabulary * tokens
    learns = 2 * params if inputs == "whole" else 0
    return Job(
        widths,
        tokens,
        layers,
        inputs,
        checkpoint=2 * h * tokens,
        call=(("logits_16", 2 * logits), ("logits_fp32", 4 * logits), ("log_softmax", 4 * logits)),
        backward=(("log_softmax", 4 * logits), ("log_softmax_gradient", 4 * logits), ("logits_gradient", 4 * logits)),
        matrices=tuple(linear / params for linear in linears),
        ends=tuple(end / params for end in ends),
        weights=2 * params,
        gradients=learns,
        states=2 * learns,
        temporaries=learns,
    )


def _table(lengths: Iterable[int]) -> Iterable[str]:
    yield f"{'inputs':8}{'h':>6}" + "".join(f"{tokens:>16}" for tokens in lengths)
    for inputs in INPUTS:
        for widths, layers, vocabulary in REAL:
            cells = ""
            for tokens in lengths:
                store = Player(full(widths, layers, vocabulary, tokens, inputs)).play()
                beyond = store.most_reserved - store.most_allocated
                cells += f"{beyond / GIB:8.2f} {100 * beyond / store.most_allocated:6.1f}%"
            yield f"{inputs:8}{widths.h:6}{cells}"


def main() -> None:
    ask = argparse.ArgumentParser(description="what the caching allocator reserves beyond what is allocated")
    ask.add_argument("--tokens", type=int, nargs="+", default=[2048, 8192, 32768])
    for line in _table(ask.parse_args().tokens):
        print(line)


if __name__ == "__main__":
    main()
