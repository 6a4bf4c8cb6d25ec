"""What the log prints at a known moment, held against the ledger."""

from __future__ import annotations

import pytest
from books import GIB, fact

from diagnose import catalogue
from diagnose.budget.derived.derived_facts import derive_facts
from diagnose.budget.moments.role_ledgers import ledgers
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
    return {each.name: each.value for each in derive_facts(book, ledgers(book), ())}


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


def test_offloaded_gradients_may_be_pinned_in_powers_of_two() -> None:
    """18 bytes per parameter on one node; the 6 of gradients, 1.77 and 3.55 GiB on a rank, take 2 and 4 GiB where the engine pins them."""
    host = ledgers(job(zero__stage=3, zero__offload_optimizer="cpu", zero__init=True))[0].host
    assert host.total.bytes == 18 * 7615616512
    assert host.total.high == 12 * 7615616512 + 8 * 6 * GIB


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


ALONE: dict[str, Value] = {"parallel__world": 1}
LORA: dict[str, Value] = ALONE | {"train__finetuning": "lora", "lora__rank": 16, "train__gradient_checkpointing": "enabled"}
EIGHT_BITS: dict[str, Value] = ALONE | {"train__precision": "pure_bf16", "train__optimizer": "adamw_8bit"}


def printed(measure: str, figure: int) -> dict[str, Value]:
    """What the facts are where a log prints its memory while it trains."""
    name = "log__memory_last" if measure == "allocated" else "log__memory_highest"
    return {"log__memory_measure": measure, "log__memory_prints": 5, name: Size.exactly(figure)}


def between_steps(**truth: Value) -> int:
    """What stays between two steps: weights, adapters and moments."""
    stepped = ledgers(job(**truth))[0].moment("optimizer_step")
    assert stepped is not None
    return sum(term.size.bytes for term in stepped.terms if term.key in ("weights_whole", "adapters", "moments"))


@pytest.mark.parametrize(
    ("truth", "claim", "knob"),
    [
        (EIGHT_BITS | {"train__optimizer": "adamw"}, EIGHT_BITS, "train.optimizer"),
        (ALONE, LORA, "train.finetuning"),
    ],
)
def test_what_stays_between_two_steps_names_a_setting(truth: dict[str, Value], claim: dict[str, Value], knob: str) -> None:
    """States of the optimizer in 16 bits where 8 were asked for, and those of a whole model where adapters were."""
    made = said(job(**claim, **printed("allocated", between_steps(**truth))))
    assert (made["ledger.step_verdict"], made["ledger.contradicts"]) == ("below", knob)
    fine = said(job(**claim, **printed("allocated", between_steps(**claim))))
    assert fine["ledger.step_verdict"] == "agrees"
    assert "ledger.contradicts" not in fine


def test_the_peak_of_steps_names_checkpointing() -> None:
    """Every layer's activations are in the peak that the log prints; a whole model's states would come near it, but not as near. A lower
    peak says nothing: lengths are upper bounds."""
    claim = LORA | {"train__micro_batch_size": 4}
    whole = ledgers(job(**claim | {"train__gradient_checkpointing": "disabled"}))[0].peak
    assert whole is not None
    made = said(job(**claim, **printed("peak_allocated", whole.total.bytes)))
    assert (made["ledger.peak_verdict"], made["ledger.contradicts"]) == ("below", "train.gradient_checkpointing")
    assert "ledger.peak_verdict" not in said(job(**claim, **printed("peak_allocated", 15 * GIB)))


def test_adapters_on_a_whole_model_show_after_initialisation() -> None:
    """ZeRO-2 has made masters of everything that learns."""
    sharded = LORA | {"parallel__world": 8, "zero__stage": 2}
    whole = ledgers(job(zero__stage=2))[0].moment("init")
    assert whole is not None
    assert said(job(**sharded, log__allocated_after_init=whole.total))["ledger.contradicts"] == "train.finetuning"


def test_what_two_settings_explain_alike_names_none() -> None:
    """A batch whose logits are whole, or fp32 weights: both come within a tenth of the printed peak."""
    claim = LORA | {"train__micro_batch_size": 8, "train__loss_kernel": "liger"}
    whole = ledgers(job(**claim | {"train__loss_kernel": "none"}))[0].peak
    assert whole is not None
    made = said(job(**claim, **printed("peak_allocated", whole.total.bytes)))
    assert made["ledger.peak_verdict"] == "below"
    assert "ledger.contradicts" not in made


def test_a_node_has_no_more_than_eight_cards_where_nobody_says() -> None:
    """Sixteen ranks lie on two nodes, each of which holds half of what is offloaded."""
    sixteen = job(zero__stage=3, zero__offload_optimizer="cpu", zero__init=True, parallel__world=16)
    assert ledgers(sixteen)[0].host.total.bytes == 9 * 7615616512
