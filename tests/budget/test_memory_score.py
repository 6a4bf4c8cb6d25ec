"""The script that scores the ledger against measured rows: reading of rows, refusals, statistics, output."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from collected import for_each
from hypothesis import given
from hypothesis import strategies as st
from memory import score, tally
from memory.limits import limit
from memory.predict import GIB, Prediction, predict
from memory.rows import Refused, as_its_source_says, model_of, read
from memory.tally import Scored, quantile
from memory.words import FIRST_UPDATE

ROW: dict[str, Any] = {
    "id": "invented-001",
    "quality": "A",
    "kind": "full",
    "compare": "allocated",
    "lengths": "exact",
    "measured_gib": 20.0,
    "model_id": "Qwen/Qwen2.5-0.5B",
    "software": {"framework": "ms-swift", "transformers": "4.51.0"},
    "knobs": {
        "train.stage": "sft",
        "train.finetuning": "full",
        "train.micro_batch_size": 1,
        "train.max_seq_len": 1024,
        "train.precision": "bf16_autocast",
        "train.optimizer": "adam",
        "train.gradient_checkpointing": "full",
        "train.loss_kernel": "eager",
        "model.attention": "flash",
        "model.quantization": "none",
        "fsdp.sharding": "none",
        "parallel.world": 1,
    },
    "facts": {"weights_dtype": "bf16", "engine": "none"},
}


def row(**changes: Any) -> dict[str, Any]:
    """The invented row with other knobs (by dotted name), facts or fields; None takes one away."""
    made: dict[str, Any] = json.loads(json.dumps(ROW))
    for name, value in changes.items():
        where = made["knobs"] if "__" in name else made["facts"] if name.startswith("fact_") else made
        key = name.replace("__", ".").removeprefix("fact_")
        if value is None:
            where.pop(key, None)
        else:
            where[key] = value
    return made


def refusal(entry: dict[str, Any]) -> str:
    return predict(entry).refused or ""


def test_words_of_the_row_become_words_of_the_program() -> None:
    """A word that is passed on untranslated would be read as something else, silently."""
    book = read(row()).books[0]
    assert book.word("train.precision") == "bf16"
    assert book.word("train.load_dtype") == "bf16"
    assert book.word("train.optimizer") == "adamw"
    assert book.word("train.gradient_checkpointing") == "enabled"
    assert book.word("train.loss_kernel") == "none"
    assert book.word("model.attention") == "flash_attention_2"
    assert book.word("train.framework") == "swift"
    assert book.count("train.max_seq_len") == 1024


def test_counters_hold_one_another() -> None:
    """What torch reserves is more than it allocated, what the card has in use more than both."""
    sizes = [predict(row(compare=counter)).bytes for counter in ("allocated", "reserved", "device")]
    assert sizes[0] < sizes[1] < sizes[2]


def test_a_sharded_row_has_communicators() -> None:
    one = predict(row(compare="device", kind="sharded", parallel__world=8, zero__stage=2))
    reserved = predict(row(compare="reserved", kind="sharded", parallel__world=8, zero__stage=2))
    assert one.bytes - reserved.bytes > 0.8 * GIB


def test_targets_of_fused_linears_are_understood() -> None:
    """A name that is not understood would put adapters on every linear."""
    entry = row(kind="lora", train__finetuning="lora", lora__rank=8, lora__targets=["c_attn", "attn.c_proj", "w1", "w2"])
    assert read(entry).books[0].word("lora.targets") == "qkv_proj,o_proj,up_proj,gate_proj"


@pytest.mark.parametrize(
    ("framework", "adapter", "knob", "word"),
    [
        ("litgpt", "adapter_v2", "train.finetuning", "llama_adapter_v2"),
        ("ms-swift", "llamapro", "train.finetuning", "llama_pro"),
        ("ms-swift", "dora", "lora.kind", "dora"),
    ],
)
def test_a_method_that_the_row_calls_an_adapter(framework: str, adapter: str, knob: str, word: str) -> None:
    way = "lora" if knob == "lora.kind" else None
    book = read(row(train__finetuning=way, software={"framework": framework}, fact_adapter=adapter)).books[0]
    assert book.word(knob) == word


@for_each(
    "entry, reason",
    [
        (row(fact_adapter="bone"), "bone"),
        (row(train__optimizer="never_heard_of"), "never_heard_of"),
        (row(model__quantization="aqlm2"), "aqlm2"),
        (row(fact_engine="an_engine"), "an_engine"),
        (row(model_id=None), "dimensions are not given"),
        (row(unknown=["train.max_seq_len"], train__max_seq_len=None), "train.max_seq_len"),
        (row(train__micro_batch_size="many"), "train.micro_batch_size"),
        (row(kind="op", model_dims={"op": "fft"}), "fft"),
        ({"id": "empty"}, "dimensions are not given"),
        (row(knobs=["a list"]), "not a mapping: knobs"),
    ],
)
def test_what_cannot_be_modelled_is_refused_with_its_reason(entry: dict[str, Any], reason: str) -> None:
    assert reason in refusal(entry)


@pytest.mark.parametrize("value", ["bf16", ["bf16", "fp32"]])
def test_settings_without_a_knob_are_named(value: Any) -> None:
    """What a prediction leaves out must not be silent."""
    assert "modules_to_save_dtype" in predict(row(fact_modules_to_save_dtype=value)).left_out


def test_unknown_knobs_widen_the_range() -> None:
    """The figure is that of the likeliest value; the range holds all of them."""
    entry = row(unknown=["train.gradient_checkpointing"], train__gradient_checkpointing=None)
    both = [predict(row(train__gradient_checkpointing=word)) for word in ("full", "none")]
    made = predict(entry)
    assert made.readings == 2
    assert made.bytes == both[0].bytes
    assert (made.low, made.high) == (min(each.low for each in both), max(each.high for each in both))


def test_layers_over_two_cards_are_half_of_them_on_each() -> None:
    spread = predict(row(fact_engine="device_map", fact_devices=2))
    assert 0.4 < spread.bytes / predict(row()).bytes < 0.9


def test_a_release_that_nobody_names_widens_the_range() -> None:
    """What the loss keeps differs with the release of transformers; swift 2 settles it."""
    open_ends = read(row(software={}))
    settled = read(row(software={"framework": "ms-swift", "framework_version": "2"}))
    assert len(open_ends.books) == 2
    assert [str(book.version("version.transformers")) for book in settled.books] == ["4.44.0"]


def test_dimensions_without_a_name_make_a_model() -> None:
    dims = {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 4, "num_attention_heads": 8, "vocab_size": 1000}
    assert predict(row(model_id=None, model_dims=dims)).refused is None
    del dims["vocab_size"]
    assert "vocab_size" in refusal(row(model_id=None, model_dims=dims))


def test_cross_entropy_alone_is_five_tensors() -> None:
    """Logits, log-softmax, its gradient, the logits' gradient, and that of the pass before; Liger needs the logits alone."""
    dims = {"op": "cross_entropy", "batch": 2, "seq_len": 1024, "vocab_size": 32000}
    plain = row(kind="op", model_id=None, model_dims=dims, fact_kernel="eager", fact_pass="forward_backward")
    fused = row(kind="op", model_id=None, model_dims=dims, fact_kernel="liger", fact_pass="forward_backward")
    one = 4 * 2 * 1024 * 32000
    assert (predict(plain).bytes, predict(fused).bytes) == (5 * one, one)


OPERATORS: list[tuple[dict[str, Any], dict[str, Any], float]] = [
    # rows x width in fp32: input, gradient of the output, output, new gradient, old gradient
    ({"op": "layer_norm", "rows": 4096, "hidden_size": 1024, "dtype": "fp32"}, {"kernel": "eager"}, 5 * 4 * 4096 * 1024),
    # 40 bytes per element of a 16-bit input with an fp32 weight
    ({"op": "rms_norm", "rows": 2048, "hidden_size": 1024, "dtype": "bf16"}, {"kernel": "eager"}, 40 * 2048 * 1024),
    # outputs, old and new: 6 query and 4 key widths, cosines and sines; one workspace of 8.125 MiB
    (
        {"op": "rope", "seq_len": 2048, "hidden_size": 8192, "num_attention_heads": 32, "num_key_value_heads": 8, "dtype": "bf16"},
        {"kernel": "eager"},
        2 * 2048 * (6 * 8192 + 4 * 2048 + 2 * 256) + 8519680,
    ),
    # seven tensors of the inner width, four of the outer; three matrices and their gradients; two workspaces
    (
        {"op": "swiglu", "tokens": 2048, "hidden_size": 1024, "intermediate_size": 4096, "dtype": "bf16"},
        {"kernel": "eager", "pass": "forward_backward"},
        2 * (2048 * (7 * 4096 + 4 * 1024) + 6 * 1024 * 4096) + 2 * 8519680,
    ),
    (
        {"op": "geglu", "tokens": 2048, "hidden_size": 1024, "intermediate_size": 4096, "dtype": "bf16"},
        {"kernel": "liger", "pass": "forward_backward"},
        2 * (2048 * (4 * 4096 + 4 * 1024) + 7 * 1024 * 4096) + 2 * 8519680,
    ),
    ({"op": "kl_div", "tokens": 1024, "vocab_size": 32000}, {"kernel": "eager"}, 28 * 1024 * 32000),
    ({"op": "jsd", "tokens": 1024, "vocab_size": 32000}, {"kernel": "eager"}, 52 * 1024 * 32000),
    ({"op": "jsd", "tokens": 1024, "vocab_size": 32000}, {"kernel": "liger"}, 24 * 1024 * 32000),
    (
        {"op": "megatron_cross_entropy", "batch": 2, "seq_len": 512, "tensor_parallel": 2, "vocab_size": 32000},
        {"kernel": "megatron_fused"},
        12 * 1024 * 32000 / 2,
    ),
]


@for_each("dims, facts, wanted", OPERATORS)
def test_operators_by_hand(dims: dict[str, Any], facts: dict[str, Any], wanted: float) -> None:
    """Tensors counted one by one, and nothing else."""
    entry = row(kind="op", model_id=None, model_dims=dims) | {"facts": facts, "gpu": "NVIDIA A100-SXM4-80GB"}
    assert predict(entry).bytes == wanted


def test_the_rows_of_a_reduction_are_staged_by_the_card() -> None:
    """Liger's RMSNorm before 0.4 sums a row of fp32 per row: at 1024 columns torch splits the sum into 32 blocks (16 MiB), at 16384 into as
    many as fill 108 multiprocessors, 14 (112 MiB)."""
    for width, staged in ((1024, 16 * 2**20), (16384, 112 * 2**20)):
        dims = {"op": "rms_norm", "rows": 2048, "hidden_size": width, "dtype": "bf16"}
        entry = row(kind="op", model_id=None, model_dims=dims, fact_kernel="liger") | {"gpu": "NVIDIA A100-SXM4-80GB"}
        assert predict(entry).bytes == 10 * 2048 * width + staged


@for_each(
    "dims, kernel, reason",
    [
        ({"op": "rms_norm", "rows": 8, "hidden_size": 64, "dtype": "fp32"}, "eager", "elements of 2 bytes"),
        ({"op": "rms_norm", "rows": 8, "hidden_size": 64, "dtype": "bf16"}, "liger", "not given: m"),
        ({"op": "rms_norm", "rows": 8, "hidden_size": 64, "dtype": "bf16"}, "triton", "kernel triton"),
        ({"op": "jsd", "tokens": 8}, "eager", "not given: V"),
        ({"op": "jsd", "vocab_size": 8}, "eager", "length is not given"),
    ],
)
def test_operators_that_are_refused(dims: dict[str, Any], kernel: str, reason: str) -> None:
    """What a formula is not about, or has no dimension for, is said."""
    assert reason in refusal(row(kind="op", model_id=None, model_dims=dims, fact_kernel=kernel, gpu=None))


@pytest.mark.parametrize(("release", "each"), [("0.7.0", 24), ("0.8.0", 28)])
def test_an_operator_that_changed_has_a_formula_per_release(release: str, each: int) -> None:
    """A gradient that the forward pass made is multiplied in backward where the loss's own is not one."""
    dims = {"op": "jsd", "tokens": 1024, "vocab_size": 32000}
    software = {"framework": "liger-kernel", "framework_version": release}
    assert predict(row(kind="op", model_id=None, model_dims=dims, fact_kernel="liger", software=software)).bytes == each * 1024 * 32000


def test_an_operator_of_another_release_is_refused() -> None:
    dims = {"op": "rms_norm", "rows": 2048, "hidden_size": 1024, "dtype": "bf16"}
    software = {"framework": "liger-kernel", "framework_version": "0.6.0"}
    assert "changed in Liger" in refusal(row(kind="op", model_id=None, model_dims=dims, fact_kernel="liger", software=software))


def test_every_operator_says_where_its_formula_is_from() -> None:
    from memory import operators

    for name, kinds in operators.table()["operators"].items():
        for kernel, found in kinds.items():
            assert all(entry["source"] for entry in (found if isinstance(found, list) else [found])), (name, kernel)
    assert set(operators.table()["same"].values()) <= set(operators.table()["operators"])


def scored(measured: float | None, predicted: float, **fields: Any) -> Scored:
    entry = {"id": "invented-002", "quality": "A", "kind": "full", "measured_gib": measured} | fields
    return Scored(entry, Prediction(0, round(predicted * GIB), 0, "load"))


def test_statistics_by_hand() -> None:
    """Errors of -10, +20 and +50 %: the median is 20, the share below a third; a refused row counts in no error."""
    rows = [scored(10, 9), scored(10, 12), scored(10, 15), Scored({"quality": "A"}, Prediction(refused="why"))]
    found = tally.statistic(rows)
    assert (found.rows, found.modelled, found.refused) == (4, 3, 1)
    assert found.median == pytest.approx(0.2)
    assert found.p90 == pytest.approx(0.44)
    assert found.worst == pytest.approx(0.5)
    assert found.below == pytest.approx(1 / 3)
    assert found.mean == pytest.approx(0.8 / 3)


def test_bounds_are_told_apart() -> None:
    """A limit on the length says nothing about the error."""
    rows = [scored(10, 9), scored(10, 30, lengths="upper_bound"), scored(10, 30, facts={"boundary": True})]
    assert tally.statistic(rows).worst == pytest.approx(0.1)
    assert "2 rows, 0 predicted below" in tally.text(rows)


def test_grade_c_counts_in_its_grade_alone() -> None:
    made = tally.as_json([scored(10, 9), scored(10, 30, quality="C")])
    assert made["overall"]["rows"] == 1
    assert made["by_grade"]["C"]["worst"] == pytest.approx(2.0)
    assert len(made["rows"]) == 2


def test_old_four_bit_rows_are_a_kind_of_their_own() -> None:
    old = {"kind": "qlora", "knobs": {"model.quantization": "nf4"}, "software": {"bitsandbytes": "0.41.1"}}
    new = old | {"software": {"bitsandbytes": "0.43.2"}}
    assert [scored(1, 1, **each).kind for each in (old, new)] == ["qlora_old_bnb", "qlora"]


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=30), st.floats(0, 1))
def test_a_quantile_lies_within(values: list[float], share: float) -> None:
    ordered = sorted(values)
    found = quantile(ordered, share)
    assert found is not None
    assert ordered[0] * (1 - 1e-9) <= found <= ordered[-1] * (1 + 1e-9)


@given(
    st.dictionaries(
        st.sampled_from(["knobs", "facts", "software", "unknown", "kind", "measured_gib", "model_dims"]), st.integers() | st.text()
    )
)
def test_no_row_is_lost(fields: dict[str, Any]) -> None:
    """A row of any form is modelled or refused; it never ends the run."""
    one = Scored(ROW | fields, predict(ROW | fields))
    assert len(tally.as_json([one])["rows"]) == 1
    assert tally.text([one])


def test_files_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence per thing that is no row, and the rows beside it are scored."""
    import yaml

    (tmp_path / "a.yaml").write_text("{")
    (tmp_path / "b.yaml").write_text("a: 1")
    (tmp_path / "c.yaml").write_text(yaml.safe_dump([ROW, "no row"]))
    assert score.main([str(tmp_path), "--json", str(tmp_path / "out.json"), "--worst", "1"]) == 0
    said = capsys.readouterr()
    assert len(said.err.splitlines()) == 3
    assert max(map(len, said.out.partition("\n\ninvented")[0].splitlines())) <= 80
    written = json.loads((tmp_path / "out.json").read_text())
    assert set(written) == {"overall", "by_kind", "by_grade", "rows"}
    assert set(written["overall"]) == {"rows", "modelled", "refused", "median", "p90", "worst", "below"}
    assert set(written["rows"][0]) == {"id", "measured_gib", "low", "predicted_gib", "high", "error", "peak_moment", "refused"}


def test_every_moment_of_a_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import yaml

    (tmp_path / "c.yaml").write_text(yaml.safe_dump([ROW]))
    score.main([str(tmp_path), "--terms", "invented-001"])
    assert "weights_whole" in capsys.readouterr().out


def test_reading_raises_only_refusals() -> None:
    with pytest.raises(Refused):
        read({"model_id": "nobody/knows-this"})


@for_each(
    "changes",
    [
        {"kind": "op", "model_dims": {"op": "cross_entropy", "batch": [1], "seq_len": "x", "vocab_size": 3}},
        {"unknown": [{"a": 1}]},
        {"train__micro_batch_size": -1},
        {"train__max_seq_len": 0},
    ],
)
def test_values_that_cannot_be_are_refused_in_words(changes: dict[str, Any]) -> None:
    """A person mends a row by the reason, which is no message of Python."""
    reason = refusal(row(**changes))
    assert reason
    assert "Error" not in reason


def test_a_reader_may_stop_early(tmp_path: Path) -> None:
    """score.py ROWS | head ends without a traceback."""
    (tmp_path / "c.yaml").write_text("[]")
    script = Path(score.__file__).resolve()
    made = subprocess.Popen([sys.executable, "-B", str(script), str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert made.stdout is not None
    made.stdout.close()
    assert made.stderr is not None
    assert made.stderr.read() == b""
    made.stderr.close()
    assert made.wait() == 0


#: Its packing fills rows up.
FILLS = {"framework": "trl", "transformers": "4.51.0"}


def test_varying_lengths_may_fill_the_card() -> None:
    """Cached blocks go back to the card only when it is full, so what torch reserved then has no lower upper end."""
    fields = {"compare": "reserved", "gpu": "A100 80GB", "train__packing": False, "lengths": "upper_bound", "software": FILLS}
    assert predict(row(**fields)).high > 79 * GIB
    over_data = fields | {"lengths": "exact", "software": {"framework": "ms-swift", "transformers": "4.51.0"}}
    assert predict(row(**over_data)).high > 79 * GIB  # that the longest are at the limit says nothing of the others
    assert predict(row(**fields | {"lengths": "exact"})).high < 40 * GIB  # rows that were made for the measurement
    assert predict(row(**fields | {"train__packing": True})).high < 40 * GIB


def test_varying_lengths_leave_blocks_of_logits_behind() -> None:
    """Reserved, not allocated: every row that is longer than all before it takes new blocks of logits."""
    over_data = {"framework": "ms-swift", "transformers": "4.51.0"}
    fields = {"compare": "reserved", "gpu": "A100 80GB", "train__max_seq_len": 2048, "software": over_data}
    packed, varying = (predict(row(**fields, train__packing=packing)) for packing in (True, False))
    logits = 3 * 4 * 2048 * 151936
    assert varying.bytes - packed.bytes > 1.5 * logits
    assert varying.low == packed.low
    allocated = {**fields, "compare": "allocated"}
    assert predict(row(**allocated, train__packing=False)).bytes == predict(row(**allocated, train__packing=True)).bytes


def test_16_bit_logits_keep_a_block_of_their_own() -> None:
    """With one length: 2 bytes per logit stay reserved that fp32 logits do not fit in, and less than 2 more of all else."""
    fields = {"train__max_seq_len": 4096, "train__packing": True, "software": FILLS}
    for word in ("full", "none"):
        made = [predict(row(**fields, compare=counter, train__gradient_checkpointing=word)) for counter in ("reserved", "allocated")]
        assert made[1].peak_moment == "loss_backward"
        assert 2 * 4096 * 151936 < made[0].bytes - made[1].bytes < 4 * 4096 * 151936
        assert made[0].low >= made[1].low


def test_what_was_in_use_before_refuses_no_row() -> None:
    """A row is modelled as it is configured: what else lay on its card is an error that stays."""
    fields = {"compare": "device", "gpu": "A100 40GB", "rollout__engine": "vllm", "rollout__sleep": True, "rollout__placement": "colocated"}
    found = [predict(row(**fields, extra={"sleeping_baseline_gib": before})) for before in (1.5, 8.0)]
    assert found[0] == found[1] and not found[0].refused


def test_the_first_micro_batch_of_a_new_agent_has_no_optimizer_states() -> None:
    """Where one micro batch is the whole update: the step alone has them. Another micro batch, or another source, finds them there."""
    fields = {"kind": "rl", "train__stage": "grpo", "train__micro_batch_size": 4, "rollout__engine": "vllm", "rollout__batch": 1}
    rig = next(iter(FIRST_UPDATE)) + "-001"
    tried = ((rig, 4), (rig, 8), ("invented-001", 4))
    found = [predict(row(**fields, id=name, rollout__num_generations=count)) for name, count in tried]
    has = [{moment.name for moment in made.moments if any(term.key == "moments" for term in moment.terms)} for made in found]
    assert has[0] == {"optimizer_step"}
    assert has[1] == has[2] and "layer_backward" in has[1]
    assert found[0].later == found[2].bytes > found[0].bytes
    assert found[1].later is None and found[2].later is None


def test_both_figures_of_a_first_update_are_told() -> None:
    """Nobody has to take the smaller one on trust."""
    name = next(iter(FIRST_UPDATE))
    one = Scored({"id": f"{name}-001", "quality": "A", "measured_gib": 10}, Prediction(0, 9 * GIB, 0, "load", later=12 * GIB))
    said = tally.text([one]).splitlines()
    assert any("of a first update" in line and "10.0%" in line for line in said)
    assert any("of every later one" in line and "20.0%" in line for line in said)
    assert "first update" not in tally.text([scored(10, 9)])


def test_figures_of_one_configuration_bound_every_model() -> None:
    """10 and 30: one answer is 50 % off both, 15; the least mean is that of 10, which is 67 % below 30."""
    rows = [row(measured_gib=figure) for figure in (10.0, 30.0)]
    found = limit([*rows, row(measured_gib=99.0, train__max_seq_len=2048)], asleep=True)
    assert found is not None
    assert found.rows == 2
    assert found.worst == pytest.approx(0.5)
    assert found.mean == pytest.approx((2 / 3) / 2)
    assert limit([rows[0], row(measured_gib=99.0, id="another-001")], asleep=True) is None
    assert "50.0%" in tally.text([Scored(one, predict(one)) for one in rows])


@given(st.lists(st.floats(0.1, 1e3), min_size=2, max_size=6), st.floats(0.1, 1e3))
def test_no_answer_beats_the_limit(figures: list[float], answer: float) -> None:
    found = limit([row(measured_gib=figure) for figure in figures], asleep=True)
    assert found is not None
    errors = [abs(answer / figure - 1) for figure in figures]
    assert max(errors) >= found.worst - 1e-9
    assert sum(errors) / len(errors) >= found.mean - 1e-9


def test_a_sleeping_engine_holds_no_share() -> None:
    """Rows that differ in it alone are one configuration, as are those with more completions unless there are experts."""
    fields = {"rollout__sleep": True, "rollout__num_generations": 4}
    share = [row(**fields, measured_gib=each, rollout__gpu_memory_utilization=each / 100) for each in (20.0, 30.0)]
    assert limit(share, asleep=True) is None
    assert limit(share, asleep=False) is not None
    more = [row(**fields | {"rollout__num_generations": each}, measured_gib=float(each)) for each in (4, 16)]
    assert limit(more, asleep=False) is not None
    experts = [{**one, "model_id": "mistralai/Mixtral-8x7B-v0.1"} for one in more]
    assert limit(experts, asleep=False) is None


def test_a_source_shows_its_grades() -> None:
    """A worst row of grade B is not taken for one of grade A."""
    rows = [scored(10, 9), scored(10, 15, quality="B")]
    assert [(name, len(group)) for name, group in tally.by_source(rows).items()] == [("invented", 2), ("invented A", 1), ("invented B", 1)]
    assert list(tally.by_source(rows[:1])) == ["invented"]


def test_a_layer_that_is_computed_again_leaves_gaps() -> None:
    """Reserved memory has them, what is allocated has not."""
    fields = {"train__max_seq_len": 32768, "train__loss_kernel": "liger", "train__packing": True, "software": FILLS}
    made = {word: predict(row(**fields, compare="reserved", train__gradient_checkpointing=word)) for word in ("full", "none")}
    bare = {word: predict(row(**fields, train__gradient_checkpointing=word)) for word in ("full", "none")}
    assert made["full"].peak_moment == "layer_backward"
    assert made["full"].bytes / bare["full"].bytes > made["none"].bytes / bare["none"].bytes > 1


def test_expandable_segments_keep_the_hole_of_16_bit_logits() -> None:
    """It lies between blocks in use."""
    fields = {"train__max_seq_len": 4096, "train__packing": True, "software": FILLS, "alloc__expandable_segments": True}
    reserved, allocated = (predict(row(**fields, compare=counter)) for counter in ("reserved", "allocated"))
    assert not reserved.refused and reserved.bytes - allocated.bytes > 2 * 4096 * 151936


def test_the_flat_copies_of_zero_find_no_block_of_the_loss() -> None:
    """A step of ZeRO asks for all gradients at once, in 16 bits and in fp32: blocks of shorter logits stay beside it."""
    fields = {"model_id": "Qwen/Qwen2.5-7B", "zero__stage": 2, "train__packing": True, "software": FILLS, "fact_engine": "deepspeed"}
    short, long = (predict(row(**fields, compare="reserved", train__max_seq_len=length)) for length in (256, 1024))
    assert short.peak_moment == long.peak_moment == "optimizer_step"
    assert long.bytes - short.bytes > 4 * 768 * 152064


@pytest.mark.parametrize(
    ("name", "stage", "wanted"),
    [
        ("https://github.com/QwenLM/Qwen/blob/main/recipes/finetune/deepspeed/readme.md, Profiling of Memory", 2, 200_000_000),
        ("https://github.com/QwenLM/Qwen/blob/main/recipes/finetune/deepspeed/readme.md, Profiling of Memory", 3, None),
        ("https://example.org/", 2, None),
    ],
)
def test_what_a_source_says_of_all_its_figures(name: str, stage: int, wanted: int | None) -> None:
    books = read(row(source=name, zero__stage=stage)).books
    assert {book.count("zero.reduce_bucket") for book in books} == {wanted}


def test_a_row_that_says_otherwise_than_its_source_is_read_as_the_source() -> None:
    """The script wraps every matrix of the name c_proj, that of the MLP, too."""
    fields = {"train__finetuning": "lora", "lora__targets": ["c_attn", "attn.c_proj", "w1", "w2"]}
    found = {
        name: read(as_its_source_says(row(source=name, **fields))).books[0].word("lora.targets")
        for name in ("https://github.com/QwenLM/Qwen/x", "elsewhere")
    }
    assert [word is not None and "down_proj" in word for word in found.values()] == [True, False]


def test_rows_that_their_source_contradicts_are_told_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody takes a figure for that of the rows as they stand, and the option shows that one."""
    import yaml

    fields = {"train__finetuning": "lora", "lora__targets": ["c_attn", "attn.c_proj", "w1", "w2"]}
    (tmp_path / "c.yaml").write_text(yaml.safe_dump([row(source="https://github.com/QwenLM/Qwen/x", **fields), ROW]))
    said = {}
    for option in ([], ["--as-written"]):
        score.main([str(tmp_path), *option])
        said[bool(option)] = capsys.readouterr().out
    assert "1 rows are read as" in said[False] and "read as" not in said[True] and said[False].splitlines()[3] != said[True].splitlines()[3]


def test_the_printed_name_says_whose_code_it_is() -> None:
    """Its id may be that of another model of the same dimensions."""
    assert model_of(row(model="Qwen/Qwen-7B-Chat", model_id="Qwen/Qwen1.5-7B")).family == "qwen"
    assert model_of(row(model="a 7B model", model_id="Qwen/Qwen1.5-7B")).family == "qwen2"


def test_packed_rows_that_are_not_filled_up_reserve_more() -> None:
    """Whole samples in bins of the length differ in length as samples do; where another framework packs, rows are full."""
    fields = {"compare": "reserved", "gpu": "NVIDIA A100-SXM4-80GB", "train__packing": True, "train__max_seq_len": 4096}
    software = {"framework": "ms-swift", "transformers": "4.44.0"}
    first, later = (predict(row(**fields, software=software | {"framework_version": release})) for release in ("2", "3"))
    assert first.high > 1.3 * later.high
