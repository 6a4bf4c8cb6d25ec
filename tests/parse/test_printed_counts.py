"""Lines in which programs print how many parameters there are and how they are divided, and all of them cut anywhere."""

from __future__ import annotations

import pytest
from collected import for_each
from wordings import only, reading

from diagnose.facts import Value

FAILURE = "\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"

#: A line, and the facts that it carries.
LINES: dict[str, tuple[str, dict[str, Value]]] = {
    "Megatron": (
        " > number of parameters on (tensor, pipeline) model parallel rank (0, 3): 1694826496",
        {"model.local_params": 1694826496},
    ),
    "NeMo 2": (" > number of parameters on (tensor, pipeline) model parallel rank (0 ,0): 8030261248", {"model.local_params": 8030261248}),
    "Megatron before pipelines": (" > number of parameters on model parallel rank 5: 345049088", {"model.local_params": 345049088}),
    "NeMo 1": (
        "Number of model parameters on device: 8.43e+09. Number of precise model parameters on device: 8430264320.",
        {"model.local_params": 8430264320},
    ),
    "PEFT": (
        "trainable params: 4,194,304 || all params: 6,742,609,920 || trainable%: 0.0622",
        {"model.trainable_params": 4194304, "model.total_params": 6742609920},
    ),
    "fairseq": (
        "num. shared model params: 141,426,688 (num. trained: 41,426,688)",
        {"model.total_params": 141426688, "model.trainable_params": 41426688},
    ),
    "LitGPT": ("Total parameters: 1,100,048,384", {"model.total_params": 1100048384}),
    "too few digits": ("Total parameters: 6.7B", {}),
    "ZeRO 2": ("[Rank 0] Creating torch.bfloat16 ZeRO stage 2 optimizer", {"zero.stage": 2}),
    "ZeRO 3": ("[Rank 0] Creating fp16 ZeRO stage 3 optimizer, MiCS is enabled False", {"zero.stage": 3}),
    "one partition": (
        "Rank: 0 partition count [8] and sizes[(842304512, False)]",
        {"log.partitions": 8, "log.partition_elements": 842304512},
    ),
    "two partitions": (
        "Rank: 3 partition count [4, 4] and sizes[(1684609024, False), (66560, False)]",
        {"log.partitions": 4, "log.partition_elements": 1684675584},
    ),
    "left whole": (
        "Parameter Offload: Total persistent parameters: 266240 in 65 params",
        {"log.persistent_elements": 266240, "zero.stage": 3},
    ),
    "left whole, now": (
        "Parameter Offload - Persistent parameters statistics: param_count = 65, numel = 266240",
        {"log.persistent_elements": 266240},
    ),
    "a batch of 1 failed": ("RuntimeError: No executable batch size found, reached zero.", {"train.micro_batch_size": 1}),
}
NAMES = frozenset(name for _, facts in LINES.values() for name in facts) | {"model.total_params", "model.trainable_params"}


def facts(text: str) -> dict[str, Value]:
    return {fact.name: fact.value for fact in reversed(reading(text).facts) if fact.name in NAMES}


@for_each("name", LINES)
def test_what_a_line_counts(name: str) -> None:
    """Each program's own words; figures of two digits are none to calculate with."""
    line, expected = LINES[name]
    assert facts(f"{line}{FAILURE}") == expected


@for_each("name", LINES)
def test_a_line_that_is_cut_has_no_figure_of_its_own(name: str) -> None:
    """A log may end within a number: 6,742 is no part of what 6,742,609,920 says."""
    line, expected = LINES[name]
    for length in range(1, len(line)):
        for fact, value in facts(line[:length]).items():
            is_part = fact == "log.partition_elements" and value == 1684609024  # of two groups the one that was printed
            assert is_part or value == expected[fact], line[:length]


BOX = """\
╭─────────────────── Traceback (most recent call last) ────────────────────╮
│ /home/u/o/finetune.py:88 in train                                        │
│                                                                          │
│    85 │   trainer = Trainer(model=model, args=args)                      │
│ ❱  88 │   trainer.train()                                                │
│                                                                          │
│ /opt/lib/python3.10/site-packages/torch/optim/adamw.py:161 in step       │
│                                                                          │
│   158 │   │   │   state = self.state[p]                                  │
│ ❱ 161 │   │   │   state["exp_avg_sq"] = torch.zeros_like(p)              │
╰──────────────────────────────────────────────────────────────────────────╯
OutOfMemoryError: CUDA out of memory. Tried to allocate 172.00 MiB
"""


@for_each("plain", [False, True])
def test_frames_in_a_box(plain: bool) -> None:
    """Also where the console has no characters for lines and arrows."""
    event = only(reading(BOX.translate(str.maketrans("│╭╮╰╯─❱", "|++++->")) if plain else BOX))
    assert (event.phase, [frame.function for frame in event.frames]) == ("optimizer_step", ["train", "step"])


def test_a_box_that_ends_in_a_save() -> None:
    """torch.save itself is the innermost frame that the box shows."""
    event = only(
        reading(BOX.replace("optim/adamw.py:161 in step ", "serialization.py:441 in save").replace('state["exp_avg_sq"]', "_save"))
    )
    assert event.phase == "checkpoint_save"


@pytest.mark.parametrize(
    "printed, doubted",
    [
        ("79.15 GiB total capacity; 94.00 GiB already allocated; 1.00 GiB free", True),
        ("79.15 GiB total capacity; 60.00 GiB already allocated; 90.00 GiB free", True),
        ("79.15 GiB total capacity; 60.00 GiB already allocated; 1.00 GiB free; 40.00 GiB reserved in total by PyTorch", True),
        ("79.15 GiB total capacity; 70.00 GiB already allocated; 1.00 GiB free; 77.00 GiB reserved in total by PyTorch", False),
    ],
)
def test_figures_that_cannot_be(printed: str, doubted: bool) -> None:
    """They stay as printed, and a notice says which two cannot both be true."""
    read = reading(f"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; {printed})\n")
    assert str(only(read).capacity) == "79.15 GiB" and str(only(read).allocated) in printed
    assert [notice.code for notice in read.notices] == ["impossible_figures"] * doubted
