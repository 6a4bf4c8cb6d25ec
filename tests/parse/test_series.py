"""The memory that a log prints again and again: what is collected, and what course it shows."""

from __future__ import annotations

import random
import re

from collected import for_each
from hypothesis import given
from hypothesis import strategies as st

from diagnose import rule_files
from diagnose.facts import FactBook
from diagnose.parse import log_reader
from diagnose.parse.facts.memory_trend import classify_trend
from diagnose.scan import log_scan
from diagnose.scan.source import Source
from diagnose.units import Size

FAILURE = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
GIB = 2**30


def book(*lines: str) -> FactBook:
    return FactBook(log_reader.read_logs([log_scan.scan(Source.text("\n".join([*lines, FAILURE]), "job.log"))]).facts)


def sizes(values: list[float]) -> list[Size]:
    return [size for value in values if (size := Size.printed(f"{value:.2f}", "GiB")) is not None]


#: A line of each program, with the step and the figure in GiB (or in its own unit), and what that says in bytes.
LINES = {
    "axolotl": ("{{'loss': 1.2, 'grad_norm': 0.4, 'memory/max_allocated (GiB)': {0:.2f}, 'epoch': 0.1}}", GIB, "peak_allocated"),
    "axolotl, earlier": ("{{'loss': '1.2', 'memory/max_mem_allocated(gib)': '{0:.2f}', 'epoch': 0.1}}", GIB, "peak_allocated"),
    "swift": ("{{'loss': 1.2, 'memory(GiB)': {0:.2f}, 'global_step/max_steps': '{1}/500'}}", GIB, "peak_reserved"),
    "torchtitan": ("[titan] 2026-04-01 10:00:00,001 - root - INFO - step: {1:2}  loss:  8.13227  memory: {0:5.2f}GiB(66.42%)  tps: 6,912",
                   GIB, "peak_reserved"),
    "verl": ("step:{1} - actor/loss:0.1 - perf/max_memory_allocated_gb:{0:.6f} - perf/cpu_memory_used_gb:91.2", GIB, "peak_allocated"),
    "Megatron": ("[Rank 0] (after {1} iterations) memory (MB) | allocated: {0:.2f} | max allocated: 63882.10 | reserved: 66510.00",
                 2**20, "allocated"),
    "torchtune": ("Step {1} | loss:1.2 lr:1e-5 tokens_per_second_per_gpu:812.1 peak_memory_active:{0:.4f} peak_memory_alloc:{0:.4f}",
                  GIB, "peak_allocated"),
    "mmengine": ("04/01 10:00:00 - mmengine - INFO - Epoch(train) [1][{1}/1172]  lr: 1.0e-4  time: 0.5  memory: {0:.0f}  loss: 1.2",
                 2**20, "peak_allocated"),
    "detectron2": ("[04/01 10:00:00 d2.utils.events]: eta: 1:00:00  iter: {1}  total_loss: 1.2  time: 0.5  lr: 0.01  max_mem: {0:.0f}M",
                   2**20, "peak_allocated"),
    "YOLO": ("      {1}/300      {0:.2f}G      1.234      1.123        128        640: 100%|####| 98/98 [00:30<00:00,  3.2it/s]",
             10**9, "reserved"),
    "LLaMA-Factory": ('{{"current_steps": {1}, "total_steps": 900, "vram_allocated": {0:.2f}, "vram_reserved": 70.1}}', GIB, "allocated"),
    "DeepSpeed's own": ("{{'loss': 1.2}}\nRANK=0 MEMSTATS step device=cuda:0 current alloc={0:.4f}GB (delta=0GB", GIB, "allocated"),
    "DeepSpeed": ("{{'loss': 1.2}}\n[utils.py:782:see_memory_usage] MA {0:.2f} GB         Max_MA 90.1 GB", GIB, "allocated"),
}  # fmt: skip


@for_each(
    "figures, bars, grows",
    [
        ((7782, 15744, 23910), ("2400/5200", "4800/5200"), True),
        ((7782, 15744, 15800), ("2400/5200", "4800/5200"), False),  # it levels off
        ((7782, 8100, 8400), ("2400/5200", "4800/5200"), False),  # a ripple
        ((7782, 15744, 23910), ("", ""), False),  # nobody says at which steps
    ],
)
def test_few_tables_show_growth_only_in_proportion_to_their_steps(figures: tuple[int, ...], bars: tuple[str, ...], grows: bool) -> None:
    """Whoever looks at nvidia-smi three times in a day has seen a leak, if both halves of the day took as much."""
    tables = [f"index, memory.used [MiB], memory.total [MiB]\n0, {used} MiB, 24576 MiB" for used in figures]
    between = [f"Epoch 0:  46%|##        | {bar} [56:00<65:19, 1.40s/it]" if bar else "" for bar in bars]
    said = book(tables[0], between[0], tables[1], between[1], tables[2])
    assert (said.switch("log.memory_grows") is True) == grows


def test_a_single_print_is_a_fact_and_no_course() -> None:
    """Megatron prints its memory once, after the first iteration."""
    line = "[Rank 0] (after 1 iterations) memory (MB) | allocated: 41210.55 | max allocated: 63882.10 | reserved: 66510.00\n"
    said = {fact.name: fact.value for fact in log_reader.read_logs([log_scan.scan(Source.text(line, "job.log"))]).facts}
    assert (said["log.memory_prints"], str(said["log.memory_last"])) == (1, "41210.55 MiB")
    assert "log.memory_trend" not in said and "log.memory_grows" not in said


def test_every_row_is_in_order() -> None:
    """Each pattern compiles, finds its own literal's line and names a unit."""
    for row in rule_files.table("memory_lines"):
        if "names" not in row:
            pattern = re.compile(row["pattern"])
            assert "value" in pattern.groupindex and ("unit" in row or "unit" in pattern.groupindex), row


@for_each("name", LINES)
def test_each_program_prints_in_its_own_unit(name: str) -> None:
    """GiB called GB, MiB called MB and true decimal gigabytes are told apart; the rounding is kept."""
    form, unit, measure = LINES[name]
    known = book(*(form.format(20 + step / 4, step) for step in range(10, 40)))
    last = known.size("log.memory_last")
    assert last is not None and known.word("log.memory_measure") == measure
    printed = float(form.partition("{0")[2] and ("%.0f" if "{0:.0f}" in form else "%.4f") % (20 + 39 / 4))
    assert abs(last.bytes - printed * unit) <= unit // 100 + 1
    assert last.low < last.bytes < last.high
    assert known.count("log.memory_prints") == 30


def test_growth_is_said_per_step() -> None:
    """A leak of 50 MiB a step is found from prints of every tenth step, the figure within its interval."""
    known = book(*(LINES["swift"][0].format(40 + step * 50 / 1024, step) for step in range(10, 400, 10)))
    rate = known.size("log.memory_per_step")
    assert known.word("log.memory_trend") == "linear_growth"
    assert known.switch("log.memory_grows") is True
    assert rate is not None and rate.low <= 50 * 2**20 <= rate.high < 52 * 2**20


def test_a_jump_has_a_place_and_a_height() -> None:
    """Memory that changed once and stayed: where, and by how much."""
    known = book(*(LINES["torchtitan"][0].format(40 if step < 30 else 52, step) for step in range(1, 61)))
    assert known.word("log.memory_trend") == "step_change"
    assert known.count("log.memory_jump_step") == 30
    jump = known.size("log.memory_jump")
    assert jump is not None and jump.low <= 12 * GIB <= jump.high
    assert known.switch("log.memory_grows") is False


@for_each(
    "values, word",
    [
        ([40.0] * 20, "flat"),
        ([12.0, 39.0, *[40.0] * 30], "flat"),  # states come into being
        ([40 + 0.01 * (i % 3) for i in range(40)], "flat"),
        ([20 + 0.5 * i for i in range(40)], "linear_growth"),
        ([20 + 2.0 * (i // 8) for i in range(40)], "linear_growth"),  # stairs: it never stops
        ([30.0] * 20 + [45.0] * 20, "step_change"),
        ([45.0] * 20 + [30.0] * 20, "step_change"),
        ([20 + 1.0 * (i % 10) for i in range(50)], "per_epoch_reset"),
        ([40.0] * 15 + [61.0] + [40.0] * 20 + [66.0] + [40.0] * 9, "spikes"),
        ([40.0] * 39 + [70.0], "spikes"),
        ([40.0, 41.0, 42.0, 43.0], "unknown"),
        ([40.0, 55.0, 41.0, 62.0, 39.0, 58.0, 44.0, 60.0], "unknown"),
    ],
)
def test_the_course_of_sizes(values: list[float], word: str) -> None:
    """Each course has its word; too few prints and mere noise have none."""
    assert classify_trend(sizes(values)).word == word


@given(st.lists(st.floats(min_value=0, max_value=500), max_size=80), st.booleans())
def test_any_sizes_have_a_course(values: list[float], stepped: bool) -> None:
    """Whatever is printed, the answer is one of the words, and its figures are consistent."""
    rows = sizes(values)
    found = classify_trend(rows, list(range(len(rows))) if stepped else None)
    assert found.word in ("flat", "step_change", "linear_growth", "per_epoch_reset", "spikes", "unknown")
    assert found.jump is None or 0 < found.jump < len(rows)
    assert found.per_step is None or (
        found.word == "linear_growth" and 0 <= found.per_step.low <= found.per_step.bytes <= found.per_step.high
    )


@given(st.floats(min_value=10, max_value=60), st.floats(min_value=0.15, max_value=0.6), st.integers(min_value=0, max_value=2**32))
def test_noise_does_not_hide_growth(level: float, rise: float, seed: int) -> None:
    """Growth by a good part of the level is found under noise of one percent."""
    rng = random.Random(seed)
    values = [level * (1 + rise * i / 60) * rng.uniform(0.99, 1.01) for i in range(61)]
    assert classify_trend(sizes(values)).word == "linear_growth"


def test_a_restart_begins_anew() -> None:
    """Memory that fell because the job was started again is no course of its own."""
    form = LINES["axolotl"][0]
    first = [form.format(20 + step, step) for step in range(20)]
    known = book(*first, "***** Running training *****", *(form.format(22.0, step) for step in range(20)))
    assert known.word("log.memory_trend") == "flat"
    assert known.count("log.memory_prints") == 20


def test_only_the_process_that_failed() -> None:
    """Two ranks that print side by side at different levels are two series."""
    form = LINES["Megatron"][0]
    lines = [
        line for step in range(1, 20) for line in (form.format(40000.0, step), form.format(60000.0, step).replace("[Rank 0]", "[Rank 7]"))
    ]
    known = FactBook(log_reader.read_logs([log_scan.scan(Source.text("\n".join([*lines, "[rank7]: " + FAILURE]), "job.log"))]).facts)
    last = known.size("log.memory_last")
    assert last is not None and last.bytes == 60000 * 2**20
    assert known.word("log.memory_trend") == "flat"


def test_lines_after_the_failure_do_not_count() -> None:
    """Another attempt in the same log is not what led to the failure."""
    form = LINES["swift"][0]
    lines = [form.format(40.0, step) for step in range(20)]
    text = "\n".join([*lines, FAILURE, *(form.format(60.0 + step, step) for step in range(20))])
    known = FactBook(log_reader.read_logs([log_scan.scan(Source.text(text, "job.log"))]).facts)
    assert known.count("log.memory_prints") == 20


def test_a_long_run_is_looked_at_all_over() -> None:
    """Between the windows of a large log there are only looks: growth is seen all the same."""
    form = LINES["axolotl"][0]
    filler = "x" * 400
    lines = [text for step in range(60_000) for text in (form.format(20 + step / 1500, step), filler)]
    known = book(*lines)
    assert known.word("log.memory_trend") == "linear_growth"
    first, last = known.size("log.memory_first"), known.size("log.memory_last")
    assert first is not None and last is not None
    assert first.bytes < 21 * GIB and last.bytes > 59 * GIB


def test_bars_give_the_step() -> None:
    """The Trainer prints its figures behind a progress bar, which counts the steps."""
    lines = [
        f"  {step // 10}%|#   | {step}/1000 [00:05<01:00,  2.00it/s]\n{{'loss': 1.2, 'memory/max_allocated (GiB)': {20 + step / 50:.2f}}}"
        for step in range(10, 400, 10)
    ]
    rate = book(*lines).size("log.memory_per_step")
    assert rate is not None and rate.low <= GIB / 50 <= rate.high


def test_set_up_is_no_training() -> None:
    """DeepSpeed's lines of the set-up rise as states are made; no step stands between them."""
    lines = [f"[utils.py:782:see_memory_usage] MA {10 + i} GB         Max_MA 90.1 GB         CA 95 GB" for i in range(12)]
    assert "log.memory_trend" not in book(*lines)
