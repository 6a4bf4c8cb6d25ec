"""What follows from figures, ledger and attribution, as facts that rules ask for."""

from __future__ import annotations

from typing import Any

import pytest
from books import AXOLOTL_2143, CONFIG_INCOMPLETE, GIB, LLAMAFACTORY_6800, OPENRLHF_392, OPENRLHF_964, TRL_3172, book, event, fact
from collected import for_each

from diagnose.budget.attribution.request_tensor import attribute
from diagnose.budget.derived.derived_facts import derive_facts
from diagnose.budget.moments.role_ledgers import ledgers
from diagnose.facts import FactBook, Value, declared
from diagnose.parse.model.event import Event
from diagnose.units import Size

CROSS_ENTROPY = "torch/nn/functional.py:cross_entropy|return torch._C._nn.cross_entropy_loss("
MLP = "transformers/models/qwen2/modeling_qwen2.py:forward|down_proj = self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))"


def derived(known: FactBook, failure: Event | None = None) -> dict[str, Value]:
    found = ledgers(known)
    made = derive_facts(known, found, () if failure is None else attribute(known, found, failure, 0))
    assert all(each.origin == "derived" and each.witness.text for each in made)
    return {each.name: each.value for each in made}


def gib(value: Value) -> float:
    assert isinstance(value, Size)
    return value.bytes / GIB


@for_each("reference", [LLAMAFACTORY_6800, AXOLOTL_2143, TRL_3172, OPENRLHF_392, OPENRLHF_964, CONFIG_INCOMPLETE])
def test_every_fact_is_declared(reference: dict[str, Any]) -> None:
    """Its name is in the dictionary, its value of the declared kind, no size is negative but what is left unexplained."""
    kinds = {"size": Size, "count": int, "switch": bool, "word": str, "text": str}
    for name, value in derived(book(reference)).items():
        entry = declared(name)
        assert entry is not None, name
        assert isinstance(value, kinds[entry.kind]), name
        assert not isinstance(value, Size) or value.low >= 0 or name == "ledger.unexplained", name


def test_figures_of_the_message() -> None:
    """Shortage, usable, what is not torch's, and that nobody else is on the card: 31.74 - 1.41 - 30.26 = 0.07."""
    made = derived(book(LLAMAFACTORY_6800))
    assert gib(made["log.shortage"]) == pytest.approx(3.23, abs=0.005)
    assert gib(made["log.usable"]) == pytest.approx(30.43, abs=0.005)
    assert gib(made["log.not_torch"]) == pytest.approx(1.24, abs=0.005)
    assert gib(made["log.foreign"]) == pytest.approx(0.07, abs=0.005)
    assert made["log.on_card"] is True


def of_message(**figures: float) -> dict[str, Value]:
    """What follows from a message of torch with these figures, in GiB."""
    return derived(FactBook(fact(f"log.{name}", Size.exactly(round(figure * GIB))) for name, figure in figures.items()))


def test_private_pools_are_part_of_what_is_allocated() -> None:
    """torch adds them before it prints: 79.25 - 0.29 - 78.94 is nobody's, 78.94 - 76.02 - 0.60 is the context and NCCL."""
    figures = {
        "requested": 0.44,
        "capacity": 79.25,
        "free": 0.29,
        "process_in_use": 78.94,
        "allocated": 76.02,
        "reserved_unallocated": 0.60,
    }
    with_pools = of_message(**figures, private_pools=1.37)
    assert with_pools == of_message(**figures)
    assert gib(with_pools["log.not_torch"]) == pytest.approx(2.32, abs=0.005)


def test_a_cap_of_the_process_is_all_that_torch_can_use() -> None:
    """With 42 GiB free on the card, 36.00 - 35.91 GiB is what was left of the share that the process set for itself."""
    made = of_message(requested=1.0, capacity=79.25, free=42.0, allowed=36.0, allocated=35.11, reserved_unallocated=0.80)
    assert gib(made["log.usable"]) == pytest.approx(36.0)
    assert gib(made["log.shortage"]) == pytest.approx(0.91, abs=0.001)


def test_what_a_cause_has_to_account_for_is_what_was_allocated_else_the_whole_card() -> None:
    allocated = derived(book(LLAMAFACTORY_6800))
    assert gib(allocated["log.filled"]) == pytest.approx(23.51)
    unprinted = [fact("log.family", "torch_cuda"), fact("hardware.capacity", Size.exactly(round(31.74 * GIB)))]
    assert gib(derived(FactBook(unprinted))["log.filled"]) == pytest.approx(31.74)
    assert "log.filled" not in derived(FactBook(unprinted[:1]))


@for_each("process", [None, "0.00 GiB", "512.00 MiB", "96.00 GiB"])
def test_foreign_memory_where_the_process_line_is_not_its_own(process: str | None) -> None:
    """In containers and under WSL it may print none, or more than there is: a context of 0.3 to 1.6 GiB is subtracted instead."""
    made = derived(book(LLAMAFACTORY_6800, log__process_in_use=process))
    foreign = made["log.foreign"]
    assert isinstance(foreign, Size)
    assert foreign.low == 0
    assert foreign.high < 1.1 * GIB


def test_a_process_with_much_outside_torch_holds_it_itself() -> None:
    """79.11 - 0.41 - 78.67 = 0.03 is nobody's: the 7.97 GiB beside torch's 70.70 belong to the process, which prints them as its own."""
    figures = {
        "requested": 1.02,
        "capacity": 79.11,
        "free": 0.41,
        "process_in_use": 78.67,
        "allocated": 70.10,
        "reserved_unallocated": 0.60,
    }
    made = of_message(**figures)
    assert gib(made["log.not_torch"]) == pytest.approx(7.97, abs=0.005)
    assert gib(made["log.foreign"]) == pytest.approx(0.03, abs=0.005)


def test_foreign_memory_of_tens_of_gibibytes() -> None:
    made = derived(book(LLAMAFACTORY_6800, log__capacity="79.15 GiB", log__process_in_use=None))
    assert gib(made["log.foreign"]) > 46


def test_verdict_agrees() -> None:
    made = derived(book(LLAMAFACTORY_6800))
    assert made["ledger.verdict"] == "agrees"
    assert gib(made["ledger.next_states"]) == pytest.approx(7.093, abs=0.001)
    assert gib(made["ledger.logits_at_loss"]) == pytest.approx(13.92, abs=0.01)


def test_verdict_above() -> None:
    """Weights that the files ask for exceed what was allocated, in 16 bits as in 32."""
    assert derived(book(CONFIG_INCOMPLETE))["ledger.verdict"] == "above"


def test_verdict_below() -> None:
    """3.6 of 71.86 GiB: the ledger says that it does not explain the failure."""
    made = derived(book(AXOLOTL_2143))
    assert made["ledger.verdict"] == "below"
    assert gib(made["ledger.unexplained"]) == pytest.approx(68.25, abs=0.05)
    assert gib(made["log.grown"]) == pytest.approx(71.85, abs=0.01)


def test_while_loading_less_than_the_whole_proves_nothing() -> None:
    """Half of the weights on the card when it ran out: no contradiction."""
    made = derived(book(CONFIG_INCOMPLETE, log__phase="model_load", log__allocated="13.00 GiB"))
    assert made["ledger.verdict"] == "agrees"


def test_no_states_are_to_come_after_the_first_step() -> None:
    assert gib(derived(book(LLAMAFACTORY_6800, log__step=3))["ledger.next_states"]) == 0


def test_a_size_alone_names_no_group() -> None:
    """Only where frame and phase agree does the attribution become a fact."""
    known = book(LLAMAFACTORY_6800)
    named = derived(known, event("4.64 GiB", "loss", CROSS_ENTROPY))
    assert (named["attribution.group"], named["attribution.exact"]) == ("logits", True)
    assert named["data.tokens_in_batch"] == 8192
    assert "attribution.group" not in derived(known, event("4.64 GiB", "optimizer_step", "somewhere.py:step|x = y"))


def test_rows_of_a_rollout_are_split() -> None:
    """40,448 tokens in 16 rows: completions at their limit of 2,048, prompts of 480."""
    made = derived(book(TRL_3172), event("1.43 GiB", "forward", MLP))
    assert (made["data.tokens_in_batch"], made["data.prompt_tokens"], made["data.completion_tokens"]) == (40448, 480, 2048)


def test_the_list_is_counted_with_its_copy() -> None:
    """4.23 GiB, and the engine that is awake beside it."""
    made = derived(book(OPENRLHF_964))
    assert gib(made["ledger.rollout_samples"]) == pytest.approx(4.234, abs=0.001)
    assert gib(made["ledger.rollout_engine"]) == pytest.approx(51.5, abs=0.05)


def test_an_unread_key_that_was_to_save_memory() -> None:
    """The key and the knob it was meant for; a key that has nothing to do with memory is no finding."""
    known = book(AXOLOTL_2143).learn([fact("config.unknown_key", "sequence_length"), fact("config.wanted_knob", "train.max_seq_len")])
    made = derived(known)
    assert (made["config.missed_memory"], made["config.missed_key"], made["config.missed_knob"]) == (
        True,
        "sequence_length",
        "train.max_seq_len",
    )
    other = book(AXOLOTL_2143).learn([fact("config.unknown_key", "wandb_nmae"), fact("config.wanted_knob", "save.gather_full")])
    assert derived(other)["config.missed_memory"] is False
    assert "config.missed_memory" not in derived(book(AXOLOTL_2143))


def test_host_memory_of_offload() -> None:
    made = derived(book(AXOLOTL_2143))
    assert gib(made["ledger.host"]) == pytest.approx(8 + 18 * 3.212749824e9 / GIB, abs=0.01)


@for_each(
    "counted, due",
    [
        ({"log.step": 1000, "save.every": 500}, True),
        ({"log.step": 1001, "save.every": 500, "log.total_steps": 2000}, False),
        ({"log.step": 312, "log.total_steps": 312}, True),  # after the last one the model is saved
        ({"log.step": 311, "log.total_steps": 312}, None),  # nobody says how often
        ({"save.every": 500}, None),
    ],
)
def test_when_a_save_was_due(counted: dict[str, int], due: bool | None) -> None:
    assert {made.name: made.value for made in derive_facts(book({}, **counted), (), ())}.get("log.save_due") is due


def test_modules_trained_whole_beside_adapters_are_priced() -> None:
    """Both ends of an 8B model: 16-bit copies, gradients, two moments and the list of the update, 2*(1 + 1 + 2 + 1) bytes of 2*V*h."""
    job = {
        "model": "meta-llama/Llama-3.1-8B",
        "train.framework": "axolotl",
        "train.stage": "sft",
        "train.finetuning": "lora",
        "train.precision": "bf16",
        "train.load_dtype": "bf16",
        "train.optimizer": "adamw",
        "train.micro_batch_size": 1,
        "train.gradient_accumulation": 1,
        "train.max_seq_len": 64,
        "train.gradient_checkpointing": "enabled",
        "parallel.world": 1,
        "lora.rank": 16,
    }
    saved = derived(book(job, **{"lora.modules_to_save": "embed_tokens,lm_head"}))["ledger.saved_modules"]
    assert isinstance(saved, Size) and saved.bytes == 10 * 2 * 128256 * 4096
    assert "ledger.saved_modules" not in derived(book(job))


def test_nothing_known_nothing_said() -> None:
    """No model: no group of the ledger is said to be zero."""
    made = derived(FactBook())
    assert not [name for name in made if name.startswith("ledger.")]
