"""Framework traits: typed, inherited through `extends`, and a name that nobody knows is refused where it stands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from books import GIB, fact

from diagnose import catalogue, rule_files
from diagnose.adapters.schema import framework_tables
from diagnose.budget.model.ledger import Term
from diagnose.budget.moments.role_ledgers import ledgers
from diagnose.facts import FactBook, Value, declared
from diagnose.traits import Critic, Loaded, Traits, misread, traits_of
from diagnose.vet import rule_check

FILES: dict[str, dict[str, Any]] = rule_files.table("frameworks")


def terms(**known: Value) -> dict[str, Term]:
    """Every term of the job's ledgers, by key."""
    book = FactBook(fact(name.replace("__", "."), value) for name, value in known.items())
    return {term.key: term for ledger in ledgers(book) for moment in ledger.moments for term in moment.terms}


def job(framework: str, **more: Value) -> dict[str, Term]:
    """A 7B model that is trained whole on eight cards, two micro batches a step."""
    known: dict[str, Value] = {"train__framework": framework, "train__finetuning": "full", "train__precision": "bf16"}
    known |= {"train__micro_batch_size": 1, "train__gradient_accumulation": 2, "train__max_seq_len": 1024, "parallel__world": 8}
    return terms(**{**known, "model__shape": catalogue.model("Qwen/Qwen2.5-7B-Instruct"), **more})


@pytest.mark.parametrize("framework", ["megatron", "slime"])
def test_what_extends_megatron_has_its_optimizer_and_no_buffer_of_deepspeed(framework: str) -> None:
    made = job(framework, train__stage="sft", zero__stage=1)
    assert not made.keys() & {"step_flat", "step_norm", "reduce_bucket"}
    assert made["gradients"].size.bytes >= 4 * 7.6e9


@pytest.mark.parametrize("framework", ["transformers", "sentence_transformers", "flagembedding"])
def test_what_extends_the_trainer_keeps_whole_gradients_until_the_last_micro_batch(framework: str) -> None:
    made = job(framework, train__stage="sft", fsdp__sharding="full_shard")
    assert made["gradients_whole"].size.bytes / GIB == pytest.approx(2 * 7.6e9 / GIB, rel=0.01)


def test_a_descendant_inherits_what_it_does_not_override() -> None:
    assert traits_of("slime") == traits_of("megatron") != Traits()
    assert traits_of("unsloth").unsynced_gradients  # of transformers, through TRL
    assert traits_of("unsloth").loaded == Loaded(full=2, lora=2)


def test_a_descendant_may_switch_a_trait_off() -> None:
    assert (traits_of("trl").pads_rounds, traits_of("unsloth").pads_rounds) == (True, False)
    assert (traits_of("trl").engine_tokens, traits_of("unsloth").engine_tokens) == (4096, None)


def test_a_span_is_one_of_the_framework_that_says_it() -> None:
    """Unsloth's releases are dates: a span of TRL's read against them would always hold."""
    assert traits_of("unsloth").critic == traits_of("trl").critic == Critic((("version.trl", ">=0.12"),), joint=True, whole=True)


@pytest.mark.parametrize("framework", [None, "", "something-new", "torchrun"])
def test_a_framework_that_says_nothing_does_as_most_do(framework: str | None) -> None:
    assert traits_of(framework) == Traits()


@pytest.mark.parametrize("name", [name for name, raw in FILES.items() if "traits" in raw])
def test_no_trait_repeats_what_is_inherited_or_what_most_do(name: str) -> None:
    """A line that changes nothing would hide which framework the knowledge is about."""
    base = traits_of(FILES[name].get("extends"))
    for trait in FILES[name]["traits"]:
        assert getattr(traits_of(name), trait) != getattr(base, trait), trait


def test_every_release_that_a_trait_asks_for_is_a_fact() -> None:
    spans: list[tuple[str, str]] = []
    for known in map(traits_of, framework_tables.names()):
        spans += [pair for part in (known.critic, known.roundup) if part for pair in part.releases]
        spans += [pair for releases in (known.exempts_embeddings, known.fused_recipes, known.samples_on_card) for pair in releases or ()]
    assert spans
    assert all(declared(name) is not None for name, _ in spans)


@pytest.mark.parametrize(
    ("written", "line", "says"),
    [
        ("traits:\n  on_ray: true\n  casts_traind: true\n", 3, "did you mean casts_trained"),
        ("rank: 1\ntraits: {sharks: true}\n", 2, "sharks"),
        ("traits:\n  on_ray: maybe\n", 2, "on_ray must be of the kind bool"),
        ("traits:\n  galore_rank: true\n", 2, "galore_rank must be of the kind int"),
        ("traits:\n  loaded:\n    full: 2\n", 2, "loaded.lora is missing"),
        ("traits:\n  critic:\n    joint: true\n    hole: true\n", 4, "critic.hole"),
        ("traits:\n  samples_on_card: 0.7\n", 2, "samples_on_card must be of the kind releases"),
        ("traits:\n  samples_on_card: {torch: <2.1}\n", 2, "releases"),
        ("traits: [on_ray]\n", 1, "mapping"),
    ],
)
def test_a_trait_that_does_not_exist_or_has_another_kind_is_refused_at_its_line(tmp_path: Path, written: str, line: int, says: str) -> None:
    (tmp_path / "frameworks").mkdir()
    (tmp_path / "frameworks" / "newcomer.yaml").write_text(written, encoding="utf-8")
    (fault,) = rule_check.check([tmp_path])
    assert fault.file.endswith("newcomer.yaml")
    assert fault.line == line
    assert says in fault.message.en
    assert fault.message.zh != fault.message.en


def test_the_loader_refuses_an_unknown_trait(monkeypatch: pytest.MonkeyPatch) -> None:
    from diagnose import traits

    monkeypatch.setattr(rule_files, "table", lambda _: {"newcomer": {"traits": {"sharks": True}}})
    with pytest.raises(ValueError, match=r"rules/frameworks/newcomer\.yaml: traits\.sharks: unknown"):
        traits._compiled()


def test_null_switches_any_trait_off() -> None:
    assert not list(misread(dict.fromkeys(Traits.__annotations__)))
