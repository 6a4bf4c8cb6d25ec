"""The same laws for every framework, every model of the catalogue and every way of dividing a job: more work never needs less, more ranks
never hold more states, a knob turned and turned back leaves no trace."""

from __future__ import annotations

from typing import Any

import pytest
from books import book
from collected import for_each
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sweep import examples

from diagnose import rule_files
from diagnose.budget.model.ledger import Ledger
from diagnose.budget.moments.role_ledgers import ledgers
from diagnose.facts import FactBook, typed

FRAMEWORKS = sorted(name for name, entry in rule_files.table("frameworks").items() if entry.get("trainer"))
MODELS = sorted(entry["id"] for family in rule_files.table("models").values() for entry in family["models"])
STATES = ("weights", "gradients", "optimizer_states", "extra_models")
#: What may be turned, by its kind in rules/knobs.yaml.
KNOBS: dict[str, dict[str, Any]] = {
    name: entry for name, entry in rule_files.table("knobs").items() if entry["kind"] in ("word", "switch", "count", "ratio")
}
ANY = settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])


def choices(knob: str) -> list[str]:
    """What a knob may be turned to."""
    plain = {"switch": ["enabled", "disabled"], "count": ["0", "1", "2", "7", "1000000000"], "ratio": ["0.5"]}
    return [str(word) for word in plain.get(KNOBS[knob]["kind"], KNOBS[knob].get("words", []))]


@st.composite
def jobs(draw: st.DrawFn) -> dict[str, Any]:
    """A job without a log, on eight cards."""
    knobs: dict[str, Any] = {
        "model": draw(st.sampled_from(MODELS)),
        "train.framework": draw(st.sampled_from(FRAMEWORKS)),
        "train.stage": draw(st.sampled_from(["pt", "sft", "dpo", "orpo", "kto", "rm", "grpo", "ppo", "gkd"])),
        "train.finetuning": draw(st.sampled_from(["full", "lora", "lora", "lisa", "llama_pro", "llama_adapter", "llama_adapter_v2"])),
        "train.trainable_layers": draw(st.sampled_from([2, None])),
        "lora.kind": draw(st.sampled_from(["lora", "dora", "adalora", None])),
        "lora.dropout": draw(st.sampled_from([0.05, None])),
        "train.precision": draw(st.sampled_from(["bf16", "fp16", "fp32", "pure_bf16", None])),
        "train.optimizer": draw(st.sampled_from(["adamw", "adamw_8bit", "muon", "galore", "badam", "adafactor", "lomo"])),
        "train.micro_batch_size": draw(st.integers(1, 8)),
        "train.max_seq_len": draw(st.sampled_from([512, 2048, 8192])),
        "rollout.prompt_len": 512,
        "rollout.completion_len": draw(st.sampled_from([512, 1024])),
        "train.gradient_accumulation": draw(st.sampled_from([1, 8])),
        "train.gradient_checkpointing": draw(st.sampled_from(["enabled", "disabled", "offload", "selective"])),
        "train.loss_kernel": draw(st.sampled_from(["none", "liger", "chunked", "compiled", "cut_cross_entropy"])),
        "train.compile": draw(st.sampled_from(["enabled", "disabled", None])),
        "model.attention": draw(st.sampled_from(["eager", "sdpa", "flash_attention_2", None])),
        "model.quantization": draw(st.sampled_from(["none", "nf4", "int8"])),
        "version.transformers": draw(st.sampled_from(["4.44.2", "4.51.3", "4.57.1", "5.2.0", None])),
        "parallel.world": 8,
        "parallel.tensor": draw(st.sampled_from([None, 2])),
        "parallel.pipeline": draw(st.sampled_from([None, 2])),
        "parallel.context": draw(st.sampled_from([None, 2])),
        "parallel.expert": draw(st.sampled_from([None, 2])),
        "parallel.sequence": draw(st.sampled_from(["enabled", None])),
        "parallel.schedule": draw(st.sampled_from(["1f1b", "interleaved", "gpipe", "zero_bubble", None])),
        "eval.enabled": "enabled",
        "eval.batch_size": 2,
        "eval.generates": draw(st.sampled_from(["enabled", None])),
    }
    return knobs | draw(
        st.sampled_from(
            [
                {},
                {"zero.stage": 1},
                {"zero.stage": 2},
                {"zero.stage": 3},
                {"zero.stage": 3, "zero.hpz_partition": 2},
                {"zero.stage": 3, "zero.offload_optimizer": "cpu", "zero.offload_param": "cpu"},
                {"fsdp.sharding": "full_shard"},
                {"fsdp.sharding": "shard_grad_op"},
                {"fsdp.sharding": "hybrid_shard", "parallel.nodes": 2},
            ]
        )
    )


def first(facts: FactBook) -> Ledger:
    return ledgers(facts)[0]


def peak(ledger: Ledger) -> int:
    return max(moment.total.bytes for moment in ledger.moments)


def grows(before: FactBook, after: FactBook) -> None:
    """No moment that both have gets smaller."""
    small, large = first(before), first(after)
    for moment in small.moments:
        then = large.moment(moment.name)
        assert then is not None, moment.name
        assert then.total.bytes >= moment.total.bytes, moment.name


@ANY
@given(jobs(), st.sampled_from(["train.micro_batch_size", "train.max_seq_len", "rollout.completion_len", "eval.batch_size"]))
def test_more_rows_or_tokens_never_need_less(knobs: dict[str, Any], knob: str) -> None:
    facts = book(knobs)
    grows(facts, facts.changed({knob: 2 * knobs[knob]}))


@ANY
@given(jobs())
def test_more_layers_never_need_less(knobs: dict[str, Any]) -> None:
    """As many again, so that a pipeline's stages stay even."""
    facts = book(knobs)
    shape = facts.shape("model.shape")
    assert shape is not None
    taller = shape._replace(L=2 * shape.L)
    assert peak(first(facts.changed({"model.shape": taller._replace(params=taller.counted)}))) >= peak(first(facts))


@ANY
@given(jobs())
def test_wider_weights_never_need_less(knobs: dict[str, Any]) -> None:
    """Loaded in fp32 instead of 16 bits, a model is no smaller, whatever computes on it."""
    narrow, wide = (first(book(knobs | {"train.precision": "bf16", "train.load_dtype": word})).moment("load") for word in ("bf16", "fp32"))
    assert narrow is not None and wide is not None
    assert wide.total.bytes >= narrow.total.bytes


@ANY
@given(
    jobs(),
    st.sampled_from(
        [
            ({"parallel.world": 8}, {"parallel.world": 64}),
            ({"zero.stage": 1}, {"zero.stage": 2}),
            ({"zero.stage": 2}, {"zero.stage": 3, "zero.hpz_partition": None}),  # a second copy of the weights is none of dividing
            ({"zero.stage": 3, "zero.mics_shard": 2}, {"zero.stage": 3, "zero.mics_shard": 4}),
            ({"zero.stage": 3, "zero.hpz_partition": 2}, {"zero.stage": 3, "zero.hpz_partition": 8}),
            ({"fsdp.sharding": "full_shard", "fsdp.shard_degree": 2}, {"fsdp.sharding": "full_shard", "fsdp.shard_degree": 8}),
            ({"fsdp.sharding": "hybrid_shard", "parallel.nodes": 4}, {"fsdp.sharding": "hybrid_shard", "parallel.nodes": 2}),
            ({"parallel.world": 16, "parallel.tensor": 1}, {"parallel.world": 64, "parallel.tensor": 4}),
            ({"parallel.world": 16, "parallel.pipeline": 1}, {"parallel.world": 64, "parallel.pipeline": 4}),
        ]
    ),
)
def test_dividing_further_never_holds_more_states(knobs: dict[str, Any], turn: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """Weights, gradients and optimizer states, before training and between two steps. Four times the cards go with a model parallel degree
    of four, so that as many ranks divide states: the largest stage of a pipeline has an end of the model, which no other shares."""
    whole = knobs | {"parallel.expert": None}  # an expert group divides experts that ZeRO-3 shards anyway
    less, more = (first(book(whole | change)) for change in turn)
    for name in ("init", "optimizer_step"):
        few, many = less.moment(name), more.moment(name)
        assert few is not None and many is not None
        of = [sum(term.size.bytes for term in moment.terms if term.group in STATES and not _passing(term.key)) for moment in (few, many)]
        assert of[1] <= of[0] + 4096, (name, of)


def _passing(key: str) -> bool:
    """Whether a term of a step is there only while it runs, or a buffer of another role of the process, which is no state."""
    return key.startswith("step_") or key.endswith("_reduce_bucket") or key == "gradients_whole"


@ANY
@given(jobs(), st.data())
def test_any_knob_there_and_back(knobs: dict[str, Any], data: st.DataObject) -> None:
    """Whatever is turned to whatever it can be: nothing is raised, and turned back the ledger is what it was."""
    facts = book(knobs)
    before = ledgers(facts)
    name = data.draw(st.sampled_from(sorted(KNOBS)))
    turned = facts.changed({name: typed(name, data.draw(st.sampled_from(choices(name))))})
    for ledger in ledgers(turned):
        for moment in ledger.moments:
            for term in moment.terms:
                ends = (term.size.low, term.size.bytes, term.size.high)
                assert [type(end) for end in ends] == [int] * 3 and 0 <= ends[0] <= ends[1] <= ends[2], term
    was = facts.fact(name)
    back = turned.changed({name: was.value}) if was is not None else facts
    assert ledgers(back) == before


@ANY
@given(jobs())
def test_a_moment_is_the_sum_of_its_terms(knobs: dict[str, Any]) -> None:
    for ledger in ledgers(book(knobs)):
        for moment in (*ledger.moments, *ledger.host.moments):
            for end in ("low", "bytes", "high"):
                assert getattr(moment.total, end) == sum(getattr(term.size, end) for term in moment.terms)


LORA = {"train.finetuning": "lora", "fsdp.version": 1, "fsdp.sharding": "full_shard", "train.gradient_checkpointing": "enabled"}


@for_each(
    "knobs",
    [
        pytest.param(LORA | {"train.max_seq_len": 512, "train.micro_batch_size": 1}, id="tokens of a model that nobody named"),
        pytest.param(
            {
                "model": "openai/whisper-large-v3",
                "train.finetuning": "llama_adapter",
                "model.spread": "enabled",
                "train.micro_batch_size": 1,
            },
            id="adapters in some layers of a model with an encoder",
        ),
    ],
)
def test_no_term_reads_what_is_not_known(knobs: dict[str, Any]) -> None:
    ledgers(book(knobs))
