"""The ledgers of the reference failures: their sums, moments, roles and the price of their remedies."""

from __future__ import annotations

from typing import Any

import pytest
from books import AXOLOTL_2143, CONFIG_INCOMPLETE, DEEPSEEK, GIB, LLAMAFACTORY_6800, OPENRLHF_392, OPENRLHF_964, TRL_3172, book
from collected import for_each

from diagnose.budget.model.ledger import Ledger
from diagnose.budget.moments.role_ledgers import ledgers
from diagnose.facts import FactBook, Value


def role(facts: FactBook, name: str | None = None) -> Ledger:
    found = ledgers(facts)
    return found[0] if name is None else next(ledger for ledger in found if ledger.role == name)


def gib(ledger: Ledger, moment: str | None = None, *groups: str) -> float:
    """GiB of a moment (by default the peak), or of some groups of it."""
    found = ledger.peak if moment is None else ledger.moment(moment)
    assert found is not None, moment
    return (found.of(*groups) if groups else found.total).bytes / GIB


def after(facts: FactBook, changes: dict[str, Value], name: str | None = None) -> float:
    return gib(role(facts.changed(changes), name))


#: The length that the failed request implies.
SOLVED_TRL = {"data.prompt_tokens": 480, "data.completion_tokens": 2048}


def test_llamafactory_6800_at_the_failure() -> None:
    """23.07 of 23.51 GiB: before the first optimizer step there are no moments, and the block that failed is not there yet."""
    ledger = role(book(LLAMAFACTORY_6800))
    assert ledger.failing == "loss_call"
    assert gib(ledger, "loss_call") == pytest.approx(23.067, abs=0.002)
    assert gib(ledger, "loss_call", "optimizer_states") == pytest.approx(3.546, abs=0.001)
    assert ledger.unexplained is not None
    assert ledger.unexplained.bytes / GIB == pytest.approx(0.44, abs=0.01)
    assert ledger.complete


def test_llamafactory_6800_peaks_in_the_reference_forward() -> None:
    """Five blocks of fp32 logits, with moments: 44.08 GiB; from 0.9.4 on the model computes no loss of its own."""
    facts = book(LLAMAFACTORY_6800)
    ledger = role(facts)
    assert ledger.peak is not None
    assert ledger.peak.name == "reference_forward"
    assert gib(ledger) == pytest.approx(44.08, abs=0.01)
    assert after(facts, {"train.max_seq_len": 1536}) == pytest.approx(28.43, abs=0.01)
    assert after(facts, {"train.max_seq_len": 2048}) == pytest.approx(31.6, abs=0.05)
    assert gib(role(book(LLAMAFACTORY_6800, version__llamafactory="0.9.4"))) == pytest.approx(39.44, abs=0.01)
    assert after(facts, {"zero.offload_optimizer": "cpu"}) == pytest.approx(31.67, abs=0.01)


def test_files_that_ask_for_more_than_was_allocated() -> None:
    """Two copies of the weights, in 16 or 32 bits, exceed 23.51 GiB: the range says so at both ends."""
    ledger = role(book(CONFIG_INCOMPLETE))
    weights = ledger.moment("load")
    assert weights is not None
    assert weights.total.high / GIB == pytest.approx(61.776, abs=0.002)
    assert weights.total.low / GIB == pytest.approx(30.888, abs=0.002)
    assert "train.precision" in ledger.unknown


@pytest.mark.parametrize(
    ("length", "as_run", "checkpointed", "liger"), [(512, 3.60, 1.82, 3.27), (2048, 11.01, 3.90, 7.21), (4096, 20.89, 6.68, 12.48)]
)
def test_axolotl_2143_by_length(length: int, as_run: float, checkpointed: float, liger: float) -> None:
    """No length that was tried fills 71.86 GiB."""
    facts = book(AXOLOTL_2143, train__max_seq_len=length)
    assert gib(role(facts)) == pytest.approx(as_run, rel=0.01)
    assert after(facts, {"train.gradient_checkpointing": "enabled"}) == pytest.approx(checkpointed, rel=0.03)
    assert after(facts, {"train.loss_kernel": "liger"}) == pytest.approx(liger, rel=0.05)


def test_axolotl_2143_is_explained_by_eager_attention_at_3745_tokens() -> None:
    facts = book(AXOLOTL_2143, train__max_seq_len=3745, model__attention="eager")
    assert gib(role(facts), "loss_call") == pytest.approx(71.87, rel=0.01)


def test_states_on_the_host_are_priced_there() -> None:
    """20 bytes per parameter of 3.213e9, parameters and the fp32 gradients that the step reads among them, and nothing of it on the card.
    A rank's parameters (0.75 GiB) are pinned in any case, its gradients (0.75 and 1.5 GiB) where that is asked."""
    ledger = role(book(AXOLOTL_2143))
    assert gib(ledger, "loss_backward", "weights", "gradients", "optimizer_states") == 0
    assert ledger.host.total.bytes / GIB == pytest.approx(8 * 1 + 18 * 3.212749824e9 / GIB, abs=0.05)
    assert ledger.host.total.high / GIB == pytest.approx(8 * (1 + 1 + 2) + 12 * 3.212749824e9 / GIB, abs=0.1)


def test_deepseek_v2_lite_stops_in_the_24th_layer() -> None:
    """23 layers of MLA and experts are stored when the scores of the next do not fit (24 would exceed what was allocated by
    1.4 GiB, since the router keeps an fp32 copy of its input); the whole forward would take 95.6 GiB."""
    facts = book(DEEPSEEK)
    ledger = role(facts)
    assert gib(ledger, "forward_end") == pytest.approx(75.15, abs=0.3)
    assert gib(ledger, "forward_end", "attention_scores") == pytest.approx(35.5, abs=0.01)
    assert any("23 layers" in term.name.en for term in ledger.moments[2].terms)
    assert gib(ledger) == pytest.approx(95.63, abs=0.3)
    assert after(facts, {"train.gradient_checkpointing": "enabled"}) == pytest.approx(13.13, abs=0.2)
    assert after(facts, {"train.micro_batch_size": 1}) == pytest.approx(26.13, abs=0.2)


def test_trl_3172_stores_six_layers() -> None:
    """LoRA with dropout keeps 10.55 GiB per layer of 40,448 tokens: the seventh does not fit."""
    facts = book(TRL_3172).changed(SOLVED_TRL)
    ledger = role(facts)
    assert gib(ledger, "forward_end") == pytest.approx(77.08, abs=0.2)
    assert any("6 layers" in term.name.en for term in ledger.moments[2].terms)
    assert gib(ledger) == pytest.approx(337.9, rel=0.002)
    assert after(facts, {"train.gradient_checkpointing": "enabled"}) == pytest.approx(50.06, abs=0.3)
    assert after(facts, {"train.micro_batch_size": 2, "train.gradient_accumulation": 8}) == pytest.approx(46.23, abs=0.3)
    assert after(facts, {"rollout.completion_len": 512}) == pytest.approx(130.08, rel=0.01)
    assert after(facts, {"rollout.num_generations": 4}) == gib(ledger)
    assert gib(ledger, "load") == pytest.approx(14.19, abs=0.01)


def test_openrlhf_392_has_a_ledger_per_role() -> None:
    """Actor, critic, reward, reference and engine hold different models on different cards."""
    facts = book(OPENRLHF_392)
    assert [ledger.role for ledger in ledgers(facts)] == ["actor", "critic", "reward", "reference", "engine"]
    actor, critic = role(facts, "actor"), role(facts, "critic")
    assert gib(actor, "loss_call") == pytest.approx(75.55, abs=0.01)
    assert gib(actor) == pytest.approx(81.8, abs=0.02)
    assert gib(actor, "optimizer_step") == pytest.approx(75.15, abs=0.01)
    assert gib(actor, "loss_call", "weights", "gradients", "optimizer_states") == pytest.approx(68.63, abs=0.01)
    assert gib(critic, "optimizer_step", "weights", "gradients") + gib(critic, "forward_end", "optimizer_states") == pytest.approx(
        62.91, abs=0.01
    )
    assert gib(role(facts, "reference")) == pytest.approx(14.36, abs=0.01)
    assert role(facts, "reference").host.total.bytes / GIB == pytest.approx(30.5, abs=0.01)
    assert gib(role(facts, "engine"), "generate", "weights") == pytest.approx(30.5, abs=0.01)
    assert gib(role(facts, "engine")) == pytest.approx(71.24, abs=0.01)


def test_openrlhf_392_agrees_with_the_memory_lines_of_the_log() -> None:
    """MA 39.06 and 35.88 after initialisation: ten bytes per parameter and the bucket."""
    facts = book(OPENRLHF_392)
    assert gib(role(facts, "actor"), "init") == pytest.approx(39.06, abs=0.01)
    assert gib(role(facts, "critic"), "init") == pytest.approx(35.88, abs=0.01)


def test_openrlhf_392_remedies() -> None:
    """Offload takes gradients with it; 16-bit gradients save two bytes per parameter; micro batch 1 leaves the optimizer step."""
    facts = book(OPENRLHF_392)
    assert after(facts, {"zero.offload_optimizer": "cpu"}) == pytest.approx(20.79, abs=0.02)
    host = role(facts.changed({"zero.offload_optimizer": "cpu", "zero.pin_memory": False})).host.total  # 4 + 4 + 12 bytes per parameter
    assert host.bytes == host.high == 20 * 16375728128
    assert after(facts, {"zero.grad_accum_dtype": "bf16"}) == pytest.approx(74.17, abs=0.02)
    assert after(facts, {"train.micro_batch_size": 1}) == pytest.approx(75.15, abs=0.02)
    assert after(facts, {"actor.gpus": 8}) == pytest.approx(47.48, abs=0.02)


def test_openrlhf_964_at_the_broadcast() -> None:
    """The list of samples stands in the ledger of the ring leader; its copy is the request, and part of what was needed."""
    ledger = role(book(OPENRLHF_964))
    assert ledger.failing == "generate"
    assert gib(ledger, "generate") == pytest.approx(19.096, abs=0.002)
    assert gib(ledger, "generate", "samples") == pytest.approx(2.117, abs=0.001)
    assert gib(ledger) == pytest.approx(21.21, abs=0.01)
    assert gib(role(book(OPENRLHF_964, version__openrlhf="0.7.1"))) == pytest.approx(16.98, abs=0.01)


def test_a_sleeping_engine_leaves_room_for_training() -> None:
    """What the awake engine took counts against generation only."""
    ledger = role(book(OPENRLHF_964))
    assert ledger.peak is not None
    assert ledger.peak.name == "generate"
    backward = ledger.moment("loss_backward")
    assert backward is not None
    assert backward.room is not None
    assert backward.room.bytes / GIB > 70


def test_engine_share_moves_what_is_usable() -> None:
    """Five hundredths of 79.25 GiB less for the engine are that much more for the trainer."""
    facts = book(OPENRLHF_964)
    before, later = role(facts).usable, role(facts.changed({"rollout.gpu_memory_utilization": 0.6})).usable
    assert before is not None
    assert later is not None
    assert (later.bytes - before.bytes) / GIB == pytest.approx(3.96, abs=0.01)


@for_each(
    "gone, named",
    [
        ("model", "model.shape"),
        ("train.micro_batch_size", "train.micro_batch_size"),
        ("train.max_seq_len", "train.max_seq_len"),
        ("parallel.world", "parallel.world"),
    ],
)
def test_what_is_missing_is_named(gone: str, named: str) -> None:
    """Without a fact its terms are left out, the fact is named and the ledger does not claim to be whole."""
    ledger = role(book(LLAMAFACTORY_6800 | {gone: None}))
    assert named in ledger.unknown
    assert not ledger.complete


def test_an_empty_book_has_a_ledger_without_terms() -> None:
    """Nothing known: nothing said, nothing raised."""
    ledger = role(FactBook())
    assert ledger.role == "train"
    assert not ledger.complete
    assert sum(moment.total.bytes for moment in ledger.moments) == 0


def test_usable_is_read_off_the_failure() -> None:
    """Free + allocated + unallocated; before a run, capacity less context and communicators."""
    failed = role(book(LLAMAFACTORY_6800)).usable
    assert failed is not None
    assert failed.bytes / GIB == pytest.approx(30.43, abs=0.005)
    planned = role(
        book({name: value for name, value in LLAMAFACTORY_6800.items() if not name.startswith("log.")}, hardware__capacity="31.74 GiB")
    ).usable
    assert planned is not None
    assert planned.low < planned.bytes < planned.high < 31.74 * GIB


LLAMA_3B: dict[str, Any] = {
    "model": "meta-llama/Llama-3.2-3B-Instruct",
    "train.framework": "torchtune",
    "train.precision": "pure_bf16",
    "parallel.world": 1,
    "train.micro_batch_size": 2,
    "train.max_seq_len": 4096,
    "train.packing": "enabled",
    "train.gradient_checkpointing": "disabled",
    "model.attention": "sdpa",
    "train.optimizer": "adamw_fused",
}
LLAMA_2: dict[str, Any] = {
    "train.framework": "litgpt",
    "train.precision": "pure_bf16",
    "train.load_dtype": "bf16",
    "train.finetuning": "lora",
    "lora.rank": 8,
    "lora.targets": "q_proj,v_proj",
    "parallel.world": 1,
    "train.max_seq_len": 1304,
    "train.gradient_checkpointing": "disabled",
    "train.loss_kernel": "chunked",
    "train.loss_chunk_rows": 128,
    "model.attention": "sdpa",
    "lora.dropout": 0.05,
}
CHUNKED = LLAMA_3B | {"train.loss_kernel": "chunked", "train.compile": "enabled"}
CHECKPOINTED = CHUNKED | {"train.gradient_checkpointing": "enabled"}
IN_BACKWARD = {"train.optimizer_in_backward": "enabled"}


@for_each(
    "job, published, within",
    [
        (LLAMA_3B, 60.0, 0.01),
        (CHUNKED, 42.9, 0.02),
        (CHECKPOINTED, 24.9, 0.02),
        (CHECKPOINTED | IN_BACKWARD, 23.1, 0.03),
        (CHECKPOINTED | IN_BACKWARD | {"train.activation_offload": "enabled"}, 21.8, 0.03),
        (LLAMA_2 | {"model": "meta-llama/Llama-2-7b-hf", "train.micro_batch_size": 1}, 19.84, 0.01),
        (LLAMA_2 | {"model": "meta-llama/Llama-2-7b-hf", "train.micro_batch_size": 2}, 27.07, 0.01),
        (LLAMA_2 | {"model": "meta-llama/Llama-2-13b-hf", "train.micro_batch_size": 1}, 35.50, 0.01),
    ],
)
def test_published_peaks(job: dict[str, Any], published: float, within: float) -> None:
    """Full training of Llama 3.2 3B (torchtune's table of its memory optimisations: two packed rows, then one optimisation more each) and
    LoRA of Llama 2 without checkpointing (LitGPT's resource tables), in GiB of max_memory_allocated."""
    assert gib(role(book(job))) == pytest.approx(published, rel=within)


def test_a_run_that_trains_nothing_has_neither_gradients_nor_states() -> None:
    """The same files with do_predict: weights, and the cache of what is generated or the logits of a batch."""
    settings: dict[str, Value] = {
        "train.enabled": False,
        "eval.batch_size": 4,
        "log.phase": None,
        "zero.stage": 0,
        "train.precision": "bf16",
    }
    ledger = role(book(AXOLOTL_2143).changed(settings))
    assert ledger.complete
    assert {term.group for moment in ledger.moments for term in moment.terms} <= {"weights", "activations", "logits"}
    generating = role(book(AXOLOTL_2143).changed({**settings, "eval.generates": True, "eval.generation_len": 1024}))
    # keys and values of 28 layers, 4 rows, 1,024 tokens: 8 heads of 128, in 16 bits
    assert gib(generating, "generate", "kv_cache") == pytest.approx(2 * 28 * 4 * 1024 * 8 * 128 * 2 * (1 + 1 / 28) / GIB)
