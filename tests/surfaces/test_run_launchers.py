"""`oomdoctor run` around a launcher and under one: torchrun and srun as their ranks see them, as real trees of processes.

The launchers here do what the real ones do at the boundary of processes: they set the variables of a rank, start one process for each,
end the others with SIGTERM when one fails, and say so at the end. (The real torchrun of torch 2.13 was tried by hand.)
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from terminals import OOM, RUN, environment

LAUNCHER = """
import os, signal, subprocess, sys, time
kind, count, *words = sys.argv[1:]
def variables(rank):
    if kind == "torchrun":
        return {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count, "TORCHELASTIC_RUN_ID": "none", "MASTER_ADDR": "127.0.0.1"}
    return {"SLURM_PROCID": rank, "SLURM_LOCALID": rank, "SLURM_NTASKS": count, "SLURM_JOB_ID": "77", "SLURM_STEP_ID": "0"}
ranks = [subprocess.Popen(words, env={**os.environ, **{k: str(v) for k, v in variables(rank).items()}}) for rank in range(int(count))]
def stop(*_):
    for each in ranks:
        if each.poll() is None: each.terminate()
signal.signal(signal.SIGTERM, stop)
while all(each.poll() is None for each in ranks):
    time.sleep(0.02)
failed = next((at for at, each in enumerate(ranks) if each.poll()), None)
if failed is not None:
    stop()
for each in ranks: each.wait()
if failed is not None:
    name = "srun: error: host: task %d: Exited with exit code 1" if kind == "srun" else "ChildFailedError: rank : %d  exitcode  : 1"
    print(name % failed, file=sys.stderr)
    sys.exit(1)
"""
TRAIN = f"""
import os, sys, time
rank = int(os.environ.get("RANK", os.environ.get("SLURM_PROCID", "0")))
os.write(1, b"rank %d ready\\n" % rank)
if rank == 1 or len(sys.argv) > 1:
    time.sleep(0.3)
    raise RuntimeError({OOM!r})
time.sleep(20)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "launch.py").write_text(LAUNCHER)
    (tmp_path / "train.py").write_text(TRAIN)
    return tmp_path


def ran(folder: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    env = environment(TMPDIR=str(folder))
    return subprocess.run([*words], cwd=folder, env=env, capture_output=True, timeout=60, check=False)


@pytest.mark.parametrize("kind", ["torchrun", "srun"])
def test_around_a_launcher(folder: Path, kind: str) -> None:
    """One log, one answer after the launcher's own last words, its exit status; ranks that were ended are no second failure."""
    train = [sys.executable, "launch.py", kind, "2", sys.executable, "train.py"]
    done = ran(folder, *RUN, "--log", "kept.log", "--", *train)
    assert done.returncode == 1 and sorted(done.stdout.splitlines()) == [b"rank 0 ready", b"rank 1 ready"]
    launcher, _, answer = done.stderr.partition(b"\nOUT OF MEMORY (kept.log:")
    assert (b"task 1" if kind == "srun" else b"rank : 1") in launcher and b"4.64 GiB requested" in answer
    assert b"OUT OF" not in launcher and b"and 1 more" not in answer and [path.name for path in folder.glob("*.log")] == ["kept.log"]


@pytest.mark.parametrize("kind", ["torchrun", "srun"])
def test_under_a_launcher(folder: Path, kind: str) -> None:
    """A log for each rank; the rank that failed answers, the one that was ended is silent about memory and ends as it was told to."""
    rank = [*RUN, "--log", "kept.log", "--", sys.executable, "train.py"]
    done = ran(folder, sys.executable, "launch.py", kind, "2", *rank)
    assert done.returncode == 1 and done.stderr.count(b"OUT OF MEMORY") == 1
    assert {path.name for path in folder.glob("*.log")} == {"kept.rank0.log", "kept.rank1.log"}
    assert b"OutOfMemory" not in (folder / "kept.rank0.log").read_bytes() and b"kept.rank1.log" in done.stderr


def test_all_ranks_fail_and_one_answers(folder: Path) -> None:
    """The others say in one sentence that they failed too."""
    rank = [*RUN, "--log", "kept.log", "--", sys.executable, "train.py", "everybody"]
    done = ran(folder, sys.executable, "launch.py", "torchrun", "3", *rank)
    assert done.stderr.count(b"\nOUT OF MEMORY") == 1 and done.returncode == 1
    assert {path.name for path in folder.glob("*.log")} == {f"kept.rank{number}.log" for number in range(3)}


CLAIMED = """
import os, signal
from diagnose.surfaces.cli import entry
from diagnose.surfaces.run import run_command
claim = run_command.first_to_answer
def claim_and_be_ended(*arguments):
    is_first = claim(*arguments)
    os.kill(os.getpid(), signal.SIGTERM)
    return is_first
run_command.first_to_answer = claim_and_be_ended
entry.run()
"""


def test_a_rank_that_is_ended_after_it_has_claimed_the_answer_prints_it(folder: Path) -> None:
    """The launcher ends it because another rank, which leaves the answer to it, has exited."""
    command = [sys.executable, "-c", CLAIMED, "run", "--log", "kept.log", "--", sys.executable, "train.py", "everybody"]
    env = environment(RANK="0", WORLD_SIZE="2")
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, timeout=60, check=False)
    assert done.stderr.count(b"\nOUT OF MEMORY") == 1 and done.returncode == 1


def test_a_signal_to_the_job_reaches_every_rank(folder: Path) -> None:
    """`scancel` and a time limit: SIGTERM to the tree of processes ends all of it, without an answer about memory."""
    (folder / "train.py").write_text("import os, time; os.write(1, b'ready\\n'); time.sleep(30)\n")
    words = [*RUN, "--log", "kept.log", "--", sys.executable, "launch.py", "srun", "2", sys.executable, "train.py"]
    with subprocess.Popen(words, cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as begun:
        assert begun.stdout is not None and begun.stderr is not None
        assert begun.stdout.readline() == begun.stdout.readline() == b"ready\n"
        began = time.monotonic()
        begun.send_signal(signal.SIGTERM)
        said = begun.stderr.read()
        assert begun.wait(20) != 0 and time.monotonic() - began < 15
    assert b"OUT OF MEMORY" not in said
