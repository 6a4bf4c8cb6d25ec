"""Facts that exist for the sake of rules: of settings that nobody chose, of settings that did not hold, of what waits."""

from __future__ import annotations

import pytest
from books import GIB, fact
from collected import for_each

from diagnose import catalogue
from diagnose.adapters.python.python_file import Reader
from diagnose.adapters.schema.framework_tables import table
from diagnose.adapters.translate.framework_defaults import Setting, attention_default, possible_defaults
from diagnose.budget.derived.derived_facts import derive_facts
from diagnose.budget.derived.setting_doubts import setting_facts
from diagnose.budget.moments.role_ledgers import ledgers
from diagnose.decide.verdict_wording import fill
from diagnose.facts import FactBook, Value
from diagnose.release_spans import ReleaseSpan
from diagnose.units import Size, Version


def book(**known: Value) -> FactBook:
    return FactBook(fact(name.replace("__", "."), value) for name, value in known.items())


def said(known: FactBook) -> dict[str, Value]:
    return {each.name: each.value for each in derive_facts(known, ledgers(known), ())}


def fsdp(**more: Value) -> FactBook:
    """A full fine-tuning of a 7B model under FSDP on eight cards, without a length limit."""
    shape = catalogue.model("Qwen/Qwen2.5-7B-Instruct")
    known: dict[str, Value] = {
        "train.framework": "transformers",
        "train.stage": "sft",
        "train.finetuning": "full",
        "train.precision": "bf16",
    }
    known |= {"train.micro_batch_size": 1, "parallel.world": 8, "model.shape": shape, "fsdp.sharding": "full_shard", "fsdp.version": 1}
    return FactBook(fact(name, value) for name, value in (known | {name.replace("__", "."): value for name, value in more.items()}).items())


@for_each(
    "framework, release, eager",
    [
        ("openrlhf", None, True),
        ("openrlhf", "0.5.4", True),
        ("openrlhf", "0.9.0", False),
        ("llamafactory", None, True),
        ("llamafactory", "0.6.2", True),
        ("llamafactory", "0.9.2", False),
        ("torchtune", None, False),
    ],
)
def test_attention_that_nobody_chose_may_be_eager_in_old_releases(framework: str, release: str | None, eager: bool) -> None:
    """A default that changed between releases is known only with the release; without one both are possible."""
    span = ReleaseSpan(Version(release), Version(release)) if release else ReleaseSpan()
    setting = Setting(FactBook(), {f"version.{framework}": span})
    told = [each.value for each in attention_default(table(framework), setting)]
    assert told in ([eager], [] if not eager else [eager])


def test_all_possible_defaults_are_named() -> None:
    """Until a release is known, the older default and the newer one both stand."""
    assert set(possible_defaults(table("openrlhf"), "model.attention", Setting(FactBook(), {}))) == {"eager", "flash_attention_2"}


def test_a_setting_that_the_log_contradicts_is_told_where_memory_depends_on_it() -> None:
    """That another script ran is no matter of memory; that another batch size did is."""
    script = {each.name: each.value for each in setting_facts(book(config__disagreement="train.entry"))}
    batch = {
        each.name: each.value for each in setting_facts(book(config__disagreement="train.micro_batch_size", train__micro_batch_size=8))
    }
    assert script == {"config.overridden": False}
    assert batch == {"config.overridden": True, "config.overridden_knob": "train.micro_batch_size", "config.overridden_value": "8"}


def test_gradients_wait_whole_while_micro_batches_accumulate() -> None:
    """7.62e9 gradients of two bytes at least; with one micro batch per step none waits."""
    waiting = said(fsdp(train__gradient_accumulation=8))["ledger.gradients_whole"]
    assert isinstance(waiting, Size)
    assert waiting.high >= 14 * GIB
    none = said(fsdp(train__gradient_accumulation=1)).get("ledger.gradients_whole")
    assert none is None or (isinstance(none, Size) and none.bytes == 0)
    alone = said(fsdp(train__gradient_accumulation=8, parallel__world=1)).get("ledger.gradients_whole")
    assert alone is None or (isinstance(alone, Size) and alone.bytes == 0)


@pytest.mark.parametrize(
    ("method", "base", "inside"),
    [("__init__", "L.LightningModule", True), ("configure_model", "L.LightningModule", False), ("__init__", "Dataset", None)],
)
def test_where_a_lightning_module_builds_its_model(method: str, base: str, inside: bool | None) -> None:
    """What __init__ builds is whole in every process; what configure_model builds is sharded from the start."""
    load = "self.m = AutoModel.from_pretrained('a/b')"
    text = f"from transformers import AutoModel\nclass A({base}):\n    def {method}(self):\n        {load}\n"
    assert Reader(text).read(frozenset()).model_in_init is inside


def test_a_setting_is_called_by_its_name_not_by_its_id() -> None:
    """A person does not know train.load_dtype."""
    assert fill("{ledger.contradicts}", lambda name: "train.load_dtype", "en") == "precision in which the weights are loaded"
    assert fill("{ledger.contradicts}", lambda name: "train.load_dtype", "zh") == "加载权重时的精度"
