"""What must hold for any job: figures mean what formulas say, more work never needs less, more ranks never hold more."""

from __future__ import annotations

from typing import Any

from books import AXOLOTL_2143, CONFIG_INCOMPLETE, DEEPSEEK, LLAMAFACTORY_6800, OPENRLHF_392, OPENRLHF_964, TRL_3172, book
from collected import for_each
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pencil import arithmetic
from sweep import examples

from diagnose.budget.model.ledger import Ledger, Term
from diagnose.budget.moments.role_ledgers import ledgers
from diagnose.facts import FactBook

REFERENCES = {
    "llamafactory-6800": LLAMAFACTORY_6800,
    "config-incomplete": CONFIG_INCOMPLETE,
    "axolotl-2143": AXOLOTL_2143,
    "deepseek": DEEPSEEK,
    "trl-3172": TRL_3172,
    "openrlhf-392": OPENRLHF_392,
    "openrlhf-964": OPENRLHF_964,
}


#: A trainer that shares its card with an engine that sleeps while it trains.
GRPO: dict[str, Any] = {
    "train.stage": "grpo",
    "train.finetuning": "lora",
    "lora.rank": 8,
    "train.precision": "bf16",
    "train.micro_batch_size": 1,
    "rollout.prompt_len": 512,
    "rollout.completion_len": 512,
    "rollout.engine": "vllm",
    "rollout.placement": "colocated",
    "rollout.sleep": "enabled",
    "rollout.gpu_memory_utilization": 0.5,
    "hardware.capacity": "80 GiB",
}


def terms(facts: FactBook) -> list[Term]:
    """Of every moment of every role, on the cards and on the host."""
    found = [term for ledger in ledgers(facts) for moment in (*ledger.moments, *ledger.host.moments) for term in moment.terms]
    return found + [term for ledger in ledgers(facts) for term in ledger.host.terms]


def peak(facts: FactBook) -> int:
    """The largest sum, whichever moment it is."""
    return max(moment.total.bytes for moment in first(facts).moments)


def first(facts: FactBook) -> Ledger:
    return ledgers(facts)[0]


@st.composite
def jobs(draw: st.DrawFn) -> dict[str, Any]:
    """A job without a log: any engine, precision, attention, method and catalogue model."""
    knobs: dict[str, Any] = {
        "model": draw(
            st.sampled_from(
                [
                    "Qwen/Qwen2.5-7B",
                    "meta-llama/Llama-3.2-3B-Instruct",
                    "deepseek-ai/DeepSeek-V2-Lite",
                    "Qwen/Qwen2-VL-7B-Instruct",
                    "google/gemma-2-9b",
                ]
            )
        ),
        "train.framework": draw(st.sampled_from(["llamafactory", "axolotl", "trl", "openrlhf", "swift"])),
        "train.stage": draw(st.sampled_from(["sft", "dpo", "grpo", "ppo", "rm", "kto"])),
        "train.finetuning": draw(st.sampled_from(["full", "lora"])),
        "train.precision": draw(st.sampled_from(["bf16", "fp16", "fp32", "pure_bf16", None])),
        "train.optimizer": draw(st.sampled_from(["adamw", "adamw_8bit", "lion", "sgd", "adafactor", "lomo"])),
        "train.micro_batch_size": draw(st.integers(1, 8)),
        "train.max_seq_len": draw(st.sampled_from([512, 2048, 4096])),
        "rollout.prompt_len": 512,
        "rollout.completion_len": draw(st.sampled_from([512, 1024])),
        "train.gradient_accumulation": draw(st.sampled_from([1, 4])),
        "train.gradient_checkpointing": draw(st.sampled_from(["enabled", "disabled", "offload", "selective"])),
        "train.loss_kernel": draw(st.sampled_from(["none", "liger", "chunked", "cut_cross_entropy"])),
        "model.attention": draw(st.sampled_from(["eager", "sdpa", "flash_attention_2", None])),
        "model.quantization": draw(st.sampled_from(["none", "nf4"])),
        "version.transformers": draw(st.sampled_from(["4.44.2", "4.47.0", "4.51.3", "4.57.1", None])),
        "parallel.world": draw(st.sampled_from([1, 2, 8])),
        "eval.enabled": "enabled",
        "eval.batch_size": 2,
    }
    engine = draw(st.sampled_from(["none", "zero1", "zero2", "zero3", "offload", "fsdp", "fsdp_grad"]))
    if engine.startswith("zero"):
        knobs["zero.stage"] = int(engine[-1])
    if engine == "offload":
        knobs |= {"zero.stage": 3, "zero.offload_optimizer": "cpu", "zero.offload_param": "cpu"}
    if engine.startswith("fsdp"):
        knobs["fsdp.sharding"] = "full_shard" if engine == "fsdp" else "shard_grad_op"
    return knobs


ANY_JOB = settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])


@for_each("name", REFERENCES)
def test_figures_of_every_reference_term(name: str) -> None:
    """Each term's numbers evaluate to its bytes, within the rounding to whole bytes, and its bytes lie in its range."""
    for term in terms(book(REFERENCES[name])):
        assert abs(arithmetic(term.numbers) - term.size.bytes) < 1, term
        assert term.size.low <= term.size.bytes <= term.size.high, term


@ANY_JOB
@given(jobs())
def test_figures_of_any_term(knobs: dict[str, Any]) -> None:
    """The same for jobs nobody wrote down; no term is negative, and every one says what it is in both languages."""
    for term in terms(book(knobs)):
        assert abs(arithmetic(term.numbers) - term.size.bytes) < 1, term
        assert 0 <= term.size.low <= term.size.bytes <= term.size.high, term
        assert term.name.en
        assert term.name.zh
        assert "{" not in term.name.en + term.name.zh


@ANY_JOB
@given(jobs(), st.sampled_from(["train.micro_batch_size", "train.max_seq_len", "rollout.completion_len"]))
def test_more_work_never_needs_less(knobs: dict[str, Any], knob: str) -> None:
    """Twice the rows or tokens: no moment that holds a batch gets smaller, nor does the peak."""
    facts = book(knobs)
    more = facts.changed({knob: 2 * knobs[knob]})
    assert peak(more) >= peak(facts)
    for moment in first(facts).moments:
        then = first(more).moment(moment.name)
        assert then is not None
        assert then.total.bytes >= moment.total.bytes, moment.name


@ANY_JOB
@given(jobs())
def test_more_layers_never_need_less(knobs: dict[str, Any]) -> None:
    facts = book(knobs)
    shape = facts.shape("model.shape")
    assert shape is not None
    taller = shape._replace(L=shape.L + 4)
    taller = taller._replace(params=taller.counted)
    assert peak(facts.changed({"model.shape": taller})) >= peak(facts)


@ANY_JOB
@given(jobs())
def test_more_ranks_never_hold_more_states(knobs: dict[str, Any]) -> None:
    """Sharding over more ranks leaves weights, gradients and optimizer states the same or smaller."""
    facts = book(knobs | {"parallel.world": 2})
    states = ("weights", "gradients", "optimizer_states", "extra_models")
    for name in ("init", "optimizer_step"):
        few, many = first(facts).moment(name), first(facts.changed({"parallel.world": 16})).moment(name)
        assert few is not None
        assert many is not None
        assert many.of(*states).bytes <= few.of(*states).bytes


@ANY_JOB
@given(jobs())
def test_there_and_back(knobs: dict[str, Any]) -> None:
    """A knob turned and turned back leaves the ledger as it was: nothing is remembered between calls."""
    facts = book(knobs)
    before = ledgers(facts)
    ledgers(facts.changed({"train.max_seq_len": 8192, "zero.stage": 3, "train.gradient_checkpointing": "enabled"}))
    assert ledgers(facts) == before
    assert ledgers(facts.changed({"train.micro_batch_size": knobs["train.micro_batch_size"]})) == before


@ANY_JOB
@given(jobs())
def test_a_reprice_is_exact_where_nothing_is_open(knobs: dict[str, Any]) -> None:
    """Every moment's total is the sum of its terms, and a ledger with unknown facts never claims to be complete without parameters."""
    for ledger in ledgers(book(knobs)):
        for moment in ledger.moments:
            assert moment.total.bytes == sum(term.size.bytes for term in moment.terms)
        assert ledger.peak is None or ledger.peak.total.bytes >= 0


@for_each(
    "absurd",
    [
        {"train.max_seq_len": 10**9},
        {"parallel.world": 0},
        {"parallel.tensor": 7, "parallel.world": 2},
        {"parallel.context": 64},
        {"train.micro_batch_size": 0},
        {"lora.rank": 0, "train.finetuning": "lora"},
        {"zero.stage": 9},
        {"lora.targets": "???", "train.finetuning": "lora"},
    ],
)
def test_absurd_values_raise_nothing(absurd: dict[str, Any]) -> None:
    """Values that cannot be are somebody else's to complain about; the ledger survives them."""
    for reference in (LLAMAFACTORY_6800, TRL_3172, OPENRLHF_392):
        assert ledgers(book(reference | absurd))


@ANY_JOB
@given(jobs())
def test_wider_elements_never_need_less(knobs: dict[str, Any]) -> None:
    """Four bytes per value instead of two: neither the peak of full training nor what lies there between two steps gets smaller.
    Two peaks may, because 16 bits make copies there that fp32 shares: inputs of fp32 adapters, and eager attention's softmax."""
    plain = knobs | {"train.finetuning": "full", "model.attention": "sdpa"}
    narrow, wide = (first(book(plain | {"train.precision": word})) for word in ("pure_bf16", "fp32"))
    assert max(moment.total.bytes for moment in wide.moments) >= max(moment.total.bytes for moment in narrow.moments)
    loaded = [first(book(knobs | {"train.precision": "bf16", "train.load_dtype": word})) for word in ("bf16", "fp32")]
    few, many = (ledger.moment("init") for ledger in loaded)
    assert few is not None
    assert many is not None
    assert many.total.bytes >= few.total.bytes


@ANY_JOB
@given(jobs())
def test_terms_are_bytes(knobs: dict[str, Any]) -> None:
    """Sums add bytes and nothing else: every size is a whole number of them, and no term is a count, a share or a GiB."""
    for term in terms(book(knobs)):
        for end in (term.size.low, term.size.bytes, term.size.high):
            assert type(end) is int
    for ledger in ledgers(book(knobs)):
        for moment in (*ledger.moments, *ledger.host.moments):
            assert moment.total.high == sum(term.size.high for term in moment.terms)


def test_an_engine_asleep_keeps_its_expert_buffers() -> None:
    """As long as the tokens that it schedules at once: TRL asks for 4096; a dense model has none."""
    knobs = GRPO | {"train.framework": "trl", "model": "Qwen/Qwen3-30B-A3B"}
    init = first(book(knobs)).moment("init")
    assert init is not None
    assert init.only("engine_workspace").bytes == 2 * 4096 * 8 * (2048 + 2048)
    dense = first(book(GRPO | {"model": "Qwen/Qwen2.5-7B"})).moment("init")
    assert dense is not None
    assert dense.only("engine_workspace").bytes == 0


def test_fsdp_gathers_adapters_in_16_bits() -> None:
    """They read what the base reads; PEFT's copies are those of fp32 adapters (seen under FSDP 1 and 2 with torch 2.11)."""
    plain = {"model": "Qwen/Qwen2.5-7B", "train.finetuning": "lora", "lora.rank": 8, "train.precision": "bf16", "train.micro_batch_size": 1}
    plain |= {"train.max_seq_len": 1024, "train.load_dtype": "bf16", "model.attention": "flash_attention_2", "parallel.world": 2}
    kept = []
    for sharding in ("none", "full_shard"):
        end = first(book(plain | {"fsdp.sharding": sharding})).moment("forward_end")
        assert end is not None
        kept.append(end.only("layers").bytes)
    assert kept[1] < kept[0]


def test_a_prepared_head_is_copied_once() -> None:
    """Autocast computes an fp32 head in 16 bits: 2*V*h from its forward to its backward, gone when layers are in backward."""
    knobs = {"model": "Qwen/Qwen2.5-7B", "train.finetuning": "lora", "lora.rank": 8, "train.precision": "bf16", "model.quantization": "nf4"}
    knobs |= {"train.micro_batch_size": 1, "train.max_seq_len": 1024, "train.gradient_checkpointing": "enabled", "train.framework": "trl"}
    moments = {moment.name: moment.only("autocast_head").bytes for moment in first(book(knobs)).moments}
    assert moments["loss_call"] == moments["loss_backward"] == 2 * 152064 * 3584
    assert moments["layer_backward"] == 0
