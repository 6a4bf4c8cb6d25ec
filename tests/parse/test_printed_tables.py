"""Tables in a log: cards as tools list them, torch's allocator as it sums itself up, models as print() shows them."""

from __future__ import annotations

import pytest
from collected import for_each
from hypothesis import given
from hypothesis import strategies as st
from pace import within

from diagnose.facts import FactBook
from diagnose.parse import log_reader
from diagnose.parse.facts.allocator_summary import floored_size
from diagnose.scan import log_scan
from diagnose.scan.source import Source
from diagnose.units import Size

FAILURE = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. "
    "GPU 1 has a total capacity of 79.15 GiB of which 1 GiB is free."
)
MIB = 2**20


def book(text: str, failure: str = FAILURE) -> FactBook:
    return FactBook(log_reader.read_logs([log_scan.scan(Source.text(f"{text}\n{failure}\n", "job.log"))]).facts)


def shown(text: str) -> dict[str, str]:
    return {fact.name: str(fact.value) for fact in book(text)}


NEW = """\
| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |
|   0  NVIDIA A100-SXM4-80GB          On  |   00000000:07:00.0 Off |                    0 |
| N/A   41C    P0              96W / 400W |   80914MiB /  81920MiB |    100%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA A100-SXM4-80GB          On  |   00000000:0A:00.0 Off |                    0 |
| N/A   33C    P0              62W / 400W |       3MiB /  81920MiB |      0%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |
|    0   N/A  N/A     18211      C   python                                     11570MiB |
|    0   N/A  N/A     18212      C   python                                     69340MiB |
|    1   N/A  N/A     18211      C   python                                          N/A |
"""
OLD = """\
| NVIDIA-SMI 460.32.03    Driver Version: 460.32.03    CUDA Version: 11.2     |
|   0  GeForce RTX 208...  Off  | 00000000:3B:00.0 Off |                  N/A |
| 30%   41C    P2    96W / 250W |  10914MiB / 11019MiB |    100%      Default |
|  GPU       PID   Type   Process name                             Usage      |
|    0     18211      C   python                          10570MiB |
"""
MIG = """\
|   0  NVIDIA A100-SXM4-40GB          On  | 00000000:07:00.0 Off |                   On |
| N/A   33C    P0    62W / 400W |   3260MiB / 40960MiB |     N/A      Default |
| MIG devices:                                                                |
| GPU  GI  CI  MIG |         Memory-Usage |        Vol|         Shared        |
|  0    1   0   0  |   3240MiB / 20096MiB | 42      0 |  3   0    2    0    0 |
"""
CSV = """\
index, name, memory.total [MiB], memory.used [MiB], memory.free [MiB]
0, NVIDIA H100 80GB HBM3, 81559 MiB, 80211 MiB, 873 MiB
1, NVIDIA H100 80GB HBM3, 81559 MiB, 4 MiB, 81074 MiB
"""
QUERY = """\
GPU 00000000:07:00.0
    FB Memory Usage
        Total                             : 81559 MiB
        Reserved                          : 561 MiB
        Used                              : 4 MiB
        Free                              : 80993 MiB
    BAR1 Memory Usage
        Total                             : 131072 MiB
        Used                              : 3 MiB
"""
GPUSTAT = """\
[0] NVIDIA A100-SXM4-80GB | 34'C,  97 % | 40123 / 81920 MB | user(11570M)
[1] NVIDIA A100-SXM4-80GB | 34'C,   0 % |     3 / 81920 MB |
"""
ROCM = "".join(
    f"GPU[{i}]\t\t: VRAM Total Memory (B): 206141652992\nGPU[{i}]\t\t: VRAM Total Used Memory (B): {used}\n"
    for i, used in enumerate((10985472, 195000000000))
)
AMD = "GPU: 0\n    MEM:\n        TOTAL_VRAM: 196592 MB\n        USED_VRAM: 285 MB\n        FREE_VRAM: 196307 MB\n"
NPU = """\
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
| 0     910B3               | OK            | 93.4        36                0    / 0             |
| 0                         | 0000:C1:00.0  | 0           0    / 0          59356/ 65536         |
| 1     910B3               | OK            | 93.4        36                0    / 0             |
| 0                         | 0000:C2:00.0  | 0           0    / 0          3345 / 65536         |
"""


@for_each(
    "text, facts",
    [
        (NEW, {"log.cards_used": "0: 80914 MiB, 1: 3 MiB", "log.card_used": "3 MiB", "hardware.nominal": "81920 MiB", "hardware.count": "2",
               "log.processes_on_card": "2", "log.strays": "1", "hardware.gpu": "NVIDIA A100-SXM4-80GB"}),
        (OLD, {"log.cards_used": "0: 10914 MiB", "hardware.gpu": None, "log.strays": "0", "log.processes_on_card": None}),
        (MIG, {"hardware.sliced": "True", "hardware.nominal": "40960 MiB"}),
        (CSV, {"log.cards_used": "0: 80211 MiB, 1: 4 MiB", "log.card_used": "4 MiB", "hardware.gpu": "NVIDIA H100 80GB HBM3"}),
        (CSV.replace(" [MiB]", "").replace(" MiB", ""), {"log.cards_used": "0: 80211 MiB, 1: 4 MiB"}),
        (CSV.replace("81559 MiB, 80211 MiB", "[N/A], [N/A]"), {"log.cards_used": None, "log.card_used": "4 MiB"}),
        (QUERY, {"hardware.nominal": "81559 MiB", "log.cards_used": "0: 4 MiB"}),
        (GPUSTAT, {"log.cards_used": "0: 40123 MiB, 1: 3 MiB", "hardware.gpu": "NVIDIA A100-SXM4-80GB"}),
        (ROCM, {"hardware.nominal": "206141652992 B", "log.card_used": "195000000000 B", "hardware.count": "2"}),
        (AMD, {"hardware.nominal": "196592 MiB", "log.cards_used": "0: 285 MiB"}),
        (NPU, {"hardware.gpu": "910B3", "log.cards_used": "0: 59356 MiB, 1: 3345 MiB", "hardware.nominal": "65536 MiB"}),
        (NEW + "CUDA_VISIBLE_DEVICES=1,0\n", {"log.card_used": None}),
        (NEW + NEW.replace("       3MiB", "   70123MiB"), {"log.card_used": "70123 MiB", "hardware.count": "2"}),
    ],
)  # fmt: skip
def test_what_the_cards_hold(text: str, facts: dict[str, str | None]) -> None:
    """Each tool's table, wide and narrow: used and total of every card, the failed one by its number unless numbers were changed."""
    found = shown(text)
    assert {name: found.get(name) for name in facts} == facts


def test_a_table_after_the_failure_is_another_time() -> None:
    """What nvidia-smi shows when everything is over says nothing of the failure."""
    known = book("start", f"{FAILURE}\n{NEW}")
    assert "log.card_used" not in known


SUMMARY = """\
|===========================================================================|
|                  PyTorch CUDA memory summary, device ID 0                 |
|---------------------------------------------------------------------------|
|            CUDA OOMs: 1            |        cudaMalloc retries: 3         |
|===========================================================================|
|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |
|---------------------------------------------------------------------------|
| Allocated memory      |  38122 {m} |  40411 {m} |   9213 {g} |   9176 {g} |
|       from large pool |  38100 {m} |  40390 {m} |   9212 {g} |   9175 {g} |
| Requested memory      |  38001 {m} |  40300 {m} |   9200 {g} |   9100 {g} |
| GPU reserved memory   |  44210 {m} |  44210 {m} |  44210 {m} |      0 B   |
| Non-releasable memory |   6087 {m} |   7001 {m} |   9213 {g} |   9207 {g} |
"""


@pytest.mark.parametrize("units", [{"m": "MiB", "g": "GiB"}, {"m": "MB ", "g": "GB "}])
def test_the_allocator_sums_itself_up(units: dict[str, str]) -> None:
    """Whole units, cut down and not rounded: the truth is up to one unit above; old releases call MiB MB."""
    known = book(SUMMARY.format(**units))
    allocated = known.size("log.table_allocated")
    assert allocated is not None
    assert (allocated.low, allocated.high) == (38122 * MIB, 38123 * MIB - 1)
    names = ("allocated_peak", "reserved", "reserved_peak", "inactive", "requested")
    printed = [known.size(f"log.table_{name}") for name in names]
    assert [size and size.bytes // MIB for size in printed] == [40411, 44210, 44210, 6087, 38001]
    assert (known.count("log.table_ooms"), known.count("log.table_retries")) == (1, 3)


def as_torch(count: int) -> str:
    """How torch prints a cell: divided down while 768 KiB of the unit or more are left."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if count < 768 * 1024 or unit == "TiB":
            return f"{count:6d} {unit:<3}"
        count //= 1024
    raise AssertionError


@given(st.integers(min_value=0, max_value=2**45))
def test_a_cell_holds_the_truth(count: int) -> None:
    """Whatever torch prints, the figure lies in what is read of it."""
    digits, unit = as_torch(count).split()
    size = floored_size(digits, unit)
    assert size is not None and count in size


@given(st.integers(min_value=0, max_value=2**63))
def test_statistics_are_exact(count: int) -> None:
    """memory_stats prints bytes; a figure that no card has is none."""
    known = book(f"{{'num_ooms': 0, 'allocated_bytes.all.current': {count}, 'reserved_bytes.all.peak': 99}}")
    assert known.value("log.table_allocated") == (Size.exactly(count) if count <= 2**50 else None)
    assert known.value("log.table_reserved_peak") == Size.exactly(99)


TREE = """\
PeftModelForCausalLM(
  (base_model): LoraModel(
    (model): Qwen2ForCausalLM(
      (model): Qwen2Model(
        (embed_tokens): Embedding(152064, 3584)
        (layers): ModuleList(
          (0-27): 28 x Qwen2DecoderLayer(
            (self_attn): Qwen2Attention(
              (q_proj): lora.Linear4bit(
                (base_layer): Linear4bit(in_features=3584, out_features=3584, bias=True)
                (lora_A): ModuleDict(
                  (default): Linear(in_features=3584, out_features=16, bias=False)
                )
"""


def test_a_printed_model_has_dimensions() -> None:
    """Words, width, layers, the rank of the adapters and the bits of the weights, without a config."""
    known = book(TREE)
    names = ("model.vocab_size", "model.hidden_size", "model.layers", "lora.rank", "model.quantized_bits")
    assert [known.count(name) for name in names] == [152064, 3584, 28, 16, 4]
    assert known.word("train.finetuning") == "lora"
    assert "model.quantization" not in known  # nf4 and fp4 print alike
    fact = known.fact("model.layers")
    assert fact is not None and fact.witness.line == 7


def test_towers_have_layers_of_their_own() -> None:
    """Of several stacks of blocks nobody can tell which one is meant by layers."""
    tree = TREE + "          (0-31): 32 x AudioEncoderLayer(\n"
    assert "model.layers" not in book(tree)
    assert book(tree.replace("AudioEncoderLayer", "VisionEncoderLayer")).count("model.layers") == 28


@for_each("piece", ["|   0  N", "| 0 910B3 | OK |\n", "memory.used, ", "GPU: 0\n", "(0-1): 2 x L", "Model(\n  (model): ", "| 0 1 C x"])
def test_hostile_tables_take_bounded_time(piece: str) -> None:
    """Half a megabyte of beginnings of rows is passed over soon."""
    with within(10):
        book(piece * (500_000 // len(piece)))
