"""Single operators and layers, from the formulas that the ledger's terms are made of; others from operators.yaml.

A benchmark that repeats passes (`pass` of the row) finds the gradients of the pass before beside its inputs and weights, and makes
those of the weights anew. A single pass has neither, but its caller still holds the logits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from memory import operators
from memory.rows import GIVEN, Refused, Row, block

from diagnose.budget.model.formulas import term
from diagnose.budget.model.job_roles import roles
from diagnose.budget.model.ledger import Moment, Term
from diagnose.budget.model.role_setup import Setup, setup
from diagnose.budget.terms import logits
from diagnose.catalogue import Model
from diagnose.facts import Fact, FactBook, Value
from diagnose.units import Size, Version

#: Kernels that the ledger has a formula for, in its words.
KERNELS = {"eager": "none", "liger": "liger", "chunked": "chunked", "cce": "cut_cross_entropy"}
WIDTH = {"bf16": 2, "fp16": 2, "fp32": 4}


class Operator(NamedTuple):
    """The numbers of one operator: `job` is a model of one layer with its widths, `each` bytes of an element."""

    job: Setup
    kernel: str
    each: int
    logit: int
    repeats: bool


def predict(row: Row) -> tuple[Size, Moment]:
    """Raises Refused."""
    dims, facts = block(row, "model_dims"), block(row, "facts")
    name = str(dims.get("op") or facts.get("op") or "unnamed")
    if row.get("measured_gib") is None:
        raise Refused("the figure is no number of bytes")
    software = block(row, "software")
    release = str(software.get("framework_version") or "") if software.get("framework") == "liger-kernel" else ""
    found = operators.entry(name, _kernel(row, facts), _width(dims, facts), release)
    if found is not None:
        terms = _written(found, row, dims, facts, release)
    elif name in FORMULAS:
        terms = FORMULAS[name](_operator(row, dims, facts, release))
    else:
        raise Refused(f"no formula for the operator {name}")
    if facts.get("excludes_inputs"):
        terms = [each for each in terms if each.key != "op_inputs"]
    moment = Moment("loss_backward" if dims.get("vocab_size") else "layer_backward", tuple(terms))
    return moment.total, moment


def _kernel(row: Row, facts: dict[str, Any]) -> str:
    return str(facts.get("kernel") or block(row, "knobs").get("train.loss_kernel") or "eager")


def _tokens(dims: dict[str, Any]) -> int:
    tokens = dims.get("tokens") or dims.get("rows") or (dims.get("batch") or 1) * (dims.get("seq_len") or 0)
    if not tokens:
        raise Refused("the operator's length is not given")
    return int(tokens)


def _width(dims: dict[str, Any], facts: dict[str, Any]) -> int:
    """Bytes of an element."""
    dtype = str(dims.get("dtype") or facts.get("compute_dtype") or "fp32")
    if dtype not in WIDTH:
        raise Refused(f"no such precision: {dtype}")
    return WIDTH[dtype]


def _written(found: dict[str, Any], row: Row, dims: dict[str, Any], facts: dict[str, Any], release: str) -> list[Term]:
    """The parts of operators.yaml, and the ledger's own terms where the entry leaves the loss to it."""
    terms = operators.parts(found, row, _tokens(dims), _width(dims, facts))
    return terms + logits.fused_loss_terms(_operator(row, dims, facts, release, found["ledger"]).job) if found.get("ledger") else terms


def _operator(row: Row, dims: dict[str, Any], facts: dict[str, Any], release: str, stage: str = "sft") -> Operator:
    """`release`: that of Liger, where the row is of it; `stage`: of a loss that a trainer of TRL would hand to it."""
    word = _kernel(row, facts)
    if word not in KERNELS:
        raise Refused(f"no formula for the kernel {word}")
    tokens, width, rows = _tokens(dims), _width(dims, facts), 1
    if stage != "sft":
        rows = max(1, int(dims.get("batch") or 1) // (2 if stage == "dpo" else 1))
    h, f, V = (int(dims.get(name) or 1) for name in ("hidden_size", "intermediate_size", "vocab_size"))
    shape = Model("operator", "llama", h, f, 1, 1, 1, h, V, tied=False, params=V * h)
    values: dict[str, Value] = {
        "model.shape": shape,
        "train.stage": stage,
        "train.precision": "pure_bf16" if width == 2 else "fp32",
        "train.micro_batch_size": rows,
        "train.max_seq_len": int(tokens if stage == "sft" else dims.get("seq_len") or tokens),
        "train.loss_kernel": KERNELS[word],
        "train.gradient_checkpointing": "disabled",
        "model.attention": "sdpa",
        "parallel.world": 1,
    }
    if stage != "sft":
        values |= {"train.framework": "trl", "version.trl": Version("1.0")}
    if release:
        values["version.liger"] = Version(release)
    book = FactBook(Fact(name, value, "given", GIVEN) for name, value in values.items())
    logit = WIDTH.get(str(facts.get("logits_dtype") or ""), width)
    return Operator(setup(book, roles(book)[0]), KERNELS[word], width, logit, bool(facts.get("pass")))


def _term(one: Operator, key: str, symbols: str) -> Term:
    """A term of the operator alone, which is none of the ledger's and has no name there."""
    made = term("layers", "activations", symbols, one.job.values, layers=1)
    return Term(key, made.name, made.group, made.size, made.symbols, made.numbers, "operator alone")


def _blocks(one: Operator) -> list[Term]:
    """The blocks that a loss has at the start of backward, all in the precision that it works in."""
    return [_term(one, each.name, f"{one.logit}*T*V") for each in one.job.loss.backward if each.bytes]


def cross_entropy(one: Operator) -> list[Term]:
    """Logits in, their gradient out; Liger writes the gradient over the logits."""
    if one.kernel == "liger":
        return [_term(one, "op_inputs", f"{one.each}*T*V")]
    if one.kernel != "none":
        raise Refused(f"no formula for the kernel {one.kernel}")
    return [_term(one, "op_inputs", f"{one.each}*T*V"), *_earlier(one, "T*V"), *_blocks(one)]


def _earlier(one: Operator, inputs: str, weights: str = "0", new: str = "0") -> list[Term]:
    """Gradients that the pass before left, and the first of the weights' that this one makes beside them."""
    if not one.repeats:
        return []
    made = [_term(one, "op_gradients", f"{one.each}*({inputs} + {weights})")]
    return made if new == "0" else [*made, _term(one, "op_new_gradient", f"{one.each}*{new}")]


def linear_cross_entropy(one: Operator) -> list[Term]:
    """The head and the loss together."""
    held = [_term(one, "op_inputs", f"{one.each}*(T*h + V*h)")]
    if one.kernel != "none":  # its terms hold the new gradients
        both = (logits.fused_loss_terms(one.job), logits.fused_loss_terms(one.job, backward=True))
        return [*held, *_earlier(one, "T*h", "V*h"), *max(both, key=lambda terms: sum(each.size.bytes for each in terms))]
    kept = [] if one.repeats else [_term(one, "logits_kept", f"{one.logit}*T*V")]
    return [*held, *kept, *_earlier(one, "T*h", "V*h", "V*h"), *_blocks(one)]


FORMULAS: dict[str, Callable[[Operator], list[Term]]] = {
    "cross_entropy": cross_entropy,
    "linear_cross_entropy": linear_cross_entropy,
    "fused_linear_cross_entropy": linear_cross_entropy,
}
