"""What a remedy is called, and in whose words its price is told: caveats, servers, the setting that a cause says to put right."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from cases import diagnosed
from collected import for_each
from workshop import book

from diagnose.decide.verdict import Judgement
from diagnose.pipeline import explain
from diagnose.plan.choose.evaluation import belied
from diagnose.plan.edits.sentences import title_of
from diagnose.plan.pricing import serving_price_words
from diagnose.plan.pricing.candidate_values import value_for
from diagnose.plan.pricing.context import Job
from diagnose.plan.pricing.saving import Saving, beyond
from diagnose.plan.remedies import remedy_rules
from diagnose.render.formats import RENDERERS
from diagnose.render.parts.view import PLAIN
from diagnose.units import Size

MESSAGE = (
    "RuntimeError: CUDA out of memory. Tried to allocate 58.00 MiB (GPU 0; 8.00 GiB total capacity; 6.74 GiB already allocated; "
    "0 bytes free)\n"
)
FLASH = next(rule for rule in remedy_rules.rules() if rule.id == "flash-attention")


def job(**facts: str) -> Job:
    return Job(book(**facts), (), Judgement((), (), ()), (), lambda _: (), lambda *_: None)


@pytest.mark.parametrize(("card", "said"), [({}, True), ({"hardware__fa2": "enabled"}, False), ({"hardware__fa2": "disabled"}, True)])
def test_a_caveat_is_said_unless_it_is_known_not_to_hold(card: dict[str, str], said: bool) -> None:
    title = title_of(FLASH, job(**card))
    assert ("8.0" in title.en) is said and ("8.0" in title.zh) is said


def test_a_card_that_nobody_names_is_asked_for_where_a_remedy_hangs_on_it() -> None:
    asked = {question.fact: question for question in diagnosed("four-contexts-on-card-0").outcome.questions}
    assert asked["hardware.gpu"].set == "--gpu NAME"


def test_a_server_is_priced_in_answers_and_throughput() -> None:
    """Nothing is trained, so no remedy speaks of training results; what is refused or slower is said instead."""
    remedies = {remedy.id: remedy for remedy in diagnosed("no-room-for-one-sequence").outcome.remedies}
    told = remedies["lower_max_model_len"].price.wording
    assert told is not None and "refused" in told.en and "拒绝" in told.zh
    text = (
        RENDERERS["text"](diagnosed("no-room-for-one-sequence"), "en", PLAIN),
        RENDERERS["text"](diagnosed("no-room-for-one-sequence"), "zh", PLAIN),
    )
    assert "results" not in text[0] and "训练结果" not in text[1]


@for_each(
    "facts, serves",
    [
        ({"log__role": "engine"}, True),
        ({"log__family": "vllm_kv", "train__framework": "vllm"}, True),
        ({"log__family": "vllm_kv", "train__framework": "trl"}, False),
        ({"log__role": "engine", "rollout__placement": "colocated"}, False),
        ({"log__role": "engine", "train__stage": "grpo"}, False),
        ({"log__family": "torch_cuda"}, False),
    ],
)
def test_an_engine_beside_a_trainer_is_no_server(facts: dict[str, str], serves: bool) -> None:
    assert serving_price_words.serves(job(**facts)) is serves


def test_the_engine_itself_says_what_would_fit() -> None:
    rule = next(rule for rule in remedy_rules.rules() if rule.id == "shorter-context")
    known = book(rollout__max_model_len="131072", rollout__fitting_len="81920")
    assert value_for("rollout.max_model_len", rule.to.values[0], known) == 81920
    assert value_for("rollout.max_model_len", rule.to.values[0], book(rollout__max_model_len="131072")) is None


def test_a_list_gets_a_word_more_once() -> None:
    held = book(fsdp__wrap="LlamaDecoderLayer")
    assert value_for("fsdp.wrap", "+Embedding", held) == "LlamaDecoderLayer,Embedding"
    assert value_for("fsdp.wrap", "+Embedding", book(fsdp__wrap="Embedding, LlamaDecoderLayer")) == "Embedding, LlamaDecoderLayer"
    assert value_for("fsdp.wrap", "+Embedding", book()) is None


@for_each(
    "case, english, chinese",
    [
        ("a-variable-set-once-cuda-is-in-use", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"),
        ("a-limit-of-metal-that-was-switched-off", "PYTORCH_MPS_HIGH_WATERMARK_RATIO", "PYTORCH_MPS_HIGH_WATERMARK_RATIO"),
        ("the-log-shows-another-batch", "micro batch size", "micro batch 大小"),
        ("fp32-matrices-of-a-16-bit-run", "torch_dtype", "torch_dtype"),
    ],
)
def test_a_setting_to_put_right_is_named(case: str, english: str, chinese: str) -> None:
    why = next(remedy.why for remedy in diagnosed(case).outcome.remedies if remedy.rule == "put-the-key-right")
    assert english in why.en and chinese in why.zh


def test_windows_and_a_build_without_it_are_not_told_expandable_segments(tmp_path: Path) -> None:
    log = (
        'File "{place}", line 1, in forward\n{said}'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.64 GiB. GPU 0 has a total capacity of 23.99 GiB of which 1.20 GiB"
        " is free. Of the allocated memory 13.00 GiB is allocated by PyTorch, and 9.10 GiB is reserved by PyTorch but unallocated.\n"
    )
    linux, windows = "/opt/lib/python3.11/site-packages/torch/nn/f.py", "C:\\Python311\\Lib\\site-packages\\torch\\nn\\f.py"
    refused = "UserWarning: expandable_segments not supported on this platform\n"
    for place, said, offered in ((linux, "", True), (windows, "", False), (linux, refused, False)):
        outcome = explain(log.format(place=place, said=said)).outcome
        assert ("expandable_segments" in [remedy.id for remedy in outcome.remedies]) is offered
        assert ("expandable_segments" in [entry.id for entry in outcome.rejected]) is not offered


def test_a_remedy_without_an_edit_says_which_key_it_is() -> None:
    """Where the framework is known its own key, else as an example the one of transformers."""
    known = next(each for each in diagnosed("a-model-built-before-lightning-shards").outcome.remedies if each.id == "lower_micro_batch")
    assert not known.edits and known.command is not None
    assert "in Lightning" in known.command.en and "Lightning 的" in known.command.zh
    frame = 'File "/opt/site-packages/transformers/trainer.py", line 2237, in training_step\n'
    seen = next(each for each in explain(f"{frame}{MESSAGE}").outcome.remedies if "Halve the batch" in each.title.en)
    assert seen.command is not None
    assert "for instance per_device_train_batch_size" in seen.command.en and "例如" in seen.command.zh
    full = "CUDA out of memory. Tried to allocate 560.00 MiB. GPU 0 has a total capacity of 47.41 GiB of which 370.38 MiB is free.\n"
    page = f"# NeMo-RL is out of memory\n\n```\nuv run examples/run_grpo_math.py --config=grpo.yaml\n{full}```\n"
    lowered = next(each for each in explain(page).outcome.remedies if each.id == "lower_seq_len")
    assert lowered.command is not None and "in NeMo-RL" in lowered.command.en  # though its rule has general words
    assert "per_device_train_batch_size" not in explain(MESSAGE).to_markdown()


def test_where_no_framework_is_known_a_question_names_the_key_of_the_commonest() -> None:
    asked = next(each for each in diagnosed("a-bare-message-and-six-gigabytes").outcome.questions if each.fact == "train.micro_batch_size")
    assert "for instance per_device_train_batch_size" in asked.how.en and "例如 transformers" in asked.how.zh


def test_no_more_is_said_to_be_saved_than_the_card_holds() -> None:
    """Rows at the limit may be estimated at several cards; of such a saving only that it is more than enough can be meant."""
    held = book(log__capacity="79.14 GiB")
    assert [beyond(Size.exactly(gib * 2**30), held) for gib in (290, 61)] == [True, False]


def test_a_saving_that_belies_its_cause_is_not_told() -> None:
    """The cause presumes that it failed in the loss; the ledger, which does not know, finds its peak elsewhere and would save little."""
    little = Saving(Size.exactly(2**30), "loss_call")
    for outcome, saving, told in (("likely", little, False), ("fires", little, True), ("likely", Saving(Size.exactly(2**30)), True)):
        cause = SimpleNamespace(outcome=outcome, accounts_for=Size.exactly(9 * 2**30))
        job = SimpleNamespace(calls={"chunked_loss": SimpleNamespace(cause=cause)})
        assert belied(SimpleNamespace(remedy="chunked_loss"), job, saving) is not told  # type: ignore[arg-type]
