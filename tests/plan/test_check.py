"""`check`: does it fit, with which margin, and how far it can go. The frontier is searched, so it is proved by trying the next value."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from checkout import ROOT
from collected import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import SAMPLES
from sweep import examples

from diagnose import check
from diagnose.budget.model.ledger import Ledger
from diagnose.budget.moments import role_ledgers
from diagnose.catalogue import sizes_sold
from diagnose.diagnosis import Diagnosis
from diagnose.facts import FactBook
from diagnose.plan.choose.advice import job_of
from diagnose.plan.outlook.frontier import outlook
from diagnose.plan.outlook.memory_levers import levers
from diagnose.plan.pricing import fit
from diagnose.plan.pricing.growth import FITTING, Track
from diagnose.plan.pricing.reach import Past, furthest
from diagnose.plan.remedies.outlook_values import Reach
from diagnose.surfaces.cli import entry
from diagnose.units import Size

GIB = 2**30
CORPUS = ROOT / "corpus" / "configs"

LORA = """\
model_name_or_path: Qwen/Qwen2.5-7B-Instruct
stage: sft
do_train: true
finetuning_type: lora
template: qwen
cutoff_len: {length}
per_device_train_batch_size: {rows}
gradient_accumulation_steps: 8
bf16: true
flash_attn: fa2
"""


@cache
def lora(rows: int = 4, length: int = 4096, gpu: str | None = "RTX4090-24GB", **more: str) -> Diagnosis:
    return check([LORA.format(rows=rows, length=length)], gpu=gpu, set=more)


def track_of(diagnosis: Diagnosis) -> Track:
    return Track(job_of(FactBook(diagnosis.facts), diagnosis.ledgers, diagnosis.judgement, diagnosis.documents))


def report(diagnosis: Diagnosis, lang: Any = "en") -> Any:
    return json.loads(json.dumps(diagnosis.to_dict(lang)))


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Any:
    """The command in this process: its exit status and standard output."""

    def run(*words: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["oomdoctor", *words])
        with pytest.raises(SystemExit) as left:
            entry.main()
        return int(left.value.code or 0), capfd.readouterr().out

    return run


# -- the search


@given(limit=st.integers(0, 5000), top=st.integers(1, 4000), start=st.integers(1, 5000), power=st.floats(0.3, 3), step=st.booleans())
def test_the_search_finds_the_last_value_that_holds(limit: int, top: int, start: int, power: float, step: bool) -> None:
    """Whatever the shape: growing slowly, fast, or in one jump."""

    def over(n: int) -> Past:
        return (1.0 if n > limit else -1.0,) if step else (n**power - (limit + 0.5) ** power,)

    assert furthest(over, start, top) == min(limit, top)


@given(limit=st.integers(1, 10**6), start=st.integers(1, 10**6), level=st.integers(-(10**6), -1))
def test_the_search_asks_little(limit: int, start: int, level: int) -> None:
    """A frontier is some thousand questions otherwise: each is a ledger. What limits n is found however far below zero it starts, beside
    what grows faster and limits it nowhere: two answers make the lines, two more are the end, and where two lines
    cross at the limit it takes two beside."""
    asked = []

    def over(n: int) -> Past:
        asked.append(n)
        return n - limit - 0.5, 2 * n - 2 * 10**6 - 1, level

    assert furthest(over, start, 10**6) == limit
    assert len(asked) <= 6


def test_what_is_known_is_not_asked_again() -> None:
    asked = []

    def over(n: int) -> Past:
        asked.append(n)
        return (n - 70.5,)

    assert furthest(over, 8, 1000, {8: (-62.5,), 70: (-0.5,), 100: (29.5,)}) == 70
    assert asked == [71]


# -- the frontier


@settings(deadline=None, max_examples=examples(25))
@given(
    rows=st.sampled_from([1, 2, 3, 8]),
    length=st.sampled_from([512, 1000, 4096]),
    gpu=st.sampled_from(["T4-16GB", "RTX4090-24GB", "A100-80GB"]),
)
def test_the_frontier_fits_and_the_next_value_does_not(rows: int, length: int, gpu: str) -> None:
    """Of every way: the last value surely fits, the next does not; the same for what is only likely."""
    diagnosis = lora(rows, length, gpu)
    track = track_of(diagnosis)
    assert diagnosis.outlook is not None
    for way in diagnosis.outlook.ways:
        for reach in (way.batch, way.length):
            assert reach is not None
            assert reach.sure <= reach.likely
            proved(track, dict(way.knobs), reach)


def proved(track: Track, changes: dict[str, Any], reach: Reach) -> None:
    def at(value: int) -> str:
        return track.fits(track.at(changes, reach.knob, value))

    for value, words in ((reach.sure, ("yes",)), (reach.likely, FITTING)):
        assert not value or at(value) in words
        ahead = value + reach.least - value % reach.least
        if not reach.limit or value < reach.likely:
            assert at(ahead) not in words, f"{reach.knob} could be {ahead}"


@settings(deadline=None, max_examples=examples(40))
@given(small=st.integers(8, 200), more=st.integers(0, 100), rows=st.sampled_from([1, 4]), lever=st.integers(0, 20))
def test_a_larger_card_never_shrinks_the_frontier(small: int, more: int, rows: int, lever: int) -> None:
    """With any one switch on."""
    track = track_of(lora(rows, 2048, "A100-80GB"))
    switches = levers(track.job)
    changes: dict[str, Any] = switches[lever].changes if lever < len(switches) else {}
    less = {**changes, "hardware.capacity": Size.exactly(small * GIB)}
    larger = {**changes, "hardware.capacity": Size.exactly((small + more) * GIB)}
    for measure in (track.batch, track.length):
        one, other = measure(less), measure(larger)
        assert one is not None
        assert other is not None
        assert one.likely <= other.likely
        assert track.surely(less, one).sure <= track.surely(larger, other).sure


def test_the_ways_are_remedies_of_this_framework_that_go_further() -> None:
    """No second vocabulary: ids of remedies with edits in the user's own file; each goes further than the job as it is."""
    seen = lora().outlook
    assert seen is not None
    base, *others = seen.ways
    assert base.remedies == ()
    assert others
    assert any("liger_kernel" in way.remedies for way in others)
    for way in others:
        assert way.edits
        assert base.batch is not None
        assert way.batch is not None
        assert base.length is not None
        assert way.length is not None
        assert way.batch.likely > base.batch.likely or way.length.likely > base.length.likely


def test_a_remedy_that_is_in_effect_or_contraindicated_is_no_way() -> None:
    """Flash attention is on already; a V100 cannot run it at all."""
    text = LORA.format(rows=4, length=4096).replace("flash_attn: fa2\n", "")
    volta = check([text], gpu="V100-32GB").outlook
    assert volta is not None
    named = {remedy for way in (*volta.ways, *(lora().outlook or volta).ways) for remedy in way.remedies}
    assert "flash_attention" not in named


def test_costly_remedies_that_the_job_could_do_without_are_named() -> None:
    seen = lora(1, 512, "A100-80GB").outlook
    assert seen is not None
    assert ("gradient_checkpointing",) in [way.without for way in seen.ways]
    assert all(way.fits in FITTING for way in seen.ways)


def test_no_row_is_longer_than_the_model_without_saying_so() -> None:
    seen = lora(1, 512, "B300-288GB").outlook
    assert seen is not None
    length = max((way.length for way in seen.ways if way.length is not None), key=lambda found: found.likely)
    shape = FactBook(lora(1, 512, "B300-288GB").facts).shape("model.shape")
    assert shape is not None
    assert (length.likely, length.limit) == (shape.max_len, "model")
    odd = lora(1, 2 * shape.max_len, "A100-80GB")
    assert "longer_than_model" in [notice.code for notice in odd.notices]


def test_without_a_card_the_frontier_says_which_card_it_takes() -> None:
    """Less need never takes a larger card; the card that is named holds the job."""
    diagnosis = lora(4, 4096, None)
    assert diagnosis.exit_status == 4
    assert diagnosis.outlook is not None
    ways = [(way.need.bytes, way.card) for way in diagnosis.outlook.ways if way.need and way.card]
    assert len(ways) > 1
    assert [card for _, card in sorted(ways)] == sorted(card for _, card in ways)
    track, sold = track_of(diagnosis), sizes_sold()
    for way in diagnosis.outlook.ways:
        fitting = [gb for gb, size in sold if track.fits({**dict(way.knobs), "hardware.capacity": size}) in FITTING]
        assert way.card == fitting[0]
        assert fitting == [gb for gb, _ in sold if gb >= fitting[0]]


@pytest.mark.parametrize(
    ("config", "most"), [("trl/reward-model.sh", 125), ("swift/grpo-colocated.sh", 95), ("openrlhf/ppo-with-a-critic-over-ray.sh", 50)]
)
def test_a_frontier_draws_few_ledgers(config: str, most: int) -> None:
    """Ledgers are what a frontier costs: some ten for each way that is measured, and one for each switch."""
    seen = check([CORPUS / config], gpu="A100-80GB", frontier=False)
    asked = []

    def reprice(book: FactBook) -> tuple[Ledger, ...]:
        asked.append(book)
        return role_ledgers.ledgers(book)

    assert outlook(job_of(FactBook(seen.facts), seen.ledgers, seen.judgement, seen.documents, reprice=reprice)).ways
    assert len(asked) <= most


# -- the verdict


def test_the_margin_is_what_can_be_had_less_what_is_needed() -> None:
    told = report(lora())["check"]
    role = told["roles"][0]
    assert role["margin"]["low"] == role["usable"]["low"] - role["need"]["high"]
    assert role["margin"]["high"] == role["usable"]["high"] - role["need"]["low"]
    assert role["margin"]["high"] < 0
    assert (told["fits"], told["card"], role["peak_moment"]) == ("no", "RTX4090-24GB", "loss_backward")
    assert told["reserved"]["bytes"] == told["capacity"]["bytes"] - told["usable"]["bytes"]


def test_every_moment_counts_not_only_the_largest() -> None:
    """A smaller moment that is known less well may reach above the card."""
    ledger = lora(1, 512, "A100-80GB").ledgers[0]
    assert fit.sits(ledger) == "yes"
    vague = next(moment for moment in ledger.moments if moment.name == "init")
    wide = replace(vague, terms=(*vague.terms, vague.terms[0]._replace(size=Size(0, 99 * GIB, 0))))
    assert fit.sits(replace(ledger, moments=(*ledger.moments, wide))) == "likely"


def test_an_unknown_fact_that_makes_it_wide_is_asked_for() -> None:
    """With the option that narrows it."""
    diagnosis = check([CORPUS / "trl" / "reward-model.sh"], gpu="RTX3090-24GB")
    assert "train.load_dtype" in [question.fact for question in diagnosis.outcome.questions]
    told = check([CORPUS / "trl" / "reward-model.sh"], gpu="RTX3090-24GB", set={"train.load_dtype": "bf16"})
    assert "train.load_dtype" not in [question.fact for question in told.outcome.questions]
    before, after = diagnosis.ledgers[0].peak, told.ledgers[0].peak
    assert before is not None
    assert after is not None
    assert after.total.high - after.total.low < before.total.high - before.total.low


@pytest.mark.parametrize(("gpu", "status"), [("RTX4090-24GB", 1), ("H200-141GB", 0), (None, 4)])
def test_the_exit_status_says_it(command: Any, tmp_path: Path, gpu: str | None, status: int) -> None:
    config = tmp_path / "lora.yaml"
    config.write_text(LORA.format(rows=4, length=4096))
    assert command("check", str(config), *(["--gpu", gpu] if gpu else []))[0] == status


@for_each("lang", ["en", "zh"])
@for_each("gpu", ["RTX4090-24GB", "A100-80GB", None])
def test_the_answer_fits_eighty_columns_and_markdown_has_the_table(gpu: str | None, lang: Any) -> None:
    from diagnose.render.formats import RENDERERS
    from diagnose.render.parts.view import View
    from diagnose.render.parts.wrapping import cells

    diagnosis = lora(gpu=gpu)
    text = RENDERERS["text"](diagnosis, lang, View(verbose=True))
    assert max(map(cells, text.splitlines())) <= 80
    assert diagnosis.outlook is not None
    markdown = diagnosis.to_markdown(lang)
    assert len([line for line in markdown.splitlines() if line.startswith("| ")]) > len(diagnosis.outlook.ways)


def test_every_role_is_judged_and_the_unknown_one_is_named() -> None:
    told = report(check([CORPUS / "openrlhf" / "ppo-with-a-critic-over-ray.sh"], gpu="H100-80GB"))["check"]
    assert {role["role"] for role in told["roles"]} == {"actor", "critic", "reward", "reference", "engine"}
    assert told["uncounted"] == ["reward"]
    assert told["fits"] == "unknown"
    assert told["frontier"][0]["batch"]["likely"] > 0


def test_the_typed_report_holds_it() -> None:
    from diagnose.render.data.pydantic_report import Report

    for diagnosis in (lora(), lora(gpu=None), check([LORA.format(rows=1, length=512)], set={"parallel.tensor": "3"})):
        assert Report.of(diagnosis).to_dict() == diagnosis.to_dict()
    assert "check" not in SAMPLES["dpo_logits"]().to_dict()


# -- bad input


@for_each(
    "changes, said",
    [
        ({"parallel.tensor": "16", "parallel.world": "8"}, "cannot be divided"),
        ({"parallel.tensor": "3"}, "28 attention heads"),
        ({"parallel.pipeline": "99"}, "28 layers"),
        ({"parallel.pipeline": "4", "parallel.virtual": "9", "parallel.world": "8"}, "36 chunks"),
        ({"parallel.world": "8", "zero.stage": "3", "zero.hpz_partition": "64"}, "groups of 64 do not divide the 8 ranks"),
        ({"parallel.world": "8", "zero.stage": "3", "zero.mics_shard": "3"}, "groups of 3 do not divide the 8 ranks"),
        ({"parallel.world": "8", "fsdp.sharding": "full_shard", "fsdp.shard_degree": "3"}, "groups of 3 do not divide the 8 ranks"),
        ({"train.micro_batch_size": "0"}, "must be at least 1"),
        ({"train.finetuning": "lora", "lora.rank": "0"}, "LoRA rank is 0"),
        ({"zero.stage": "9"}, "stages 0 to 3"),
    ],
)
def test_settings_that_cannot_be_meant_are_said_and_nothing_is_known_to_fit(changes: dict[str, str], said: str) -> None:
    diagnosis = lora(1, 512, "A100-80GB", **changes)
    assert said in diagnosis.verdict.headline.en
    assert diagnosis.exit_status == 4
    assert diagnosis.outlook is not None
    assert diagnosis.outlook.ways == ()


@pytest.mark.parametrize("length", [10**9, 10**15])
def test_an_absurd_length_has_an_answer(length: int) -> None:
    diagnosis = lora(2, length, "A100-80GB")
    assert diagnosis.exit_status == 1
    assert diagnosis.outlook is not None
    assert diagnosis.outlook.ways[0].length is not None
    assert 0 < diagnosis.outlook.ways[0].length.likely < 32768


def test_an_unknown_model_leaves_what_is_known_and_asks(command: Any, tmp_path: Path) -> None:
    config = tmp_path / "x.yaml"
    config.write_text(LORA.format(rows=1, length=512).replace("Qwen/Qwen2.5-7B-Instruct", "nobody/Unheard-Of-9B"))
    status, out = command("check", str(config), "--gpu", "A100-80GB", "--format", "json")
    told = json.loads(out)
    assert status == 4
    assert told["check"]["capacity"]["bytes"] > 79 * GIB
    assert "model.shape" in [question["fact"] for question in told["questions"]]


def test_an_ambiguous_card_is_named() -> None:
    assert "several_cards" in [notice.code for notice in lora(gpu="A100").notices]


@settings(deadline=None, max_examples=examples(30))
@given(
    st.dictionaries(
        st.sampled_from(
            [
                "train.micro_batch_size",
                "train.max_seq_len",
                "parallel.tensor",
                "parallel.pipeline",
                "parallel.world",
                "lora.rank",
                "zero.stage",
            ]
        ),
        st.integers(0, 10**15),
        max_size=5,
    )
)
def test_no_figures_make_it_raise(values: dict[str, int]) -> None:
    """And the report stays one of the contract."""
    diagnosis = check([LORA.format(rows=1, length=512)], gpu="A100-80GB", set={name: str(value) for name, value in values.items()})
    assert diagnosis.exit_status in (0, 1, 4)
    report(diagnosis)
    diagnosis.to_markdown("zh")


def test_a_dial_is_turned_to_what_fits_and_says_where() -> None:
    """A share that the engine takes has no value of its own: the table names the one that makes room, and only where room is missing."""
    config = CORPUS / "verl" / "grpo-with-fsdp-offload.sh"
    dials = [dict(way.dials) for way in (check([config], gpu="H100-80GB").outlook or lora().outlook).ways]  # type: ignore[union-attr]
    assert any("lower_gpu_memory_utilization" in each for each in dials)
    roomy = check([config], gpu="H200-141GB")
    assert roomy.exit_status == 0
    assert roomy.outlook is not None
    assert all(not way.dials for way in roomy.outlook.ways)


@pytest.mark.parametrize("path", ["verl/grpo-with-fsdp-offload.sh", "openrlhf/ppo-with-a-critic-over-ray.sh"])
def test_an_engine_is_said_to_set_no_limit_wherever_it_runs(path: str) -> None:
    """verl's shares the cards of the policy, OpenRLHF's has its own."""
    from diagnose.render.formats import RENDERERS
    from diagnose.render.parts.view import View

    text = RENDERERS["text"](check([CORPUS / path], gpu="H100-80GB"), "en", View())
    said = " ".join(text.split())
    assert "rollout engine does not limit the batch: it takes the same share of its card" in said
    assert "its own cards" not in said


def test_the_frontier_asks_for_few_ledgers() -> None:
    """Two hundred milliseconds are some hundreds of ledgers."""
    for path in ("swift/grpo-colocated.sh", "openrlhf/kto-with-lora.sh", "trl/reward-model.sh"):
        diagnosis = check([CORPUS / path], gpu="H100-80GB", frontier=False)
        job = job_of(FactBook(diagnosis.facts), diagnosis.ledgers, diagnosis.judgement, diagnosis.documents)
        asked: list[FactBook] = []

        def reprice(book: FactBook, asked: list[FactBook] = asked) -> tuple[Ledger, ...]:
            asked.append(book)
            return role_ledgers.ledgers(book)

        job.reprice = reprice
        assert outlook(job).ways
        assert len(asked) < 300
