"""A made-up job for the planner's tests: facts as given, a ledger of four plain terms, edits that name their knob."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from diagnose.adapters.formats.settings import Document
from diagnose.budget.model.ledger import Host, Ledger, Moment, Term
from diagnose.decide.verdict import Judgement, Verdict
from diagnose.facts import Fact, FactBook, Value, Witness, typed
from diagnose.phrases import same
from diagnose.plan.remedies.remedy import Edit
from diagnose.units import Size

GIB = 2**30
TRAIN_YAML = Document("train.yaml", "llamafactory", "yaml", "", ())


def book(**facts: str) -> FactBook:
    """Facts by name, `__` for the dot, written as on the command line; found in a config. What is derived for every job is here as well."""
    named = {"log.cards_of_request": "0"} | {name.replace("__", "."): text for name, text in facts.items()}
    return FactBook(Fact(name, typed(name, text), "config", Witness("train.yaml", 1, key=name)) for name, text in named.items())


def job(**facts: str) -> FactBook:
    """Full fine-tuning of 2 GiB of weights on two cards; 1 GiB of activations per 1024 tokens and row, half as much of logits."""
    common = {
        "log__on_card": "enabled", "log__family": "torch_cuda",
        "train__micro_batch_size": "4", "train__gradient_accumulation": "2", "train__max_seq_len": "4096",
        "train__gradient_checkpointing": "disabled", "train__loss_kernel": "none", "train__finetuning": "full", "parallel__world": "2",
        "zero__stage": "3", "zero__offload_optimizer": "none", "hardware__bf16": "enabled", "hardware__fa2": "enabled",
        "train__precision": "bf16",
        "model__attention": "flash_attention_2", "train__framework": "llamafactory", "alloc__expandable_segments": "enabled",
    }  # fmt: skip
    return book(**{**common, **facts})


def term(group: str, size: float) -> Term:
    return Term(f"test.{group}", same(group), group, Size.exactly(round(size * GIB)), "x", str(round(size * GIB)))


def reprice(facts: FactBook, room: float = 20, complete: bool = True) -> tuple[Ledger, ...]:
    """The ledger of the made-up job: states are sharded or offloaded, activations checkpointed, logits fused."""
    tokens = (facts.count("train.micro_batch_size") or 1) * (facts.count("train.max_seq_len") or 0) / 1024
    cards = facts.count("parallel.world") or 1
    on_host = facts.word("zero.offload_optimizer") == "cpu"
    lora = facts.word("train.finetuning") == "lora"
    states = 0.1 if lora else 12 / (cards if (facts.count("zero.stage") or 0) >= 1 else 1)
    kept = 0.1 if facts.word("train.gradient_checkpointing") == "enabled" else 1
    logits = 0.1 if facts.word("train.loss_kernel") != "none" else 0.5
    terms = (
        term("weights", 2),
        term("optimizer_states", 0 if on_host else states),
        term("activations", tokens * kept),
        term("logits", tokens * logits),
    )
    host = Host((term("optimizer_states", 12),)) if on_host else Host()
    size = Size.exactly(round(room * GIB))
    return (Ledger("train", cards, (Moment("forward_end", terms),), size, size, "forward_end", None, host, (), complete),)


def edit(documents: Sequence[Document], facts: FactBook, changes: Mapping[str, Value]) -> tuple[Edit, ...] | None:
    """One edit for each knob, the knob's own name as the key; this framework has no key for parallelism."""
    if any(knob.startswith("parallel.") for knob in changes):
        return None
    return tuple(Edit(documents[0].name, knob, None, str(value)) for knob, value in changes.items())


def cause(word: str, *remedies: str, also_true: bool = False, outcome: str = "fires") -> Verdict:
    return Verdict(
        rule=f"{word}-rule", cause=word, outcome="likely" if outcome == "likely" else "fires", deciding="", missing=None, title=same(word),
        explanation=same(word), accounts_for=None, also_true=also_true, evidence=(), remedies=remedies, url="",
    )  # fmt: skip


def judged(*causes: Verdict) -> Judgement:
    return Judgement(causes, (), causes)
