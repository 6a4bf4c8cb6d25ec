"""Losses that never hold all fp32 logits: fused with the output head, or computed chunk by chunk."""

from __future__ import annotations

from typing import Any

from diagnose.budget.formula import Number, Span, formula, term
from diagnose.budget.known import table, within
from diagnose.budget.ledger import Term
from diagnose.budget.losses import losses
from diagnose.budget.setup import Setup

#: Chunks of torchtune's and XTuner's chunked cross entropy.
CHUNKS = 8


def fused(job: Setup) -> str:
    """The kernel that spares the logits here; "" where there is none. Fused cross entropy serves supervised losses; preference and RL
    losses need log-probabilities, which chunks serve, and Liger where a release of the trainer hands it pairs or completions."""
    asked = job.book.word("train.loss_kernel") or "none"
    if asked in ("none", "chunked"):
        return asked if asked == "chunked" else ""
    if job.stage in ("sft", "pt") or (asked == "unsloth" and job.stage in table()["rollouts"]):
        return asked
    wired, release = losses()["liger"]["pairs"].get(job.framework), job.book.version(f"version.{job.framework}")
    known = asked == "liger" and wired is not None and release is not None
    return asked if known and job.stage in wired["stages"] and within(wired["releases"], release) else ""


def kernel(job: Setup, *, backward: bool = False) -> list[Term]:
    """What such a loss holds during its call, or at the start of backward."""
    if not job.knows("T", "V", "h", "s") or job.role.headless:
        return []
    which = fused(job)
    if which == "chunked":
        return _chunked(job)
    if which == "liger":
        return _liger(job, backward) if job.stage in ("sft", "pt") else _pair(job)
    head = _head(job, "2")
    if which == "unsloth":  # a cut cross entropy, or one kernel over all 16-bit logits, by card and release
        source = "Unsloth: fused cross entropy, or its kernel on 16-bit logits"
        return [job.term("loss_fused", "logits", f"2*h*T{head}", high=f"max(2*h*T{head}, 4*T*V)", source=source)]
    return [job.term("loss_fused", "logits", f"2*h*T{head}", source="Cut Cross-Entropy")]


def _head(job: Setup, each: str) -> str:
    """So many bytes per element of an output head that learns."""
    return "" if job.trainable.lora else f" + {each}*V*h"


def _width(job: Setup) -> int:
    """Bytes per element of the output head's gradient: those of the weight."""
    return 4 if job.precision.weight == 4 else 2


def _liger(job: Setup, backward: bool) -> list[Term]:
    """Logits a chunk at a time; the gradients of hidden states and head are made in the forward pass and wait for backward."""
    values: dict[str, Number] = {**job.values, "R_c": chunk_rows(job)}
    width, source = _width(job), "Liger ops/fused_linear_cross_entropy.py"
    if backward:
        return [term("loss_fused", "logits", f"2*h*T{_head(job, str(width))}", values, source=source)]
    release, entries = job.book.version("version.liger"), losses()["liger"]["releases"]
    may = [entry for entry in entries if within(entry["version"], release)]
    likely = next((entry for entry in may if entry.get("presumed")), may[-1])

    def text(entry: dict[str, Any], product: str) -> str:
        extra = min(entry.get(product, entry["product"]), width if width == 4 else 6)
        return f"{entry['chunk']}*R_c*V + 2*h*T{_head(job, str(width + extra))}"

    least = min((text(entry, "product") for entry in may), key=lambda symbols: _evaluated(symbols, values))
    most = max((text(entry, "most") for entry in may), key=lambda symbols: _evaluated(symbols, values))
    return [term("loss_fused", "logits", text(likely, "product"), values, low=least, high=most, source=source)]


def _evaluated(symbols: str, values: dict[str, Number]) -> float:
    size = formula(symbols).evaluate(values)
    return size.mid if isinstance(size, Span) else size


def _pair(job: Setup) -> list[Term]:
    """Liger's preference and policy losses: one pair or completion at a time, with the head's gradient and that of the chunk."""
    kind = losses()["liger"]["pair"]
    letter = "G" if job.knows("G") else "s"
    rows = f"2*{letter}" if job.stage in table()["pairs"] else letter
    rest = f" + 2*h*T{_head(job, '4')}"
    low, high = (f"{kind[name]}*{rows}*V{rest}" for name in ("least", "most"))
    return [job.term("loss_fused", "logits", f"{kind['bytes']}*{rows}*V{rest}", low=low, high=high, source=kind["source"])]


def _chunked(job: Setup) -> list[Term]:
    """The logits of one chunk of rows, with what the loss makes of them, beside all logits where it gets those."""
    kinds = losses()["chunked_loss"]
    kind: dict[str, Any] = kinds.get(job.framework, kinds["other"])
    rows, tile = job.book.count("train.loss_chunk_rows"), job.book.count("train.loss_tile_bytes")
    if rows is None and tile is not None:
        rows = max(1, tile // (4 * int(job.values["V"])))  # type: ignore[arg-type]
    rows = kind.get("rows") if rows is None else rows
    head = f" + {kind['head']}*V*h" if kind.get("head") else ""
    chunk = f"{kind['bytes']}*(T/{CHUNKS})*V" if rows is None else f"{kind['bytes']}*min(R_c, T)*V"
    values: dict[str, Number] = job.values if rows is None else {**job.values, "R_c": rows}
    return [*_on_logits(job), term("loss_chunked", "logits", chunk + head, values, source=kind["source"])]


def _on_logits(job: Setup) -> list[Term]:
    """All logits and the log-softmaxes of all chunks, where the model makes its logits first and the loss then goes chunk by chunk."""
    rule = losses()["on_logits"]
    said = job.book.switch("train.logits_materialised")
    if not (said if said is not None else job.framework in rule["frameworks"]):
        return []
    plain = job.framework in rule["frameworks"] and job.precision.weight == 2  # cross entropy in 16 bits
    kept = 2 if plain else rule["kept"]
    return [
        job.term("logits_16", "logits", "2*T*V", source=rule["source"]),
        job.term("log_softmax", "logits", f"{kept}*T*V", source=rule["source"]),
    ]


def chunk_rows(job: Setup) -> int:
    """Liger's rule: the next power of two of T / ceil(V/h)."""
    tokens, vocabulary, width = (job.values[name] for name in ("T", "V", "h"))
    count, parts = (tokens.mid if isinstance(tokens, Span) else tokens), -(-vocabulary // width)  # type: ignore[operator]
    return int(1 << (max(1, int(-(-count // parts))) - 1).bit_length())
