"""Which of a script's commands failed: the log tells by its traceback or its echo, and what is read and edited is that one."""

from __future__ import annotations

from collected import for_each

from diagnose.adapters import config_reader
from diagnose.adapters.formats.settings import ConfigSource, Settings
from diagnose.facts import FactBook, Value
from diagnose.parse import log_reader
from diagnose.plan.edits import knob_edits
from diagnose.plan.patch import patching
from diagnose.scan.log_scan import scan
from diagnose.scan.source import Source

SFT = "python sft.py --output_dir o --per_device_train_batch_size 8 --num_train_epochs 1"
DPO = "python dpo.py --output_dir o --per_device_train_batch_size 4 --num_train_epochs 1"
SCRIPT = f"#!/bin/bash\npython clean.py --in a --out b\n{SFT}\n{DPO}\nvllm serve a/b --max-num-seqs 8\n"
FAILED = (
    'Traceback (most recent call last):\n  File "{}", line 3, in <module>\n    main()\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which "
    "1.00 GiB is free.\n"
)


def read(log: str, **scripts: str) -> Settings:
    reading = log_reader.read_logs([scan(Source.text(log, "error.log"))])
    return config_reader.read([ConfigSource(f"{name}.sh", text.encode()) for name, text in scripts.items()], reading, FactBook())


def rows(told: Settings) -> Value:
    return FactBook(told.facts).value("train.micro_batch_size")


@for_each(
    "log, found",
    [
        (FAILED.format("/home/u/dpo.py"), 4),
        (FAILED.format("/home/u/sft.py"), 8),
        (FAILED.format("/venv/lib/python3.11/site-packages/x/dpo.py"), 8),  # nobody's script: the first trainer, as without a log
        (FAILED.format("C:\\\\work\\\\dpo.py"), 4),
        (f"+ {SFT}\n+ {DPO}\n" + FAILED.format("/home/u/dpo.py"), 4),
        (f"+ {DPO}\n" + FAILED.format("/home/u/other.py"), 4),
        (FAILED.format("/home/u/other.py"), 8),
    ],
)
def test_the_command_that_failed_is_read(log: str, found: int) -> None:
    """The first trainer of the script counts only where the log says nothing of the others."""
    assert rows(read(log, run=SCRIPT)) == found


def test_the_command_that_failed_is_edited() -> None:
    told = read(FAILED.format("/home/u/dpo.py"), run=SCRIPT)
    made = knob_edits.edits(told.documents, FactBook(told.facts), {"train.micro_batch_size": 1})
    assert made and patching.texts(told.documents, made)["run.sh"] == SCRIPT.replace("batch_size 4", "batch_size 1")


def test_of_two_scripts_the_one_that_failed_is_read() -> None:
    told = read(FAILED.format("dpo.py"), first=f"{SFT}\n", second=f"{DPO}\n")
    assert rows(told) == 4


def test_of_one_program_started_twice_the_echo_says_which() -> None:
    """Its options are those of one of the two."""
    twice = f"{DPO} --learning_rate 1e-5\n{DPO.replace('size 4', 'size 2')} --learning_rate 5e-6\n"
    log = f"+ {DPO.replace('size 4', 'size 2')} --learning_rate 5e-6\n" + FAILED.format("dpo.py")
    told = read(log, run=twice)
    made = knob_edits.edits(told.documents, FactBook(told.facts), {"train.micro_batch_size": 1})
    assert made and patching.texts(told.documents, made)["run.sh"] == twice.replace("size 2", "size 1")


def test_a_server_beside_the_trainer_is_read_all_the_same() -> None:
    """What does not train is not what failed to be told apart."""
    documents = read(FAILED.format("dpo.py"), run=SCRIPT).documents
    assert {"vllm", "transformers"} <= {document.framework for document in documents}
