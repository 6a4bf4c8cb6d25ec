"""What the log prints at a known moment, held against the ledger."""

from __future__ import annotations

import pytest
from books import GIB, fact

from diagnose import catalogue
from diagnose.budget import facts, ledgers
from diagnose.facts import FactBook, Value
from diagnose.units import Size


def job(**settings: Value) -> FactBook:
    """A full fine-tuning of a 7B model in 16 bits on eight cards, with what is said beside it."""
    shape = catalogue.model("Qwen/Qwen2.5-7B-Instruct")
    known: dict[str, Value] = {
        "train.stage": "sft",
        "train.finetuning": "full",
        "train.precision": "bf16",
        "train.load_dtype": "bf16",
        "train.micro_batch_size": 1,
        "train.max_seq_len": 2048,
        "parallel.world": 8,
        "model.shape": shape,
    }
    known |= {name.replace("__", "."): value for name, value in settings.items()}
    return FactBook(fact(name, value) for name, value in known.items() if value is not None)


def said(book: FactBook) -> dict[str, Value]:
    return {each.name: each.value for each in facts(book, ledgers(book), ())}


def gib(figure: float) -> Size:
    return Size.exactly(round(figure * GIB))


def test_a_printed_figure_that_meets_the_ledger_confirms_it() -> None:
    """7.62e9 parameters in 16 bits are 14.2 GiB."""
    assert said(job(log__allocated_after_load=gib(14.2)))["ledger.load_verdict"] == "agrees"


def test_sharding_that_is_not_in_effect_is_named() -> None:
    """ZeRO-3 over eight cards would hold an eighth of the weights; a whole copy after loading speaks against nothing else."""
    made = said(job(zero__stage=3, log__allocated_after_load=gib(14.2)))
    assert made["ledger.load_verdict"] == "below"
    assert made["ledger.contradicts"] == "zero.stage"


def test_weights_in_fp32_are_named() -> None:
    """Twice the bytes of a 16-bit load."""
    made = said(job(log__allocated_after_load=gib(28.4)))
    assert made["ledger.contradicts"] == "train.load_dtype"


def test_what_nothing_explains_names_nothing() -> None:
    """A quantised base that lies there in 16 bits names quantisation; a figure that no setting explains names none."""
    quantised: dict[str, Value] = {"train__finetuning": "lora", "lora__rank": 8, "model__quantization": "nf4", "parallel__world": 1}
    assert said(job(**quantised, log__allocated_after_load=gib(14.3)))["ledger.contradicts"] == "model.quantization"
    assert "ledger.contradicts" not in said(job(log__allocated_after_load=gib(60)))


def test_less_than_the_ledger_wants_is_above() -> None:
    """The ledger wants more than was there: the configuration may not be what ran, and no setting is blamed."""
    made = said(job(log__allocated_after_load=gib(5)))
    assert made["ledger.load_verdict"] == "above"
    assert "ledger.contradicts" not in made


@pytest.mark.parametrize(
    ("scheme", "per_rank"), [({"zero__stage": 3}, True), ({"zero__stage": 3, "zero__init": True}, False), ({"zero__stage": 2}, False)]
)
def test_ranks_that_read_the_model_whole(scheme: dict[str, Value], per_rank: bool) -> None:
    """Host memory while loading: eight copies where every rank may read the model whole, none where the engine shards while it reads."""
    host = ledgers(job(**scheme))[0].host
    there = [moment for moment in host.moments if moment.name == "load"]
    assert bool(there) == per_rank
    if per_rank:
        assert there[0].total.high / GIB == pytest.approx(8 * 14.19, rel=0.01)
        assert there[0].total.low / GIB == pytest.approx(14.19, rel=0.01)


def test_offloaded_states_may_be_pinned_in_powers_of_two() -> None:
    """12 bytes of states and 2 of gradients per parameter on one node; up to twice that, and twice the 4 of the fp32 gradients that the
    step reads, where the engine pins them."""
    host = ledgers(job(zero__stage=3, zero__offload_optimizer="cpu", zero__init=True))[0].host
    assert host.total.bytes / GIB == pytest.approx(14 * 7.615616512, rel=0.07)
    assert host.total.high == pytest.approx(2 * host.total.bytes * 18 / 14, rel=0.01)


def test_a_sleeping_engine_waits_in_host_memory() -> None:
    """One copy of the weights for every engine of the node; none at level 2, which throws them away."""
    shared: dict[str, Value] = {
        "train__stage": "grpo",
        "rollout__engine": "vllm",
        "rollout__placement": "colocated",
        "rollout__sleep": True,
    }
    with_copy = ledgers(job(**shared, rollout__tensor_parallel=2, rollout__sleep_level=1))[0].host
    assert [term.key for term in with_copy.terms] == ["host_engine"]
    assert with_copy.total.bytes / GIB == pytest.approx(4 * 14.19, rel=0.01)
    assert not ledgers(job(**shared, rollout__sleep_level=2))[0].host.terms
