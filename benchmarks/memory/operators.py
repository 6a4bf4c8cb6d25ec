"""Operators whose formulas stand in operators.yaml: the entry that fits a row, and its letters."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, cast

import yaml
from memory.rows import Refused, Row, block, card_of

from diagnose.budget.model.formulas import Number, term
from diagnose.budget.model.ledger import Term
from diagnose.release_spans import releases
from diagnose.units import Version

#: The parts of an entry in the order in which they come to exist, and the keys of their terms.
PARTS = {"inputs": "op_inputs", "earlier": "op_gradients", "kept": "op_kept", "working": "op_working"}


@cache
def table() -> dict[str, Any]:
    return cast("dict[str, Any]", yaml.safe_load((Path(__file__).parent / "operators.yaml").read_text(encoding="utf-8")))


def entry(name: str, kernel: str, width: int, release: str) -> dict[str, Any] | None:
    """The formulas of an operator; None where the table has no such operator. Raises Refused for a kernel, a width or a release that
    its formulas are not about."""
    kinds = table()["operators"].get(table()["same"].get(name, name))
    if kinds is None:
        return None
    may = kinds.get("both") or kinds.get(kernel)
    entries: list[dict[str, Any]] = may if isinstance(may, list) else [may] if may else []
    found = next((one for one in entries if not release or releases(one.get("releases", "")).holds(Version(release))), None)
    if not entries:
        raise Refused(f"no formula for the kernel {kernel} of {name}")
    if found is None:
        raise Refused(f"{name} changed in Liger: the formula is for {', '.join(one['releases'] for one in entries)}")
    if found.get("width", width) != width:
        raise Refused(f"the formula of {name} is for elements of {found['width']} bytes")
    return found


def parts(found: dict[str, Any], row: Row, tokens: int, width: int) -> list[Term]:
    """The terms of an operator. Raises Refused where a dimension or the card that a formula needs is not given."""
    values = letters(row, tokens, width)
    made = [_term(key, str(found[part]), values, found["source"]) for part, key in PARTS.items() if part in found]
    if found.get("handles"):
        made.append(_term("op_workspaces", f"{found['handles']}*{_workspace(row)}", values, "cuBLAS workspace of every thread"))
    return made


def _term(key: str, symbols: str, values: dict[str, Number], source: str) -> Term:
    try:
        made = term("layers", "activations", symbols, values, source=source, layers=1)
    except KeyError as lacking:
        raise Refused(f"the operator's dimensions are not given: {lacking.args[0]}") from None
    return Term(key, made.name, made.group, made.size, made.symbols, made.numbers, source)


def letters(row: Row, tokens: int, width: int) -> dict[str, Number]:
    """The letters that the row gives."""
    dims = block(row, "model_dims")
    named = {"hidden_size": "h", "intermediate_size": "f", "vocab_size": "V", "num_experts": "E", "experts_per_token": "k_e"}
    values: dict[str, Number] = {letter: int(dims[name]) for name, letter in named.items() if dims.get(name)}
    values |= {"T": tokens, "w": width, "t": int(dims.get("tensor_parallel") or 1)}
    heads, h, vocabulary = dims.get("num_attention_heads"), values.get("h"), values.get("V")
    if heads and isinstance(h, int):
        d = h // int(heads)
        values |= {"q": h, "k": int(dims.get("num_key_value_heads") or heads) * d, "d": d}
    if isinstance(h, int) and isinstance(vocabulary, int):
        rows = -(-tokens // -(-vocabulary // h))
        values["R_c"] = 1 << (max(1, rows) - 1).bit_length()  # Liger's rule for chunks
    card = next((count for name, count in table()["multiprocessors"].items() if name in str(row.get("gpu") or "")), None)
    return values if card is None else {**values, "m": card}


def _workspace(row: Row) -> int:
    capability = card_of(row).version("hardware.compute_capability")
    late = capability is not None and capability >= Version("9.0")
    return int(table()["workspace"]["from_9" if late else "before_9"])
