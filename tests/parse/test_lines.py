"""Lines that arrive changed: who wrote them, whose figures they are, and the frames that a notebook, a box or a string holds."""

from __future__ import annotations

import json
import re

import pytest
from collected import for_each

from diagnose import rule_files
from diagnose.parse import log_reader
from diagnose.parse.model.event import Event
from diagnose.parse.text.line_cleaning import clean, clean_short
from diagnose.parse.text.lines import Page
from diagnose.scan import log_scan
from diagnose.scan.excerpts import Excerpt
from diagnose.scan.source import Source

SITE = "/opt/env/lib/python3.11/site-packages/"


def read(text: str | bytes) -> list[Event]:
    reading = log_reader.read_logs([log_scan.scan(Source.text(text, "error.log"))])
    return [event for event in reading.events if event.consequence_of is None]


def message(gpu: int = 0, requested: str = "2.32 GiB", free: str = "1.02 GiB") -> str:
    return (
        f"CUDA out of memory. Tried to allocate {requested}. GPU {gpu} has a total capacity of 23.65 GiB of which {free} is free. "
        "Process 4121 has 22.62 GiB memory in use. Of the allocated memory 20.90 GiB is allocated by PyTorch, "
        "and 1.31 GiB is reserved by PyTorch but unallocated."
    )


# -- who wrote it


@for_each(
    "line, rank, local_rank, pid, actor, host",
    [
        ("[rank3]: x", 3, None, None, "", ""),
        ("[Rank 3] x", 3, None, None, "", ""),
        ("[default3]:x", None, 3, None, "", ""),
        ("[1,3]<stderr>:x", 3, None, None, "", ""),
        ("[1,mpirank:3,algo-1]<stderr>:x", 3, None, None, "", "algo-1"),
        ("03: x", 3, None, None, "", ""),
        ("[3] x", 3, None, None, "", ""),
        ("node-7:3: x", 3, None, None, "", "node-7"),
        ("gpu-q-13: [rank5]: x", 5, None, None, "", "gpu-q-13"),
        ("03: [rank3]: x", 3, None, None, "", ""),
        ("(WorkerDict pid=12345, ip=10.0.0.3) x", None, None, 12345, "WorkerDict", "10.0.0.3"),
        ("(RayTrainWorker rank=5, pid=77) x", 5, None, 77, "RayTrainWorker", ""),
        ("[2026-05-06 10:11:12,131] [INFO] [a.py:12:f] [PID:88] [RANK:2] x", 2, None, 88, "", ""),
        ("<134>1 2026-05-06T10:11:12.131Z gpu-q-13 trainer 4121 ID47 - [rank1]: x", 1, None, None, "", "gpu-q-13"),
        ('{"message": "x", "rank": 6, "local_rank": 2, "pid": 991}', 6, 2, 991, "", ""),
        ('2026-05-06T10:11:12.131Z stderr F {"log": "[rank4]: x", "level": "error"}', 4, None, None, "", ""),
        ('{"log": "\\u001b[36m(Actor pid=5)\\u001b[0m [rank1]: x\\n", "stream": "stderr"}', 1, None, 5, "Actor", ""),
        ("2026-05-06T10:11:12Z compute-3: 12: (Actor pid=5) [rank1]: ERROR:root:x", 1, None, 5, "Actor", "compute-3"),
    ],
)
def test_who_wrote_a_line(line: str, rank: int | None, local_rank: int | None, pid: int | None, actor: str, host: str) -> None:
    """Rank, process and host are read from the prefixes, however many are stacked."""
    prefix, text = clean(line)
    assert (prefix.rank, prefix.local_rank, prefix.pid, prefix.actor, prefix.host, text) == (rank, local_rank, pid, actor, host, "x")


@for_each(
    "line",
    [
        "  3%|3         | 12/400 [00:31<16:20,  2.53s/it]",
        "    loss = self.compute_loss(model, inputs)",
        "{'loss': 1.25, 'epoch': 0.1}",
        "4-bit quantisation is on",
        "*****  Running training *****",
        "C:\\work\\_train\\*.py",
        "|   0  NVIDIA A100-SXM4-80GB          On  | 00000000:07:00.0 Off |                    0 |",
        "0 | model | LlamaForCausalLM | 8.0 B  | train",
        "[1]+  Killed                  python train.py",
        'print("a < b && c > d")',
        "tensor([1, 2, 3], device='cuda:0')",
        "torch==2.5.1",
        "train.py:12: UserWarning: lr_scheduler",
        "[malloc_or_wait] Unable to allocate 5 bytes.",
    ],
)
def test_what_is_no_prefix_stays(line: str) -> None:
    """Nothing is taken from an ordinary line."""
    assert clean(line)[1].strip() == line.strip()


@for_each(
    "first, second",
    [
        ("[rank1]: step 7", "[rank9]: step 4"),  # who wrote it
        ("node-1:57300:57307 [6] NCCL INFO x", "node-8:41900:57123 [1] NCCL INFO x"),
        ("[2026-02-01 01:07:45,517] [INFO] [utils.py:782:f] MA 2.69 GB", "[2025-12-31 22:17:06,299] [INFO] [utils.py:311:f] MA 3.01 GB"),
        ("<6>2 app 31 - - x", "<6>1 app 31 - - x"),  # only the second is syslog's
        ("<34>0 2026-10-11T22:14:15Z gpu7 app 31 - - x", "<34>1 2026-10-11T22:14:15Z gpu7 app 31 - - x"),
        ("[56mloss 1", "[36mloss 1"),  # only the second is a colour that lost its escape character
        ("\x1b5x", "\x1b7x"),
        ("a &#99; b", "a &#10; b"),
        ('{"message": "x", "rank": 01}', '{"message": "x", "rank": 10}'),  # only the second is JSON
        (" 10%|# | 1/10 [00:01<00:09]Traceback 1", " 20%|# | 2/10 [00:03<00:08]Traceback 2"),
        ("3: x", "7: y"),
        ('[rank1]:   File "/a.py", line 31, in f', '[rank5]:   File "/a.py", line 47, in f'),
        ('2026-02-01 01:07:45.517,"a ""b"" 1"', '2026-02-01 01:07:45.993,"a ""b"" 2"'),
    ],
)
def test_a_line_that_differs_in_digits_is_read_by_itself(first: str, second: str) -> None:
    """What is remembered of lines that are alike but for their digits holds for each of them."""
    for line in (first, second, first):
        own = clean_short(line.encode())
        assert (own.prefix, own.text) == clean(line)


def test_no_prefix_tells_digits_apart() -> None:
    """But for the version of syslog, which counts as no digit of such a line: what is remembered of prefixes relies on it."""
    for entry in rule_files.table("prefixes"):
        bare = re.sub(r"\\d|\{\d+(?:,\d*)?\}|0-9|>1 |\(\?!1 \)", "", entry["pattern"])
        assert not re.search(r"\d", bare), entry["of"]


def test_a_viewers_numbers_are_no_ranks() -> None:
    """Numbers that count the lines tell nothing; the same form with srun's labels does."""
    viewed = Page("a", Excerpt("\n".join(f"{number:4}: line" for number in range(3, 90)).encode(), 0, 1))
    labelled = Page("a", Excerpt("\n".join(f"{rank}: line" for rank in (0, 1, 3, 2, 0, 1, 2, 3)).encode(), 0, 1))
    assert {viewed.line(index).prefix.rank for index in range(len(viewed))} == {None}
    assert [labelled.line(index).prefix.rank for index in range(8)] == [0, 1, 3, 2, 0, 1, 2, 3]


# -- numbers


@for_each(
    "written, bytes_",
    [
        ("1,50 GiB", 1610612736),
        ("24,576 MiB", 24576 << 20),
        ("1.234,50 MiB", 1294467072),
        ("1,234.50 MiB", 1294467072),
        ("1,500 GiB", None),
    ],
)
def test_numbers_of_other_languages(written: str, bytes_: int | None) -> None:
    """A decimal comma and parted thousands are read; what could be either is no figure, least of all its last part."""
    event = read(f"torch.OutOfMemoryError: {message(requested=written)}\n")[0]
    assert (event.requested.bytes if event.requested else None) == bytes_
    assert str(event.capacity) == "23.65 GiB"


# -- cut messages


@for_each("at", range(len("torch.OutOfMemoryError: CUDA out of memory. T"), len(message()) + 24, 3))
def test_a_message_cut_anywhere_has_right_figures_or_none(at: int) -> None:
    """What is left of a truncated message is read as it stands, and a number that was cut is none."""
    whole = f"torch.OutOfMemoryError: {message()}"
    full = read(whole)[0]
    for end in ("", "...", "\u2026", "[...]", " (truncated)", "\nbye\n"):
        for event in read(f"step 1\n{whole[:at]}{end}"):
            for name in ("requested", "capacity", "free", "process_in_use", "allocated", "reserved_unallocated", "gpu"):
                assert getattr(event, name) in (None, getattr(full, name)), (name, end)


# -- several processes in one line


A, B = (
    f"torch.OutOfMemoryError: {message(gpu, requested, free)}"
    for gpu, requested, free in ((0, "2.32 GiB", "1.02 GiB"), (1, "612.00 MiB", "0.98 GiB"))
)


def told(events: list[Event]) -> dict[int | None, tuple[str, str, str]]:
    every = [one for event in events for one in (event, *event.members)]
    return {event.gpu: (str(event.requested), str(event.free), str(event.allocated)) for event in every}


WHOLE = {0: ("2.32 GiB", "1.02 GiB", "20.90 GiB"), 1: ("612.00 MiB", "0.98 GiB", "20.90 GiB")}


@pytest.mark.parametrize("glue", ["", "\n\n", " "])
def test_two_messages_glued_are_two(glue: str) -> None:
    assert told(read(f"{A}{glue}{B}\n")) == WHOLE


def test_classes_glued_are_one_class() -> None:
    events = read(f"torch.OutOfMemoryErrortorch.OutOfMemoryError: : {message()}\n")
    assert events[0].exception == "torch.OutOfMemoryError"


@for_each("at", range(26, len(A), 7))
def test_a_message_inside_another_is_taken_out(at: int) -> None:
    """One rank's whole sentence in the middle of another's: both are read, or the torn one is dropped, but no figure is another's."""
    seen = told(read(f"{A[:at]}{B}\n{A[at:]}\n"))
    assert seen.get(1) == WHOLE[1]
    mine = [value for gpu, value in seen.items() if gpu != 1]
    for one in mine:
        assert all(shown in ("None", expected) for shown, expected in zip(one, WHOLE[0], strict=True)), seen


@for_each("seed", range(40))
def test_sentences_mixed_in_pieces_give_no_wrong_figure(seed: int) -> None:
    """Pieces of two messages alternate: a figure is right, or it is not there."""
    import random

    dice = random.Random(seed)
    lanes, out = [A + "\n", B + "\n"], ""
    while any(lanes):
        lane = dice.choice([number for number in (0, 1) if lanes[number]])
        size = dice.randint(5, 120)
        out, lanes[lane] = out + lanes[lane][:size], lanes[lane][size:]
    for event in (one for found in read(out) for one in (found, *found.members)):
        if event.gpu is not None:
            shown = (str(event.requested), str(event.free), str(event.allocated))
            assert all(text in ("None", right) for text, right in zip(shown, WHOLE[event.gpu], strict=True)), (out, event)


# -- boxes and notebooks


RICH = """\
╭─────────────────────────────── Traceback (most recent call last) ────────────────────────────────╮
│ /workspace/train.py:88 in main                                                                   │
│                                                                                                  │
│    85 │   trainer = Trainer(model)                                                               │
│ ❱  88 │   trainer.train()                                                                        │
│                                                                                                  │
│ ╭─────────────────────────────────────── locals ───────────────────────────────────────────────╮ │
│ │ batch = tensor([[1, 2, 3]], device='cuda:0')                                                 │ │
│ ╰──────────────────────────────────────────────────────────────────────────────────────────────╯ │
│                                                                                                  │
│ /root/miniconda3/envs/train/lib/python3.10/site-packages/accelerate/deeply/nested/accelerator.py │
│ :2454 in backward                                                                                │
│                                                                                                  │
│ ❱ 2454 │   │   │   loss.backward(**kwargs)                                                       │
╰──────────────────────────────────────────────────────────────────────────────────────────────────╯
OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. GPU 0 has a total capacity of
23.65 GiB of which 1.02 GiB is free.
"""

IPYTHON = f"""\
---------------------------------------------------------------------------
OutOfMemoryError                          Traceback (most recent call last)
Cell In[5], line 22
     20 model.train()
     21 for batch in loader:
---> 22     step(batch)

File {SITE}accelerate/accelerator.py:2454, in Accelerator.backward(self, loss, **kwargs)
   2452     self.scaler.scale(loss).backward(**kwargs)
   2453 else:
-> 2454     loss.backward(**kwargs)

OutOfMemoryError: {message()}
"""

GROUP = f"""\
  + Exception Group Traceback (most recent call last):
  |   File "{SITE}anyio/_backends/_asyncio.py", line 597, in __aexit__
  |     raise exceptions[0]
  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "{SITE}serve/worker.py", line 88, in main
    |     trainer.train()
    |   File "{SITE}accelerate/accelerator.py", line 2454, in backward
    |     loss.backward(**kwargs)
    | torch.OutOfMemoryError: {message()}
    +------------------------------------
"""

LOGURU = f"""\
2026-05-06 10:11:12.131 | ERROR    | __main__:<module>:12 - An error has been caught
Traceback (most recent call last):

> File "/workspace/train.py", line 88, in main
    trainer.train()
    │       └ <function Trainer.train at 0x7f11>
    └ <Trainer object at 0x7f12>

  File "{SITE}accelerate/accelerator.py", line 2454, in backward
    loss.backward(**kwargs)
    │             └ {{}}
    └ tensor(2.31, device='cuda:0')

torch.OutOfMemoryError: {message()}
"""


@for_each("text", [RICH, IPYTHON, GROUP, LOGURU])
def test_frames_out_of_boxes(text: str) -> None:
    """The last frame and its statement, and the message below with its figures."""
    event = read(text)[0]
    assert (event.frames[-1].function.split("(")[0].rpartition(".")[2], event.frames[-1].line) == ("backward", 2454)
    assert event.frames[-1].statement == "loss.backward(**kwargs)"
    assert (len(event.frames), str(event.requested), str(event.free), event.phase) == (2, "2.32 GiB", "1.02 GiB", "backward")
    assert event.exception.endswith("OutOfMemoryError")


def notebook() -> dict[str, object]:
    red, off = "\x1b[0;31m", "\x1b[0m"
    frames = [
        f"{red}---------------------------------------------------------------------------{off}",
        f"{red}OutOfMemoryError{off}                          Traceback (most recent call last)",
        f"Cell {red}In[5], line 22{off}\n\x1b[1;32m     20{off} model.train()\n\x1b[0;32m---> 22{off} step(batch)\n",
        f"File {SITE}accelerate/accelerator.py:2454, in {red}Accelerator.backward{off}(self, loss)\n-> 2454     loss.backward(**kwargs)\n",
        f"{red}OutOfMemoryError{off}: {message()}",
    ]
    error = {"ename": "OutOfMemoryError", "evalue": message(), "output_type": "error", "traceback": frames}
    return {"cells": [{"cell_type": "code", "outputs": [error], "source": ["step(batch)\n"]}], "nbformat": 4}


@pytest.mark.parametrize("indent", [1, None])
def test_a_notebook_as_a_file(indent: int | None) -> None:
    """The cleanest message is `evalue`, the frames are in the array below it; also where the whole file is one line."""
    events = read(json.dumps(notebook(), indent=indent))
    assert told(events) == {0: ("2.32 GiB", "1.02 GiB", "20.90 GiB")}
    assert (events[0].exception, events[0].phase) == ("OutOfMemoryError", "backward")
    assert events[0].frames[-1].function.startswith("Accelerator.backward")


def test_a_record_that_holds_the_traceback() -> None:
    """One JSON line of a logger: the message in one key, the traceback with its line ends in another."""
    trace = f'Traceback (most recent call last):\n  File "{SITE}accelerate/accelerator.py", line 2454, in backward\n    loss.backward()\n'
    for record in (
        {"event": "failed", "rank": 3, "exception": f"{trace}torch.OutOfMemoryError: {message()}"},
        {
            "message": {
                "message": f"OutOfMemoryError: {message()}",
                "extraInfo": {"py_callstack": f"{trace}torch.OutOfMemoryError: {message()}\n"},
            }
        },
        {"log": json.dumps({"message": f"{trace}torch.OutOfMemoryError: {message()}"}) + "\n", "stream": "stderr"},
    ):
        events = read(json.dumps(record) + "\n")
        assert told(events) == {0: ("2.32 GiB", "1.02 GiB", "20.90 GiB")}
        assert [frame.function for frame in events[0].frames] == ["backward"]
        assert events[0].rank == record.get("rank")


def test_line_ends_of_an_old_mac() -> None:
    """Only carriage returns: the traceback stands in the same line as its message."""
    text = f'Traceback (most recent call last):\r  File "{SITE}a.py", line 3, in backward\r    loss.backward()\rtorch.OutOfMemoryError: {message()}\r'  # noqa: E501
    event = read(text)[0]
    assert ([frame.function for frame in event.frames], str(event.free)) == (["backward"], "1.02 GiB")
