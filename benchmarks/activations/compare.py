"""Sets the measured bytes beside the formulas of the ledger: python benchmarks/activations/compare.py [--write]

Reads measured.json (made by measure.py) and needs nothing but the project itself.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from activations.architectures import config  # noqa: E402

from diagnose.budget.model.job_roles import roles  # noqa: E402
from diagnose.budget.model.ledger import Term  # noqa: E402
from diagnose.budget.model.role_setup import Setup, setup  # noqa: E402
from diagnose.budget.terms import activations  # noqa: E402
from diagnose.catalogue import model_of_config  # noqa: E402
from diagnose.facts import Fact, FactBook, Witness, typed  # noqa: E402

#: A 4-bit base after PEFT's preparation, under the autocast of a trainer.
QLORA: dict[str, Any] = {
    "train.precision": "bf16",
    "train.load_dtype": "bf16",
    "train.finetuning": "lora",
    "model.quantization": "nf4",
    "version.bitsandbytes": "0.48.0",
}

#: A setup of measure.py in knobs. Weights in bf16 and no autocast is `pure_bf16`.
KNOBS: dict[str, dict[str, Any]] = {
    "full": {"train.precision": "pure_bf16"},
    "full padded": {"train.precision": "pure_bf16", "train.micro_batch_size": 2},
    "full flash": {"train.precision": "pure_bf16", "model.attention": "flash_attention_2"},
    "full eager": {"train.precision": "pure_bf16", "model.attention": "eager"},
    "full autocast": {"train.precision": "bf16", "train.load_dtype": "fp32"},
    "full fp32 eager": {"train.precision": "fp32", "model.attention": "eager"},
    "full autocast eager": {"train.precision": "bf16", "train.load_dtype": "fp32", "model.attention": "eager"},
    "lora bf16": {"train.precision": "pure_bf16", "train.finetuning": "lora", "lora.dtype": "bf16"},
    "lora autocast": {"train.precision": "bf16", "train.load_dtype": "bf16", "train.finetuning": "lora"},
    "lora dropout autocast": {"train.precision": "bf16", "train.load_dtype": "bf16", "train.finetuning": "lora", "lora.dropout": 0.05},
    "lora fp32 adapters": {"train.precision": "pure_bf16", "train.finetuning": "lora"},
    "lora attention autocast": {
        "train.precision": "bf16",
        "train.load_dtype": "bf16",
        "train.finetuning": "lora",
        "lora.targets": "q_proj,k_proj,v_proj,o_proj",
    },
    "lora fp32 eager": {"train.precision": "fp32", "train.finetuning": "lora", "model.attention": "eager"},
    "qlora autocast": QLORA,
    "qlora dropout autocast": {**QLORA, "lora.dropout": 0.05},
    "qlora attention autocast": {**QLORA, "lora.targets": "q_proj,k_proj,v_proj,o_proj"},
    "qlora padded autocast": {**QLORA, "train.micro_batch_size": 2},
    "qlora eager autocast": {**QLORA, "model.attention": "eager"},
    "qlora eager": {**QLORA, "train.precision": "pure_bf16", "model.attention": "eager"},
    "qlora checkpointing": {**QLORA, "train.gradient_checkpointing": "enabled"},
    "lora attention": {
        "train.precision": "pure_bf16",
        "train.finetuning": "lora",
        "lora.dtype": "bf16",
        "lora.targets": "q_proj,k_proj,v_proj,o_proj",
        "train.gradient_checkpointing": "enabled",
    },
    "dora bf16": {"train.precision": "pure_bf16", "train.finetuning": "lora", "lora.dtype": "bf16", "lora.kind": "dora"},
    "dora autocast": {"train.precision": "bf16", "train.load_dtype": "bf16", "train.finetuning": "lora", "lora.kind": "dora"},
    "dora dropout autocast": {
        "train.precision": "bf16",
        "train.load_dtype": "bf16",
        "train.finetuning": "lora",
        "lora.kind": "dora",
        "lora.dropout": 0.05,
    },
    "dora attention autocast": {
        "train.precision": "bf16",
        "train.load_dtype": "bf16",
        "train.finetuning": "lora",
        "lora.kind": "dora",
        "lora.targets": "q_proj,k_proj,v_proj,o_proj",
    },
    "qdora autocast": {**QLORA, "lora.kind": "dora"},
    "checkpointing": {"train.precision": "pure_bf16", "train.gradient_checkpointing": "enabled"},
    "checkpointing reentrant": {"train.precision": "pure_bf16", "train.gradient_checkpointing": "enabled"},
    "checkpointing autocast": {"train.precision": "bf16", "train.load_dtype": "fp32", "train.gradient_checkpointing": "enabled"},
}


ALL_LINEAR_UNMERGED = tuple(("Qwen1.5-MoE-A2.7B", f"lora {kind}") for kind in ("bf16", "autocast", "dropout", "fp32"))

#: Model and part of a setup that the formulas do not describe, each explained in README.md.
MASKS_OF_DECODERS = (
    ("T5-large decoder", "padded"),
    ("FLAN-T5-XL decoder", "padded"),
    ("BART-large decoder", ""),
)
DIFFERENT: tuple[tuple[str, str], ...] = (
    ("Falcon-7B", "padded"),
    ("Falcon-7B", "qlora"),
    ("gpt-oss-20b", ""),
    *ALL_LINEAR_UNMERGED,
    *MASKS_OF_DECODERS,
)

#: Working sets alone: adapters on the one tensor of all experts, whose merged copies and gradients the formulas leave out.
MERGED = ("Mixtral-8x7B", "Qwen1.5-MoE-A2.7B", "Qwen3-30B-A3B", "OLMoE-1B-7B", "DeepSeek-V2-Lite", "DeepSeek-V3")
DIFFERENT_SETS: tuple[tuple[str, str], ...] = tuple((model, "lora autocast") for model in MERGED)


class Compared(NamedTuple):
    """A measured layer, what the formulas say of it, and the formulas."""

    model: str
    setup: str
    kernel: str
    measured: int
    formula: int
    measured_weights: int
    formula_weights: int
    symbols: str

    @property
    def known(self) -> bool:
        """Whether the difference has a name in README.md."""
        return any(self.model == model and part in self.setup for model, part in DIFFERENT)

    @property
    def known_set(self) -> bool:
        """The same for a working set."""
        return self.known or (self.model, self.setup) in DIFFERENT_SETS

    @property
    def error(self) -> float:
        return self.formula / self.measured - 1


@cache
def measured() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((HERE / "measured.json").read_text())
    return found


def job(name: str, setup_name: str, layers: int = 3, checkpointing: str = "") -> Setup:
    """The trained role of the job that was measured, as the program sees it."""
    knobs = KNOBS[setup_name]
    rows = knobs.get("train.micro_batch_size", 1)
    given = {
        "train.stage": "sft",
        "train.finetuning": "full",
        "model.attention": "sdpa",
        "train.micro_batch_size": 1,
        "train.max_seq_len": measured()["tokens"] // rows,
        "train.max_target_len": measured()["tokens"] // rows,
        "train.gradient_checkpointing": "disabled",
        "version.transformers": measured()["versions"]["transformers"],
        "version.peft": measured()["versions"]["peft"],
        "parallel.world": 1,
        "lora.rank": 16,
        **knobs,
        **({"train.gradient_checkpointing": checkpointing} if checkpointing else {}),
    }
    facts = [Fact(fact, typed(fact, str(value)), "given", Witness("given")) for fact, value in given.items()]
    facts.append(Fact("model.shape", model_of_config(config(name, layers), name), "catalogue", Witness("catalogue")))
    book = FactBook(facts)
    return setup(book, roles(book)[0])


def terms(name: str, setup_name: str, layers: int) -> list[Term]:
    return activations.stored_activations(job(name, setup_name, layers))


def compared() -> Iterator[Compared]:
    """Every measured row beside its formula: three layers less two, as it was measured."""
    for row in measured()["rows"]:
        if "layer" in row:
            two, three = (terms(row["model"], row["setup"], layers) for layers in (2, 3))
            kept, copies = (_bytes(three, weights) - _bytes(two, weights) for weights in (False, True))
            symbols = "; ".join(term.symbols for term in three if term.group != "weights")
            yield Compared(row["model"], row["setup"], row["kernel"], row["layer"], kept, row["layer_weights"], copies, symbols)


def working_sets() -> list[Compared]:
    """The layer that backward computes again: the peak of two checkpointed layers less their checkpoints, beside its formula."""
    found = []
    for row in json.loads((HERE / "peaks.json").read_text())["layers"]:
        if "backward" in row:
            made = job(row["model"], row["kind"], 2, checkpointing="enabled")
            kept = _bytes(activations.checkpoints(made), weights=False)
            terms = activations.recomputed_layer(made)
            symbols = "; ".join(term.symbols for term in terms)
            counted = row["backward"] - kept
            found.append(Compared(row["model"], row["kind"], "flash", counted, _bytes(terms, weights=False), 0, 0, symbols))
    return found


def _losses() -> list[str]:
    """Bytes per logit while the loss is computed, behind it, and in its backward; the caller holds no logits."""
    rows = [row for row in json.loads((HERE / "peaks.json").read_text())["losses"] if "call" in row]
    lines = [
        "",
        "## Bytes per logit, transformers' own causal loss",
        "",
        "| model | rows | at the call | left | backward |",
        "|---|---:|---:|---:|---:|",
    ]
    return lines + [f"| {row['model']} | {row['rows']} | {row['call']} | {row['left']} | {row['backward']} |" for row in rows]


def _bytes(terms: list[Term], weights: bool) -> int:
    return sum(term.size.bytes for term in terms if (term.group == "weights") == weights)


def table(every: list[Compared]) -> str:
    """results.md: one line per row, worst first within no model; refusals with what the library said."""
    tokens, versions = measured()["tokens"], measured()["versions"]
    errors = sorted(abs(each.error) for each in every if not each.known)
    lines = [
        "# Bytes kept for backward: measured and by formula",
        "",
        "Written by `compare.py --write`; do not edit. " + ", ".join(f"{name} {value}" for name, value in versions.items()) + ".",
        f"Bytes per layer and token of {tokens}; a layer is three layers less two. Weights: copies that autograd keeps, MiB per layer.",
        "",
        f"{len(errors)} rows: median error {median(errors):.2%}, worst {errors[-1]:.2%}, within 1 %: {sum(e <= 0.01 for e in errors)}.",
        "Rows marked * differ for a named reason (README.md) and are not counted.",
        "",
        "| model | setup | kernel | measured | formula | error | weights | formula |",
        "|---|---|---|---:|---:|---:|---:|---:|",
    ]
    for each in every:
        weights = [f"{size / 2**20:.1f}" for size in (each.measured_weights, each.formula_weights)]
        cells = [each.model, each.setup, each.kernel, f"{each.measured / tokens:.0f}", f"{each.formula / tokens:.0f}"]
        lines.append(f"| {' | '.join([*cells, f'{each.error:+.2%}' + ('*' if each.known else ''), *weights])} |")
    lines += [
        "",
        "## One layer computed again in backward",
        "",
        "| model | trained | measured | formula | error |",
        "|---|---|---:|---:|---:|",
    ]
    for each in working_sets():
        mark = "*" if each.known_set else ""
        sizes = f"{each.measured / tokens:.0f} | {each.formula / tokens:.0f} | {each.error:+.2%}{mark}"
        lines.append(f"| {each.model} | {each.setup} | {sizes} |")
    lines += _losses()
    refused = [row for row in measured()["rows"] if "refused" in row]
    lines += ["", "## Not measured", "", "| model | setup | the library's own words |", "|---|---|---|"]
    lines += [f"| {row['model']} | {row['setup']} | {row['refused'].replace('|', '/')[:120]} |" for row in refused]
    return "\n".join(lines) + "\n"


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--over", type=float, default=0.01, help="print rows whose error is larger")
    ask.add_argument("--write", action="store_true", help="write results.md")
    asked = ask.parse_args()
    every = list(compared())
    tokens = measured()["tokens"]
    for each in every:
        if abs(each.error) > asked.over:
            sizes = f"{each.measured / tokens:10.0f} {each.formula / tokens:10.0f} {each.error:+.1%}"
            print(f"{each.model:18} {each.setup:24} {each.kernel:16} {sizes} {'known' if each.known else ''} {each.symbols}")
    errors = sorted(abs(each.error) for each in every if not each.known)
    print(f"{len(errors)} rows, median {median(errors):.2%}, worst {errors[-1]:.1%}, within 1 %: {sum(error <= 0.01 for error in errors)}")
    if asked.write:
        (HERE / "results.md").write_text(table(every))


if __name__ == "__main__":
    main()
