"""Losses that never hold all fp32 logits: fused with the output head, or computed chunk by chunk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from diagnose.budget.model.formulas import Number, Span, formula, term
from diagnose.budget.model.ledger import Term, total
from diagnose.budget.model.loss_table import losses, named_for
from diagnose.budget.model.role_setup import Setup
from diagnose.budget.model.software_table import table
from diagnose.release_spans import releases

if TYPE_CHECKING:  # rows of rules/losses.yaml
    from typing import TypedDict

    class LigerRelease(TypedDict, total=False):
        version: str
        chunk: int
        product: int
        most: int
        presumed: bool

    class ChunkedLoss(TypedDict, total=False):
        bytes: int
        compiled: int
        rows: int
        head: int
        source: str

    class WholeLogits(TypedDict, total=False):
        logits: int
        kept: int
        compiled: int
        source: str


#: Chunks of torchtune's and XTuner's chunked cross entropy.
CHUNKS = 8


def fused_kernel(job: Setup) -> str:
    """The kernel that spares the logits here (chunked, compiled, liger, unsloth, cut_cross_entropy); "" where all logits exist. Fused cross
    entropy serves supervised losses; preference and RL losses need log-probabilities, which chunks serve, and Liger where a release of the
    trainer hands it pairs or completions."""
    loss_kernel = job.book.word("train.loss_kernel") or "none"
    if loss_kernel in ("none", "chunked"):
        return loss_kernel if loss_kernel == "chunked" else ""
    if loss_kernel == "compiled" and not named_for(losses()["compiled_loss"], job.framework):
        return ""
    if job.stage in ("sft", "pt") or (loss_kernel == "unsloth" and job.stage in table()["rollouts"]):
        return loss_kernel
    pairs = losses()["liger"]["pairs"]
    trainer = named_for(pairs, job.framework)
    if loss_kernel != "liger" or not trainer or job.stage not in pairs[trainer]["stages"]:
        return ""
    return loss_kernel if releases(pairs[trainer]["releases"]).holds(job.book.version(f"version.{trainer}")) else ""


def fused_loss_terms(job: Setup, *, backward: bool = False) -> list[Term]:
    """What such a loss holds during its call, or with `backward` when backward starts."""
    if not job.knows("T", "V", "h", "s") or job.role.headless:
        return []
    kernel_name = fused_kernel(job)
    if kernel_name == "chunked":
        waiting = _head_chunk_by_chunk(job) if backward else []
        return max(_chunk_terms(job), waiting, key=lambda terms: total([loss_term.size for loss_term in terms]).bytes)
    if kernel_name == "liger":
        return _liger(job, backward) if job.stage in ("sft", "pt") else _liger_pair(job)
    if kernel_name == "compiled":
        source = losses()["compiled_loss"][named_for(losses()["compiled_loss"], job.framework)]
        gradient = [job.term("logits_gradient", "logits", "2*T*V", source=source)] if backward else []
        return [job.term("logits_16", "logits", "2*T*V", source=source), *gradient]
    head = _head_gradient(job, "2")
    if kernel_name == "unsloth":  # a cut cross entropy, or one kernel over all 16-bit logits, by card and release
        source = "Unsloth: fused cross entropy, or its kernel on 16-bit logits"
        return [job.term("loss_fused", "logits", f"2*h*T{head}", high=f"max(2*h*T{head}, 4*T*V)", source=source)]
    return [job.term("loss_fused", "logits", f"2*h*T{head}", source="Cut Cross-Entropy")]


def _head_gradient(job: Setup, width: str) -> str:
    """The summand of the output head's gradient, `width` bytes per element; "" under LoRA, where the head is frozen."""
    return "" if job.trainable.lora else f" + {width}*V*h"


def _width(job: Setup) -> int:
    """Bytes per element of the output head's gradient: those of the weight."""
    return 4 if job.precision.weight == 4 else 2


def _liger(job: Setup, backward: bool) -> list[Term]:
    """Liger's fused cross entropy. During the call: logits of one chunk of R_c rows and the gradients of hidden states (2*h*T) and head,
    which it makes in the forward pass; these wait for backward."""
    values: dict[str, Number] = {**job.values, "R_c": chunk_rows(job)}
    width, source = _width(job), "Liger ops/fused_linear_cross_entropy.py"
    if backward:
        return [term("loss_fused", "logits", f"2*h*T{_head_gradient(job, str(width))}", values, source=source)]
    release, entries = job.book.version("version.liger"), losses()["liger"]["releases"]
    may = [entry for entry in entries if releases(entry["version"]).holds(release) is not False]
    likely = next((entry for entry in may if entry.get("presumed")), may[-1])

    def text(entry: LigerRelease, product: Literal["product", "most"]) -> str:
        extra = min(entry.get(product, entry["product"]), width if width == 4 else 6)
        return f"{entry['chunk']}*R_c*V + 2*h*T{_head_gradient(job, str(width + extra))}"

    least = min((text(entry, "product") for entry in may), key=lambda symbols: _evaluated(symbols, values))
    upper = max((text(entry, "most") for entry in may), key=lambda symbols: _evaluated(symbols, values))
    return [term("loss_fused", "logits", text(likely, "product"), values, low=least, high=upper, source=source)]


def _evaluated(symbols: str, values: dict[str, Number]) -> float:
    size = formula(symbols).evaluate(values)
    return size.mid if isinstance(size, Span) else size


def _liger_pair(job: Setup) -> list[Term]:
    """Liger's preference and policy losses, one pair or completion at a time: gradients of hidden states and head (made even of a frozen
    head), and the larger of the softmax's blocks and the chunk's own gradient of the head."""
    kind = losses()["liger"]["pair"]
    letter = "G" if job.knows("G") else "s"
    rows = f"2*{letter}" if job.stage in table()["pairs"] else letter

    def text(formula: str) -> str:
        return f"max({formula}*{rows}*V, 2*{rows}*V + 2*V*h) + 2*h*T + 2*V*h"

    lower, figure, upper = (text(str(kind[name])) for name in ("least", "bytes", "most"))
    return [job.term("loss_fused", "logits", figure, low=lower, high=upper, source=kind["source"])]


def _chunk_terms(job: Setup) -> list[Term]:
    """The logits of one chunk and what its loss makes of them, 12 bytes per logit in most frameworks; the logits of all tokens as well
    where the loss is given those."""
    kinds = losses()["chunked_loss"]
    kind: ChunkedLoss = kinds[named_for(kinds, job.framework) or "other"]
    rows, tile = job.book.count("train.loss_chunk_rows"), job.book.count("train.loss_tile_bytes")
    if rows is None and tile is not None:
        rows = max(1, tile // (4 * int(job.values["V"])))  # type: ignore[arg-type]
    rows = kind.get("rows") if rows is None else rows
    head = f" + {kind['head']}*V*h" if kind.get("head") else ""
    chunk = f"(T/{CHUNKS})*V" if rows is None else "min(R_c, T)*V"
    values: dict[str, Number] = job.values if rows is None else {**job.values, "R_c": rows}
    lower, figure, upper = (f"{width}*{chunk}{head}" for width in _compiled_widths(job, kind.get("compiled", kind["bytes"]), kind["bytes"]))
    return [*_chunks_of_logits(job), term("loss_chunked", "logits", figure, values, low=lower, high=upper, source=kind["source"])]


def _compiled_widths(job: Setup, compiled: int, plain: int) -> tuple[int, int, int]:
    """Bytes per logit (least, figure, most): of the compiled loss, of the plain one, or between them where it is unknown whether it is
    compiled."""
    compiles = job.book.switch("train.compile")
    if compiles is None:
        return min(compiled, plain), (compiled + plain) // 2, max(compiled, plain)
    return (compiled,) * 3 if compiles else (plain,) * 3


def _chunks_of_logits(job: Setup) -> list[Term]:
    """All logits, and what the loss of every chunk keeps, where the model makes its logits first and the loss then goes chunk by chunk."""
    rule = whole_logits_rule(job)
    if rule is None:
        return []
    lower, figure, upper = (f"{width}*T*V" for width in _compiled_widths(job, rule.get("compiled", rule["kept"]), rule["kept"]))
    key = "logits_fp32" if rule["logits"] == 4 else "logits_16"
    return [
        job.term(key, "logits", f"{rule['logits']}*T*V", source=rule["source"]),
        job.term("log_softmax", "logits", figure, low=lower, high=upper, source=rule["source"]),
    ]


def whole_logits_rule(job: Setup) -> WholeLogits | None:
    """The row of rules/losses.yaml (`on_logits`) for a chunked loss that is given all logits; None where they never exist as a whole."""
    rules = losses()["on_logits"]
    materialised = job.book.switch("train.logits_materialised")
    name = named_for(rules, job.framework)
    return rules[name or "other"] if (bool(name) if materialised is None else materialised) else None


def _head_chunk_by_chunk(job: Setup) -> list[Term]:
    """Backward of a head that was applied chunk by chunk: each chunk's gradient of the head is added to the sum (two of V*h), while the
    16-bit gradients of the other chunks' logits wait."""
    rule = whole_logits_rule(job)
    if rule is None or job.trainable.lora:
        return []
    return [
        job.term("logits_gradient", "logits", f"2*(T - T/{CHUNKS})*V", source=rule["source"]),
        job.term(
            "head_gradients", "gradients", f"2*{_width(job)}*V*h", source="torch/csrc/autograd/input_buffer.cpp: a sum and what is added"
        ),
    ]


def chunk_rows(job: Setup) -> int:
    """Rows of a chunk by Liger's rule: the next power of two of T / ceil(V/h)."""
    tokens, vocabulary, width = (job.values[name] for name in ("T", "V", "h"))
    count, parts = (tokens.mid if isinstance(tokens, Span) else tokens), max(1, -(-vocabulary // width))  # type: ignore[operator]
    return int(1 << (max(1, int(-(-count // parts))) - 1).bit_length())
