"""What engines print when they start, beside what `check` says of them before: weights, the memory and the tokens of the KV cache.

python benchmarks/memory/engines.py [ROWS]
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import yaml  # noqa: E402

from diagnose.budget.model.job_roles import roles  # noqa: E402
from diagnose.budget.model.role_setup import setup  # noqa: E402
from diagnose.budget.moments.role_ledgers import ledgers  # noqa: E402
from diagnose.budget.terms import engine_budget  # noqa: E402
from diagnose.facts import Fact, FactBook, Witness  # noqa: E402
from diagnose.recognition import recognise  # noqa: E402
from diagnose.units import Size, Version  # noqa: E402

GIB = 2**30
KNOBS = {
    "model": "model.path",
    "engine": "rollout.engine",
    "tp": "rollout.tensor_parallel",
    "pp": "rollout.pipeline",
    "draft": "rollout.draft",
    "draft_model": "rollout.draft_model",
    "quant": "rollout.quantization",
    "util": "rollout.gpu_memory_utilization",
    "max_len": "rollout.max_model_len",
    "batched": "rollout.prefill_tokens",
    "seqs": "rollout.max_num_seqs",
    "cache": "rollout.cache_bits",
    "gpu": "hardware.gpu",
}


def book_of(row: dict[str, Any]) -> FactBook:
    """The facts of a start, and what the catalogue knows of its model and card."""
    values = {knob: row[key] for key, knob in KNOBS.items() if key in row} | {"run.regime": "serve", "rollout.dtype": "bf16"}
    if "version" in row:
        values["version.vllm"] = Version(row["version"])
    if "capacity" in row:
        values["hardware.capacity"] = Size.exactly(round(row["capacity"] * GIB))
    book = FactBook([Fact(name, value, "given", Witness("given")) for name, value in values.items()])
    return book.learn(recognise(book))


def compare(row: dict[str, Any]) -> Iterator[tuple[str, float | bool, float | bool]]:
    """What is told, what the program says, and what the engine printed."""
    book = book_of(row)
    ledger = ledgers(book)[0]
    job = setup(book, roles(book)[0])
    loaded, serving = ledger.moment("load"), ledger.moment("generate")
    if "weights_gib" in row and loaded:
        yield "weights", loaded.total.bytes / GIB, row["weights_gib"]
    if serving and serving.room:
        rest = serving.room - (serving.total - serving.only("engine_request"))
        holds = engine_budget.holding(book, serving)
        if "kv_gib" in row:
            yield "cache", rest.bytes / GIB, row["kv_gib"]
        if "tokens" in row and holds:
            yield "tokens", holds.likely * holds.length, row["tokens"]
        if "starts" in row and holds:
            yield "starts", holds.likely >= 1, row["starts"]
    if "share" in row and serving and serving.room and ledger.usable:
        yield "share", serving.room.bytes / ledger.usable.bytes, row["share"]
    if (
        "tokens_per_gib" in row
        and job.model
        and (request := engine_budget.request_cache(job, job.model, engine_budget.draft(job, job.model)))
    ):
        yield "tokens_per_gib", (engine_budget.longest_request(book) or 0) * GIB / request.size.bytes, row["tokens_per_gib"]


def main(arguments: list[str]) -> None:
    """Print every comparison, then median and bias of each kind."""
    rows = yaml.safe_load(Path(arguments[0] if arguments else Path(__file__).with_name("engines.yaml")).read_text("utf-8"))
    errors: dict[str, list[float]] = {}
    silent = 0
    for row in rows:
        told = list(compare(row))
        silent += not told
        for what, said, printed in told:
            if isinstance(printed, bool):
                print(f"{row['id']:8} {row['model']:44} {what:15} {said!s:>10} {printed!s:>10}")
                continue
            error = said / printed - 1 if printed else 0.0
            errors.setdefault(what, []).append(error)
            print(f"{row['id']:8} {row['model']:44} {what:15} {said:10,.2f} {printed:10,.2f} {error:+8.1%}")
    print(f"\n{len(rows)} starts, {silent} without an answer")
    for what, values in errors.items():
        print(f"{what:15} {len(values):3}  median {statistics.median(map(abs, values)):6.1%}  bias {statistics.median(values):+6.1%}")


if __name__ == "__main__":
    main(sys.argv[1:])
