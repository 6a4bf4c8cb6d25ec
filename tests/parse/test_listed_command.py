"""DeepSpeed's launcher lists, in Python's own writing, the command of the process that ended: it is read as what was launched."""

from __future__ import annotations

from collected import for_each

from diagnose.parse import log_reader
from diagnose.scan.log_scan import scan
from diagnose.scan.source import Source

ENDED = "[2025-03-02 04:04:41,005] [ERROR] [launch.py:325:sigkill_handler] {} exits with return code = -9\n"
SPAWNED = "[2025-03-02 04:00:00,001] [INFO] [launch.py:256:main] process 487 spawned with command: {}\n"


def commands(log: str) -> list[str]:
    return [command.text for command in log_reader.read_logs([scan(Source.text(log, "error.log"))]).commands]


@for_each(
    "log, told",
    [
        (  # its last process is of the highest local rank
            ENDED.format("['/usr/bin/python3', '-u', 'src/train.py', '--local_rank=3', '--bf16', '--output_dir', 'my out']"),
            "deepspeed --num_gpus=4 src/train.py --bf16 --output_dir 'my out'",
        ),
        (
            ENDED.format("""['/usr/bin/python3', '-u', '-m', 'openrlhf.cli.train_sft', '--local_rank=1', '--zero_stage', '2']"""),
            "deepspeed --num_gpus=2 --module openrlhf.cli.train_sft --zero_stage 2",
        ),
        (
            ENDED.format("['python', 'train.py', '--note', \"it's\"]"),
            "deepspeed train.py --note 'it'\"'\"'s'",
        ),  # launched with --no_local_rank
        (  # one of several hosts: nobody counts the others
            "worker-1: " + ENDED.format("['python', '-u', 'train.py', '--local_rank=7']"),
            "deepspeed train.py",
        ),
        (
            SPAWNED.format("['python', '-u', 'train.py', '--local_rank=0', '--lr', '1e-5']")
            + SPAWNED.format("['python', '-u', 'train.py', '--local_rank=1', '--lr', '1e-5']")
            + "[2025-03-02 04:04:41,005] [INFO] [launch.py:319:sigkill_handler] Killing subprocess 487\nexits with return code = -9\n",
            "deepspeed --num_gpus=2 train.py --lr 1e-5",
        ),
    ],
)
def test_the_list_is_read_as_the_launchers_command(log: str, told: str) -> None:
    assert commands(log) == [told]


def test_what_the_launcher_echoed_itself_comes_first() -> None:
    listed = ENDED.format("['python', '-u', 'train.py', '--local_rank=7']")
    assert commands("+ deepspeed --num_gpus 8 train.py --lr 1e-5\n" + listed) == ["deepspeed --num_gpus 8 train.py --lr 1e-5"]


@for_each("words", ["[]", "['python']", "['python', '-u']", "['python', '-u', '--local_rank=0']"])
def test_a_list_without_a_program_is_no_command(words: str) -> None:
    assert commands(ENDED.format(words)) == []
