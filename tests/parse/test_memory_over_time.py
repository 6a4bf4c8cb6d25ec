"""Memory that any program prints again and again: of which memory, in which unit, and what it grows or falls with."""

from __future__ import annotations

from collected import for_each
from hypothesis import given
from hypothesis import strategies as st

from diagnose.facts import FactBook
from diagnose.parse import log_reader
from diagnose.parse.facts.memory_trend import falls_at_marks, growth_at_marks
from diagnose.scan import log_scan
from diagnose.scan.source import Source
from diagnose.units import Size

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB."
GIB, MIB = 2**30, 2**20


def book(*logs: str) -> FactBook:
    sources = [Source.text(log, f"log{number}") for number, log in enumerate(logs)]
    return FactBook(log_reader.read_logs([log_scan.scan(source) for source in sources]).facts)


def smi(used: int) -> str:
    return (
        "|   0  NVIDIA GeForce RTX 3090  On   | 00000000:01:00.0 Off |                  N/A |\n"
        f"| 30%   65C    P2   320W / 350W |  {used:5d}MiB / 24576MiB |     98%      Default |\n"
    )


def every(count: int, *parts: str, times: int = 20) -> str:
    """Lines for each of so many prints: {n}, and {v} that rises with it by `count`; {e} is a fifth of n."""
    lines = [part.format(n=n, v=8000 + count * n, g=8 + count * n / 1024, e=n // 5) for n in range(times) for part in parts]
    return "\n".join(lines)


def at_marks(line: str, mark: str, rise: float, often: int = 5, prints: int = 30) -> str:
    """Prints of a level that rises at each mark only, after every few prints."""
    lines, level = [], 20.0
    for n in range(prints):
        lines.append(line.format(n=n, v=level, b=int(level * GIB), m=int(level * 1024)))
        if n % often == often - 1:
            lines.append(mark.format(n=n))
            level += rise
    return "\n".join(lines)


#: A log, and of the card or the host what it measures and how much it grows at what.
GROWTH: dict[str, tuple[str, str, str, str, float]] = {
    "nvidia-smi": ("".join(f"Epoch {e}/300\n{smi(9000 + 254 * e)}" for e in range(12)), "memory", "device", "epoch", 254 * MIB),
    "nvidia-smi, bare rows": (every(100, "{n}%|# | {n}0/900 [00:1<1, 2it/s]", "{v} MiB"), "memory", "device", "step", 10 * MIB),
    "torch, bytes": (at_marks("iter {n} memory_allocated(0) {b}", "val loss 2.1", 2), "memory", "allocated", "eval", 2 * GIB),
    "torch, words behind": (every(512, "[step {n}] start: 7.0 GB allocated", "[step {n}] end: {g:.1f} GB allocated"),
                            "memory", "allocated", "step", GIB / 2),
    "MB of a card": (at_marks("step {n} GPU 0 memory usage MB: {m}", "saving checkpoint to x", 4.5), "memory", "device", "save", 4.5 * GIB),
    "bar": (at_marks("\r{n}%|##  | {n}/99 [00:10<01:00, 2it/s, gpu_mem={v:.1f}G]", "\nSaved model to x\n", 3),
            "memory", "device", "save", 3 * GIB),
    "verl": (every(512, "(W pid=4) After offload, memory allocated (GB): {g:.2f}, memory", "(T pid=9) step:{n} - a"),
             "memory", "allocated", "step", GIB / 2),
    "what is free": (every(-100, '{{"num_updates": "{n}00", "gb_free": "{g:.2f}"}}'), "memory", "free", "step", MIB),
    "a bar without units": (every(100, "{n}%|##  | {n}/99 [00:10<01:00, 2it/s, loss=0.4, mem={v}]"), "memory", "device", "step", 100 * MIB),
    "a list in one line": ("start\n[" + every(64, '{{"step": {n}, "gpu_mem_mb": {v}}},', times=60).replace(",\n", ", "),
                          "memory", "device", "step", 64 * MIB),
    "Chinese": (every(50, "第 {n} 轮 显存占用：{v} MB"), "memory", "device", "epoch", 50 * MIB),
    "JAX": (at_marks("step {n} {{'num_allocs': 9, 'bytes_in_use': {b}, 'peak_bytes_in_use': 9}}", "Evaluating", 2),
            "memory", "allocated", "eval", 2 * GIB),
    "TensorFlow": (at_marks("step {n} {{'current': {b}, 'peak': {b}}}", "Evaluating", 2), "memory", "allocated", "eval", 2 * GIB),
    "torch, summaries": (every(64, "Epoch {n}", "| Allocated memory      |  {v} MiB |   9999 MiB |"),
                         "memory", "allocated", "epoch", 64 * MIB),
    "torch, one line": (every(64, "it {n} CUDA: allocated {v} MiB, reserved 20.0 GiB, max allocated 30 GiB"),
                        "memory", "allocated", "step", 64 * MIB),
    "Megatron, old": (every(64, "after {n} iterations memory (MB) | allocated: {v}.5 | max allocated: 9"),
                      "memory", "allocated", "step", 64 * MIB),
    "SAM 2": (every(1024, "Train Epoch: [0][{n}/99] | Mem (GB): {g:.2f} (8.00/9.00)"), "memory", "peak_allocated", "step", GIB),
    "Paddle": (every(64, "Epoch: [0] [{n}/99] loss: 1.0 max_mem_reserved: 9 MB, max_mem_allocated: {v} MB"),
               "memory", "peak_allocated", "step", 64 * MIB),
    "RETURNN": (every(64, "ep 1 train, step {n}, ctc 4.2, num_seqs 9, mem_usage:cuda:0 {v}MB, 0.7 sec/step"),
                "memory", "peak_allocated", "step", 64 * MIB),
    "GPUtil": (every(64, "Epoch {n}", "GPU RAM Free: 900MB | Used: {v}MB | Util  16% | Total 24576MB"),
               "memory", "device", "epoch", 64 * MIB),
    "of so much": (every(64, "it {n} GPU memory: {v}/24576 MB"), "memory", "device", "step", 64 * MIB),
    "DeepSpeed of the card": (every(1024, "step {n} loss 1.2", "MA {g:.2f} GB         Max_MA 9.1 GB         CA 12.0 GB"),
                              "memory", "allocated", "step", GIB),
    "free": (every(2048, "epoch {n}", "Mem:         128000     {v}      9000     100    5000     90000"),
             "host_memory", "node", "epoch", 2 * GIB),
    "kubectl": (every(2048, "epoch {n}", "trainer-0   1200m   {v}Mi   "), "host_memory", "process", "epoch", 2 * GIB),
    "docker": (every(2048, "epoch {n}", "9f1 train 100.00%   {g:.3f}GiB / 62.7GiB   19.00%   1kB / 2kB"),
               "host_memory", "process", "epoch", 2 * GIB),
    "RAM": (at_marks("step {n} RAM used: {v:.2f} GB", "Saving model checkpoint to /out", 12), "host_memory", "node", "save", 12 * GIB),
    "RSS": (every(1024, "Epoch {n}: loss 0.5", "Process memory (RSS): {v} MB"), "host_memory", "process", "epoch", GIB),
    "psutil": (at_marks("epoch 1 it {n} pmem(rss={b}, vms=1)", "Validating", 2), "host_memory", "process", "eval", 2 * GIB),
    "top": (every(3072, "epoch {n}", "  PID USER  PR NI  VIRT  RES  SHR S\n 44 root 20  0 120.1g {g:.1f}g 1g S"),
            "host_memory", "process", "epoch", 3 * GIB),
    "AllenNLP": (every(700, "Epoch {n}/39", "Peak CPU memory usage MB: {v}.5"), "host_memory", "peak_process", "epoch", 700 * MIB),
    "DeepSpeed": (every(2048, "{{'loss': 1, 'step': {n}}}", "CPU Virtual Memory:  used = {g:.1f} GB, percent = 9.1%"),
                  "host_memory", "node", "step", 2 * GIB),
}  # fmt: skip


@for_each("name", GROWTH)
def test_what_memory_grows_with(name: str) -> None:
    """Card and host are two series, each with its measure; the growth is a size per step, epoch, evaluation or save, with a line."""
    log, series, measure, kind, amount = GROWTH[name]
    known = book(f"{log}\n{OOM}\n")
    rate = known.size(f"log.{series}_per_{kind}")
    assert (known.word(f"log.{series}_measure"), known.word(f"log.{series}_grows_with")) == (measure, kind)
    assert rate is not None and abs(rate.bytes - amount) <= 0.05 * amount and rate.low <= rate.bytes <= rate.high
    other = "memory" if series == "host_memory" else "host_memory"
    assert f"log.{other}_prints" not in known
    witness = known.fact(f"log.{series}_per_{kind}")
    assert witness is not None and witness.witness.line > 1


#: Logs that say less: flat, once, no memory at all.
QUIET = {
    "flat in spite of evaluations": (every(0, "step {n} memory_allocated: {v} MB", "Validating"), "flat", None),
    "one mark": (at_marks("step {n} GPU memory: {v} GB", "Saving checkpoint", 8, often=12, prints=24), "step_change", None),
    "a mark at every print": (every(300, "step {n} GPU memory: {v} MB", "Saving checkpoint"), "linear_growth", "step"),
    "percent": (every(1, "step {n} ram {n}% GPU memory: {n}%"), None, None),
    "tokens": (every(1, "Decode batch. #token: {v}, token usage: 0.{n}"), None, None),
    "no unit": (every(40, "mem {v} max_mem: {v} RSS {v}"), None, None),
    "a list of alike cards": (every(0, "GPU {n}: A100, memory: {v} MB, idle"), None, None),
    "another's name": (every(40, "shared_memory: {v} MB, GPU memory budget: 80 GB, batch_mem {n}"), None, None),
}


@for_each("name", QUIET)
def test_what_shows_no_growth(name: str) -> None:
    """What happens at every print happens at no mark of its own; a figure without a unit is none."""
    log, trend, kind = QUIET[name]
    known = book(f"{log}\n{OOM}\n")
    assert (known.word("log.memory_trend"), known.word("log.memory_grows_with")) == (trend, kind)


def test_a_jump_is_tied_to_what_was_done() -> None:
    """Once and kept: between the print before and the one after, an evaluation ran."""
    lines = [f"Epoch: [0]  [ {i}/9]  loss: 1.2  max mem: {11000 if i < 6 else 16500}" for i in range(10)]
    lines.insert(6, "Test:  [ 0/20]  eta: 0:00:10")
    known = book("\n".join([*lines, OOM]))
    jump = known.size("log.memory_jump")
    assert jump is not None and jump.bytes == 5500 * MIB
    assert known.word("log.memory_jump_at") == "eval"


def test_memory_that_falls_with_each_epoch() -> None:
    """It rises within the epoch; a save stands where the epoch ends, which is not what the fall is named after."""
    lines = []
    for epoch in range(5):
        lines += [f"Epoch [{epoch}/5], Step [{i}/10], GPU memory: {6 + 0.6 * i:.1f}GB" for i in range(10)]
        lines.append("Saved model to out.pth")
    known = book("\n".join([*lines, OOM]))
    fall = known.size("log.memory_fall")
    assert (known.word("log.memory_trend"), known.word("log.memory_falls_with")) == ("per_epoch_reset", "epoch")
    assert fall is not None and fall.low <= 5.4 * GIB <= fall.high + 2


def test_a_machine_that_is_watched_in_another_file() -> None:
    """nvidia-smi wrote into a file of its own: the failed card's rows, by their index. Another process's own figures are not taken."""
    rows = [f"2024/05/01 10:{n:02d}:00.123, {gpu}, {20000 + 500 * n * gpu} MiB" for n in range(20) for gpu in (0, 1)]
    watched = "\n".join(["timestamp, index, memory.used [MiB]", *rows, ""])
    known = book(f"step 1\n{OOM.replace('GPU 0', 'GPU 1')}\n", watched)
    assert (known.word("log.memory_trend"), str(known.size("log.memory_last"))) == ("linear_growth", "29500 MiB")
    assert "log.memory_trend" not in book(f"step 1\n{OOM}\n", every(100, "step {n} memory_allocated: {v} MB"))


def test_a_figure_at_the_end_of_the_log_may_be_a_part_of_one() -> None:
    """The log was cut within its last number."""
    whole = every(100, "step {n} memory_allocated: {v} MB")
    for cut in range(len(whole) - 12, len(whole)):
        last = book(whole[:cut]).size("log.memory_last")
        assert last is not None and last.bytes >= 9700 * MIB


SIZES = st.lists(st.integers(0, 2**40), max_size=30).map(lambda counts: [Size.exactly(count) for count in counts])
MARKS = st.sampled_from([None, frozenset(), frozenset({"save"}), frozenset({"eval", "epoch"}), frozenset({"epoch"})])


@given(SIZES, st.lists(MARKS, min_size=30, max_size=30))
def test_any_sizes_and_marks_are_tied_or_not(sizes: list[Size], marks: list[frozenset[str] | None]) -> None:
    """Whatever is printed, a tie names a kind that occurred at least twice, and a change above nothing."""
    for tie in (*growth_at_marks(sizes, marks), *falls_at_marks(sizes, marks)):
        assert sum(tie.kind in (kinds or ()) for kinds in marks[: len(sizes) - 1]) >= 2
        assert 0 <= tie.change.low <= tie.change.bytes <= tie.change.high and 0 <= tie.pair < len(sizes) - 1
