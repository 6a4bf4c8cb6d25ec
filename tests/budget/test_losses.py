"""What each framework's loss holds of the logits, by stage and release, and the kernels that spare them."""

from __future__ import annotations

from typing import Any

import pytest
from books import book
from collected import for_each

from diagnose.budget.model.ledger import Ledger
from diagnose.budget.model.loss_table import LISTS, LossQuery, find_loss, losses, named_for, parse_block
from diagnose.budget.moments.role_ledgers import ledgers
from diagnose.facts import FactBook
from diagnose.units import Version

JOB: dict[str, Any] = {
    "model": "Qwen/Qwen2.5-7B",
    "train.framework": "trl",
    "train.stage": "sft",
    "train.finetuning": "full",
    "train.precision": "bf16",
    "train.load_dtype": "bf16",
    "train.micro_batch_size": 2,
    "train.max_seq_len": 2048,
    "train.gradient_checkpointing": "enabled",
    "train.loss_kernel": "none",
    "version.transformers": "4.57.1",
    "parallel.world": 1,
}
V, H, ROWS, TOKENS = 152064, 3584, 2, 4096


def first(facts: FactBook) -> Ledger:
    return ledgers(facts)[0]


def logits(facts: FactBook, moment: str, *keys: str) -> int:
    """Bytes of a moment's logits, or of some terms of them."""
    found = first(facts).moment(moment)
    assert found is not None, moment
    return (found.only(*keys) if keys else found.of("logits")).bytes


def per_logit(moment: str, **changes: Any) -> float:
    """Bytes per logit at a moment."""
    facts = book(JOB, **changes)
    pairs = 2 if changes.get("train__stage") in ("dpo", "rm", "orpo", "simpo", "cpo") else 1
    return logits(facts, moment) / (pairs * TOKENS * V)


@for_each(
    "stage, changes, call, backward",
    [
        ("dpo", {"version__trl": "0.14.0"}, 8, 12),
        ("dpo", {"version__trl": "0.20.0"}, 6, 16),
        ("dpo", {"version__trl": "1.2.0"}, 8, 16),
        ("dpo", {"version__trl": "1.2.0", "zero__stage": 2}, 6, 6),
        ("dpo", {"version__trl": "0.20.0", "zero__stage": 2}, 4, 6),
        ("orpo", {"version__trl": "0.20.0"}, 8, 18),
        ("rm", {"version__trl": "0.20.0"}, 0, 0),
        ("rm", {"train__framework": "llamafactory"}, 6, 0),
        ("kto", {"train__framework": "llamafactory", "version__llamafactory": "0.9.4"}, 14, 12),
        ("sft", {"train__framework": "megatron", "train__precision": "bf16"}, 6, 6),
        ("sft", {"train__framework": "megatron", "train__precision": "bf16", "train__loss_kernel": "compiled"}, 6, 10),
        ("sft", {"train__framework": "megatron", "train__precision": "bf16", "train__loss_kernel": None}, 6, 10),
        ("gkd", {}, 40, 32),
    ],
)
def test_bytes_per_logit(stage: str, changes: dict[str, Any], call: float, backward: float) -> None:
    """The blocks that the trainers' source holds at the loss call and at the start of backward (rules/losses.yaml names the files):
    a whole log-softmax, rows, a shifted copy; fp32 where accelerate converts what autocast returns, 16 bits under DeepSpeed."""
    got = per_logit("loss_call", train__stage=stage, **changes), per_logit("loss_backward", train__stage=stage, **changes)
    assert got == pytest.approx((call, backward), rel=0.001)


def test_the_kl_batch_of_kto_exists_without_a_reference_model() -> None:
    """LLaMA-Factory runs a second batch beside the policy's kept logits even where the adapter is its own reference."""
    facts = book(JOB, train__framework="llamafactory", train__stage="kto", train__finetuning="lora", lora__rank=8, lora__targets="q_proj")
    assert logits(facts, "reference_forward") == 24 * TOKENS * V


def test_completions_alone_have_logits_in_grpo() -> None:
    """Logits of the completion's tokens; the sum grows with the completion, not with the prompt."""
    base = {"train__stage": "grpo", "rollout__completion_len": 512, "version__trl": "1.0.0", "rollout__num_generations": 8}
    short = book(JOB, rollout__prompt_len=128, **base)
    long = book(JOB, rollout__prompt_len=1024, **base)
    assert logits(short, "loss_call") == logits(long, "loss_call") == 6 * ROWS * 512 * V


@for_each(
    "release, changes, call, backward",
    [
        ("0.29.0", {}, 8, 12),
        ("1.9.2", {}, 6, 16),
        ("1.10.0", {}, 8, 12),
        ("1.9.2", {"zero__stage": 2}, 4, 6),
        ("1.10.0", {"zero__stage": 2}, 6, 4),
    ],
)
def test_the_temperature_of_grpo(release: str, changes: dict[str, Any], call: int, backward: int) -> None:
    """TRL 1.0 to 1.9 divides the logits in place, which has a gradient of its own; before and after it divides a copy, which is gone by
    then. Under DeepSpeed the rows' log-softmax goes with each row (counted with torch's profiler on the CPU)."""
    facts = book(
        JOB,
        train__stage="grpo",
        version__trl=release,
        rollout__completion_len=512,
        rollout__prompt_len=128,
        rollout__num_generations=8,
        **changes,
    )
    got = [logits(facts, moment) / (ROWS * 512 * V) for moment in ("loss_call", "loss_backward")]
    assert got == pytest.approx([call, backward], rel=0.001)


def test_a_cap_keeps_its_tanh() -> None:
    """Gemma 2 caps its logits: two more bytes per logit in forward and backward."""
    facts = book(JOB, model="google/gemma-2-9b")
    for moment in ("loss_call", "loss_backward"):
        assert logits(facts, moment, "soft_cap") == 2 * TOKENS * 256000


def test_an_unknown_release_is_a_width() -> None:
    """Where TRL's release is not known, the range spans all releases, and the figure lies in it."""
    known = {version: first(book(JOB, train__stage="dpo", version__trl=version)) for version in ("0.14.0", "0.20.0", "1.2.0")}
    unknown = first(book(JOB, train__stage="dpo"))
    for moment in ("loss_call", "loss_backward"):
        wide = unknown.moment(moment)
        assert wide is not None
        for ledger in known.values():
            one = ledger.moment(moment)
            assert one is not None
            assert wide.of("logits").low <= one.of("logits").bytes <= wide.of("logits").high


def test_an_unknown_release_of_transformers_is_a_width() -> None:
    unknown = first(book(JOB, version__transformers=None)).moment("loss_call")
    assert unknown is not None
    size = unknown.of("logits")
    for version in ("4.44.2", "4.47.0", "4.57.1"):
        assert size.low <= logits(book(JOB, version__transformers=version), "loss_call") <= size.high


@for_each("release, chunk, product, most", [("0.4.2", 6, 0, 2), ("0.6.0", 2, 0, 2), ("0.6.2", 2, 6, 6), (None, 2, 0, 6)])
def test_ligers_fused_loss_by_release(release: str | None, chunk: int, product: int, most: int) -> None:
    """A chunk of 128 rows (4096 tokens in 43 parts, to the next power of two), the gradients of hidden states and head, and since 0.6.2 a
    product with an fp32 copy; in backward only the gradients."""
    facts = book(JOB, train__loss_kernel="liger", version__liger=release)
    found = first(facts).moment("loss_call")
    assert found is not None
    size = found.of("logits")
    assert size.bytes == chunk * 128 * V + 2 * H * TOKENS + (2 + product) * V * H
    assert size.high >= chunk * 128 * V + 2 * H * TOKENS + (2 + most) * V * H
    assert logits(facts, "loss_backward") == 2 * H * TOKENS + 2 * V * H


@pytest.mark.parametrize(("release", "fused"), [("0.20.0", False), ("0.25.0", True), (None, False)])
def test_liger_spares_pairs_where_the_trainer_hands_them_over(release: str | None, fused: bool) -> None:
    """use_liger_kernel fuses TRL's preference losses from 0.25 on; before, and where the release is not known, the logits are there."""
    facts = book(JOB, train__stage="dpo", train__loss_kernel="liger", version__trl=release)
    found = first(facts).moment("loss_call")
    assert found is not None
    assert any(term.key == "loss_fused" for term in found.terms) is fused


@pytest.mark.parametrize("tuning", ["full", "lora"])
def test_a_fused_pair_has_the_softmax_or_a_gradient_of_the_head(tuning: str) -> None:
    """One pair of 2048 tokens: 10 bytes per logit; short ones: 2 bytes and the chunk's own gradient of the head. Beside it the sum of the
    head's gradients, which Liger makes of a frozen head as well, and those of the hidden states."""
    knobs = {"train__stage": "dpo", "train__loss_kernel": "liger", "version__trl": "0.25.0", "train__finetuning": tuning, "lora__rank": 8}
    long, short = (logits(book(JOB, **knobs, train__max_seq_len=length), "loss_call") for length in (2048, 256))
    assert long == 10 * 2 * 2048 * V + 2 * H * 2 * TOKENS + 2 * V * H
    assert short == 2 * 2 * 256 * V + 2 * V * H + 2 * H * 2 * 512 + 2 * V * H


def test_a_frozen_head_has_no_gradient_in_the_fused_loss() -> None:
    facts = book(JOB, train__loss_kernel="cut_cross_entropy", train__finetuning="lora", lora__rank=8, lora__targets="q_proj")
    assert logits(facts, "loss_backward") == 2 * H * TOKENS


def test_unsloth_may_make_all_16_bit_logits() -> None:
    """Which kernel serves is up to card and release: the range says both."""
    found = first(book(JOB, train__framework="unsloth", train__loss_kernel="unsloth")).moment("loss_backward")
    assert found is not None
    size = found.of("logits")
    assert size.bytes == 2 * H * TOKENS + 2 * V * H
    assert size.high == max(size.bytes, 4 * TOKENS * V)


@for_each(
    "framework, expected",
    [("trl", 16 * 256 * V + 8 * V * H), ("verl", 12 * 512 * V), ("agilerl", 6 * TOKENS // 8 * V), ("axolotl", 12 * TOKENS // 8 * V)],
)
def test_chunks_by_framework(framework: str, expected: int) -> None:
    """TRL's chunk is 256 tokens and casts the head to fp32; verl's 512; others an eighth of the tokens."""
    assert logits(book(JOB, train__framework=framework, train__loss_kernel="chunked"), "loss_call") == expected


def test_chunks_of_logits_that_exist() -> None:
    """torchtune makes all logits first. Its loss keeps every chunk's log-softmax, compiled nothing but the logits; LinearCrossEntropyLoss
    has no logits as a whole."""
    chunked = {"train__framework": "torchtune", "train__loss_kernel": "chunked"}
    plain, compiled = {**chunked, "train__compile": False}, {**chunked, "train__compile": True}
    assert logits(book(JOB, **plain), "loss_call") == (2 + 4) * TOKENS * V + 12 * TOKENS // 8 * V
    assert logits(book(JOB, **compiled), "loss_call") == 2 * TOKENS * V + 2 * TOKENS // 8 * V
    assert logits(book(JOB, **plain, train__logits_materialised=False), "loss_call") == 12 * TOKENS // 8 * V
    unsaid = first(book(JOB, **chunked)).moment("loss_call")
    assert unsaid is not None
    assert (unsaid.of("logits").low, unsaid.of("logits").high) == (
        2 * TOKENS * V + 2 * TOKENS // 8 * V,
        6 * TOKENS * V + 12 * TOKENS // 8 * V,
    )


def test_lightning_hands_fp32_logits_on() -> None:
    """Its plugins convert what a model returns to fp32; chunks of 128 rows of those."""
    litgpt = {"train__framework": "litgpt", "train__loss_kernel": "chunked", "train__loss_chunk_rows": 128}
    assert logits(book(JOB, **litgpt), "loss_call", "logits_fp32") == 4 * TOKENS * V
    assert logits(book(JOB, **litgpt), "loss_call", "log_softmax") == 4 * TOKENS * V


@pytest.mark.parametrize(("framework", "call", "backward"), [("torchtitan", 2, 4), ("torchtune", 10, 12)])
def test_a_compiled_loss_casts_inside_its_kernel(framework: str, call: float, backward: float) -> None:
    """16-bit logits and their gradient; where the model casts before the loss is called, it is a plain one."""
    fields = {"train__framework": framework, "train__loss_kernel": "compiled", "train__stage": "pt", "train__compile": True}
    assert (per_logit("loss_call", **fields), per_logit("loss_backward", **fields)) == (call, backward)


def test_a_head_in_chunks_sums_its_gradient() -> None:
    """Backward of a trained head that was applied to each chunk adds each chunk's gradient to the sum, while the others' logits wait."""
    step = {"train__framework": "torchtune", "train__loss_kernel": "chunked", "train__compile": True}
    found = first(book(JOB, **step)).moment("loss_backward")
    assert found is not None
    assert found.only("head_gradients").bytes == 2 * 2 * V * H
    assert found.only("logits_gradient").bytes == 2 * (TOKENS - TOKENS // 8) * V
    adapters = {"train__finetuning": "lora", "lora__rank": 8, "lora__targets": "q_proj"}
    frozen = first(book(JOB, **step, **adapters)).moment("loss_backward")
    assert frozen is not None and not frozen.only("head_gradients").bytes


def test_fused_losses_return_logits_in_evaluation() -> None:
    facts = book(JOB, train__loss_kernel="liger", eval__enabled=True, eval__batch_size=2)
    assert logits(facts, "eval", "logits_16", "logits_fp32", "log_softmax") == 10 * TOKENS * V


@for_each(
    "changes, figure, most",
    [
        ({}, 0, 4),
        ({"eval__accumulation_steps": 10}, 0, 40),
        ({"eval__metrics": True}, 4, 4),
        ({"eval__metrics": True, "eval__accumulation_steps": 10}, 40, 40),
        ({"eval__loss_only": True, "eval__metrics": True}, 0, 0),
    ],
)
def test_predictions_that_evaluation_keeps(changes: dict[str, Any], figure: int, most: int) -> None:
    """Without a limit the logits of every step stay: one step's are counted and named so. Without a metric function none need be."""
    found = first(book(JOB, eval__enabled=True, eval__batch_size=2, **changes)).moment("eval")
    assert found is not None
    kept = found.only("eval_kept", "eval_kept_per_step")
    assert (kept.bytes, kept.high) == (figure * TOKENS * V, most * TOKENS * V)


@pytest.mark.parametrize("head", ["classes", "none"])
def test_a_model_without_an_output_head_has_neither_logits_nor_its_weights(head: str) -> None:
    """A classifier's last layer has as many columns as there are classes; the vocabulary's is not there."""
    whole, cut = book(JOB), book(JOB, model__head=head)
    assert logits(whole, "loss_call") and not logits(cut, "loss_call")
    weights = [found.of("weights").bytes for facts in (whole, cut) if (found := first(facts).moment("load"))]
    assert weights[0] - weights[1] == 2 * V * H


def test_a_teacher_is_counted_where_it_is_known() -> None:
    facts = book(JOB, train__stage="gkd", reward="Qwen/Qwen2.5-7B")
    student = first(facts).moment("init")
    assert student is not None and not student.of("extra_models").bytes
    taught = first(facts.changed({"teacher.shape": facts.shape("reward.shape")})).moment("init")
    assert taught is not None and taught.of("extra_models").bytes == 2 * 7615616512


def test_every_entry_is_well_formed() -> None:
    """A block is NAME BYTES with LOW..HIGH round it; every entry says where it was read."""
    for entry in losses()["losses"]:
        assert entry["source"] and entry["name"]
        for name in LISTS:
            for each in map(parse_block, entry.get(name, ())):
                assert each.least <= each.bytes <= each.most, (entry["name"], each)
    with pytest.raises(ValueError, match="not a block"):
        parse_block("logits four")


@pytest.mark.parametrize(
    ("changes", "call", "backward"),
    [({"zero__stage": 2}, 4, 6), ({"train__precision": "pure_bf16"}, 4, 6), ({}, 10, 12)],
)
def test_a_model_that_upcasts_no_logits(changes: dict[str, Any], call: int, backward: int) -> None:
    """Cross entropy in the precision of the first Qwen's logits; autocast computes it in fp32. Rows are one, so that none is copied."""
    facts = book(JOB, model="Qwen/Qwen-7B", train__micro_batch_size=1, **changes)
    found = {moment: logits(facts, moment) / (2048 * 151936) for moment in ("loss_call", "loss_backward")}
    assert found == {"loss_call": pytest.approx(call, rel=0.01), "loss_backward": pytest.approx(backward, rel=0.01)}


def test_presumed_entries_hold_only_where_they_may() -> None:
    """LLaMA-Factory without a release is taken for the older one, whose logits weigh more; with 0.9.4 it is not."""
    asked = LossQuery((("llamafactory", None),), "dpo", "llama", transformers=Version("4.51"))
    old, new = find_loss(asked), find_loss(asked._replace(lineage=(("llamafactory", Version("0.9.4")),)))
    assert (old.name, new.name) == ("LLaMA-Factory before 0.9.4", "LLaMA-Factory from 0.9.4")


def test_a_loss_of_a_framework_is_that_of_those_that_extend_it() -> None:
    """slime, of which no entry speaks, computes Megatron-LM's cross entropy; Unsloth's DPO goes by the release of TRL."""
    transformers = Version("4.51")
    assert find_loss(LossQuery((("slime", None), ("megatron", None)), "sft", transformers=transformers)).name.startswith("Megatron")
    unsloth = LossQuery((("unsloth", Version("2025.3")), ("trl", Version("0.29"))), "dpo", transformers=transformers, converted=True)
    assert find_loss(unsloth).name == "TRL DPO from 0.29, fp32 logits"
    assert find_loss(unsloth._replace(lineage=(("verl", Version("0.29")),))).name == "TRL DPO, fp32 logits"
    assert [named_for(("trl", "other"), name) for name in ("unsloth", "trl", "transformers", "")] == ["trl", "trl", "", ""]


def test_a_loss_of_ones_own_reads_what_the_model_gives() -> None:
    """16-bit logits make 16-bit blocks, whichever model; transformers before 4.46 and autocast make fp32 ones. A function that returns the
    loss alone frees the logits before backward."""
    loop = {"train__framework": "pytorch", "train__precision": "pure_bf16", "train__logits_dtype": "model"}
    own = book(JOB, **loop)
    assert logits(own, "loss_backward") == 8 * TOKENS * V  # log-softmax, its gradient, that of the logits, and those that the loop holds
    assert logits(book(JOB, **loop, train__logits_freed=True), "loss_backward") == 6 * TOKENS * V
    assert logits(own, "loss_call", "log_softmax") == 2 * TOKENS * V
    for other in ({"train__precision": "fp32"}, {"version__transformers": "4.45.0"}, {"train__precision": "bf16"}):
        assert logits(book(JOB, **{**loop, **other}), "loss_call", "log_softmax") in (4 * TOKENS * V, 4 * (TOKENS - ROWS) * V)


def test_a_loss_in_fp32_has_no_16_bit_logits() -> None:
    """logits.float() copies nothing that is fp32 already."""
    assert logits(book(JOB, train__precision="fp32"), "loss_call") == 8 * TOKENS * V
