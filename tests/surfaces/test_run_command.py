"""`oomdoctor run`: the real process, as a user starts it; the command must not notice, and its death is explained."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from forked import ENTRY, forked_bytes
from terminals import OOM, RUN, environment

from diagnose.surfaces.run import run_log


def run(
    folder: Path, *words: str, env: Mapping[str, str] | None = None, stdin: bytes = b"", options: tuple[str, ...] = ("--log", "kept.log")
) -> subprocess.CompletedProcess[bytes]:
    return forked_bytes(ENTRY, "run", *options, "--", *words, cwd=folder, env=env or environment(), input=stdin)


def python(text: str) -> tuple[str, ...]:
    return sys.executable, "-c", text


def start(folder: Path, *words: str, **options: object) -> subprocess.Popen[bytes]:
    """The process, in a group of its own, once its command has said that it is ready."""
    begun = subprocess.Popen(
        [*RUN, "--log", "kept.log", "--", *words],
        cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    assert begun.stdout is not None
    assert begun.stdout.readline() == b"ready\n"
    return begun


def test_output_and_status_pass(tmp_path: Path) -> None:
    """Standard output and error stay apart, bytes stay bytes, the status is the command's; an unremarkable failure adds nothing."""
    done = run(tmp_path, *python(r"import os; os.write(1, b'\x00\xff\r50%\r100%\n'); os.write(2, b'bad\n'); os._exit(3)"))
    assert (done.returncode, done.stdout, done.stderr) == (3, b"\x00\xff\r50%\r100%\n", b"bad\n")
    assert sorted((tmp_path / "kept.log").read_bytes().split(b"\n")) == sorted(b"\x00\xff\r50%\r100%\nbad\n".split(b"\n"))


def test_one_place_keeps_its_order(tmp_path: Path) -> None:
    """With 2>&1 the two streams are one, in the order of writing."""
    code = "import os\nfor at in range(300): os.write(1 + at % 2, b'%d\\n' % at)"
    done = subprocess.run(
        [*RUN, "--log", "kept.log", *python(code)], cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert done.stdout.split() == [b"%d" % at for at in range(300)] == (tmp_path / "kept.log").read_bytes().split()


def test_standard_input_is_the_commands(tmp_path: Path) -> None:
    """What is piped in reaches the command, also its end."""
    assert run(tmp_path, "cat", stdin=b"x" * 60_000).stdout == b"x" * 60_000


def test_the_log_is_there_first(tmp_path: Path) -> None:
    """The command finds the log that it is kept in; without --log it lies in the folder that the command was started in."""
    assert run(tmp_path, "sh", "-c", "ls *.log", options=()).stdout.startswith(b"oomdoctor-")
    assert run(tmp_path, "ls", "kept.log").stdout == b"kept.log\n"


def test_a_good_end_leaves_no_log_behind(tmp_path: Path) -> None:
    """Unless one was asked for; of a failure it stays."""
    run(tmp_path, "echo", "fine", options=())
    assert not list(tmp_path.glob("oomdoctor-*"))
    run(tmp_path, "sh", "-c", "exit 3", options=())
    assert len(list(tmp_path.glob("oomdoctor-*"))) == 1


@pytest.mark.parametrize(
    "lang, said", [("en", "no memory failure was found; the output is in"), ("zh", "没有发现内存或显存不足；输出保存在")]
)
def test_a_log_that_nobody_asked_for_is_named(tmp_path: Path, lang: str, said: str) -> None:
    """A failure of another kind: one line says where the output is; with --log none is needed."""
    done = run(tmp_path, "sh", "-c", "exit 3", options=("--lang", lang))
    (log,) = tmp_path.glob("oomdoctor-*")
    assert said in done.stderr.decode() and log.name in done.stderr.decode()
    assert not run(tmp_path, "sh", "-c", "exit 3").stderr


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_signal_that_ended_it_is_told_as_shells_do(tmp_path: Path, number: signal.Signals) -> None:
    """128 and the number of the signal."""
    assert run(tmp_path, "sh", "-c", f"kill -{int(number)} $$").returncode == 128 + number


def test_what_cannot_be_started(tmp_path: Path) -> None:
    """127 and 126 as shells say it, one sentence, and no empty file left that nobody asked for."""
    (tmp_path / "plain").write_text("x")
    missing, refused = run(tmp_path, "no-such-command", options=()), run(tmp_path, "./plain", options=())
    assert (missing.returncode, refused.returncode) == (127, 126)
    assert missing.stderr.count(b"\n") == refused.stderr.count(b"\n") == 1
    assert not list(tmp_path.glob("*.log"))


def test_a_script_without_a_first_line_is_the_shells(tmp_path: Path) -> None:
    """As from a shell, or with env."""
    script = tmp_path / "script"
    script.write_text("echo from $0 $1\n")
    script.chmod(0o755)
    assert run(tmp_path, "./script", "x").stdout == b"from ./script x\n"


def test_death_of_memory_is_explained_on_standard_error(tmp_path: Path) -> None:
    """Nothing of the answer is on standard output; the command line says what was set, with the configs that it names."""
    (tmp_path / "train.py").write_text(f"import sys\nprint('step 1')\nprint({OOM!r}, file=sys.stderr)\nsys.exit(1)\n")
    done = run(tmp_path, sys.executable, "train.py", options=("--log", "logs/kept.log", "--gpu", "A100-80GB"))
    assert (done.returncode, done.stdout) == (1, b"step 1\n")
    assert b"OUT OF MEMORY" in done.stderr and b"4.64 GiB" in done.stderr and b"logs/kept.log" in done.stderr
    assert b"all details: `oomdoctor explain " in done.stderr and b"All details: --verbose" not in done.stderr
    assert b"no command or class of a known trainer" not in done.stderr


def test_it_speaks_chinese(tmp_path: Path) -> None:
    assert "显存不足" in run(tmp_path, "sh", "-c", f"echo '{OOM}'; exit 1", options=("--lang", "zh", "--log", "k")).stderr.decode()


def test_the_command_is_read_as_a_config(tmp_path: Path) -> None:
    """Length and batch size need not be given twice."""
    (tmp_path / "llamafactory-cli").write_text(f"#!/bin/sh\necho '{OOM}'\nexit 1\n")
    (tmp_path / "llamafactory-cli").chmod(0o755)
    (tmp_path / "sft.yaml").write_text(
        "model_name_or_path: Qwen/Qwen2.5-7B-Instruct\nstage: sft\nfinetuning_type: lora\ncutoff_len: 4096\n"
    )
    words = ("./llamafactory-cli", "train", "sft.yaml")
    done = run(tmp_path, *words, options=("--log", "k", "--format", "json"))
    assert b'"train.max_seq_len"' in done.stderr and b'"sft.yaml"' in done.stderr


@pytest.mark.parametrize(
    ("variables", "painted"), [({}, False), ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False)]
)
def test_colour_in_a_pipe_is_for_who_asks(tmp_path: Path, variables: dict[str, str], painted: bool) -> None:
    """A scheduler's log that is read in colour: FORCE_COLOR holds for the answer as for every other text of ours."""
    plain = {name: value for name, value in environment().items() if name not in ("FORCE_COLOR", "NO_COLOR")}
    done = run(tmp_path, *python(f"raise SystemExit({OOM!r})"), env={**plain, **variables})
    assert (b"\x1b[1;97;41mOUT OF MEMORY" in done.stderr) is painted and b"OUT OF MEMORY" in done.stderr


def test_the_snapshot_that_the_command_leaves_is_read(tmp_path: Path) -> None:
    """Named before it is there; the failed request is then known to 512 bytes. One from an earlier run is of another failure."""
    import pickle

    from snapshots_made import LOGITS, MESSAGE, made

    (tmp_path / "made.pickle").write_bytes(pickle.dumps(made(LOGITS)))
    dying = python(f"import shutil; shutil.copyfile('made.pickle', 'oom.pickle'); raise SystemExit({MESSAGE!r})")
    options = ("--log", "kept.log", "--snapshot", "oom.pickle")
    done = run(tmp_path, *dying, options=options)
    assert done.returncode == 1 and b"Memory snapshot" in done.stderr and b"loss_utils.py:36" in done.stderr
    os.utime(tmp_path / "oom.pickle", (1, 1))
    done = run(tmp_path, *python(f"raise SystemExit({MESSAGE!r})"), options=options)
    assert b"left no memory snapshot in oom.pickle" in done.stderr and b"Memory snapshot" not in done.stderr
    assert b"OUT OF MEMORY" in done.stderr


def test_success_is_not_explained(tmp_path: Path) -> None:
    """A run that survived its failure (a smaller batch was tried) is no patient."""
    done = run(tmp_path, "sh", "-c", f"echo '{OOM}' >&2")
    assert (done.returncode, done.stderr.decode()) == (0, OOM + "\n")


def test_a_kill_is_noted(tmp_path: Path) -> None:
    """A SIGKILL leaves no word in the output; the note at the end of the log lets a later `explain` say the same."""
    done = run(tmp_path, "sh", "-c", "echo begun; kill -9 $$")
    assert b"PROBABLY MEMORY" in done.stderr
    assert (tmp_path / "kept.log").read_text().startswith("begun\noomdoctor: the command was killed")


# -- trouble of ours


@pytest.mark.parametrize("place", ["/dev/full", "/proc/nowhere/k.log", "{folder}", "{folder}/fifo"])
def test_a_log_that_cannot_be_kept(tmp_path: Path, place: str) -> None:
    """One sentence; the command runs, and its death is still explained, from memory."""
    os.mkfifo(tmp_path / "fifo")
    done = run(tmp_path, "sh", "-c", f"echo out; echo '{OOM}' >&2; exit 7", options=("--log", place.format(folder=tmp_path)))
    assert (done.returncode, done.stdout) == (7, b"out\n")
    first, _, rest = done.stderr.partition(b"\n")
    assert first.startswith(b"oomdoctor: ") and b"OUT OF MEMORY" in rest


def test_a_full_disk_under_the_log(tmp_path: Path) -> None:
    """A limit on file sizes stands for a full disk: the output goes on, the end of it is remembered."""
    words = [*RUN, "--log", "kept.log", "--", "sh", "-c", "yes | head -c 3000000; echo; cat oom; exit 4"]
    code = f"import resource, os\nresource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))\nos.execvp({RUN[0]!r}, {words!r})"
    (tmp_path / "oom").write_text(OOM + "\n")
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment(), capture_output=True)
    assert (done.returncode, len(done.stdout)) == (4, 3_000_000 + 1 + len(OOM) + 1)
    assert (tmp_path / "kept.log").stat().st_size == 65536
    assert b"kept.log could not be written" in done.stderr and b"OUT OF MEMORY" in done.stderr


def test_a_log_where_the_output_goes_anyway(tmp_path: Path) -> None:
    """`run --log train.log ... > train.log` must not write everything twice."""
    with (tmp_path / "kept.log").open("wb") as out:
        subprocess.run(
            [*RUN, "--log", "kept.log", "--", "echo", "once"], cwd=tmp_path, env=environment(), stdout=out, stderr=subprocess.DEVNULL
        )
    assert (tmp_path / "kept.log").read_bytes() == b"once\n"


def test_a_mistake_in_the_diagnosis_changes_nothing(tmp_path: Path) -> None:
    """A rules folder that does not exist, a model that nobody knows: a sentence, and the command's status."""
    done = run(tmp_path, "sh", "-c", f"echo '{OOM}'; exit 5", options=("--log", "k", "--model", "no/such-model"))
    assert (done.returncode, done.stderr.count(b"\n")) == (5, 1)
    assert done.stderr.startswith(b"oomdoctor: ")


@pytest.mark.parametrize("late", [0, 1], ids=["at once", "when the command has ended"])
def test_a_mistake_in_the_relay_changes_nothing(tmp_path: Path, late: int) -> None:
    """Whatever breaks in the copying, and whenever, the output and the status arrive."""
    code = (
        "import sys, time\nfrom diagnose.surfaces.cli import entry\nfrom diagnose.surfaces.run import pty_tee\n"
        f"def broken(*_): time.sleep({late}); raise ZeroDivisionError\n"
        "pty_tee.OutputTee.forward = broken\n"
        "sys.argv = ['oomdoctor', 'run', '--log', 'k', '--', 'sh', '-c', 'echo one; sleep 0.3; echo two; exit 6']\n"
        "entry.main()"
    )
    done = subprocess.run([*python(code)], cwd=tmp_path, env=environment(), capture_output=True, timeout=30)
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (6, b"one\ntwo\n", 1)


def test_closed_streams_stay_closed(tmp_path: Path) -> None:
    """A command started without standard output finds none, and no file of ours in its place."""
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" <&- >&-', "sh", *RUN, "--log", "k", "--", "sh", "-c", "ls -l /proc/self/fd/1 2>/dev/null || exit 9"],
        cwd=tmp_path, env=environment(), stderr=subprocess.PIPE,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (9, b"")


def test_a_reader_that_goes_away(tmp_path: Path) -> None:
    """`| head -1`: the command gets its SIGPIPE as it would have; nothing waits for ever."""
    line = f"{' '.join(RUN)} --log k -- yes | head -1"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {line}"], cwd=tmp_path, env=environment(), capture_output=True, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (141, b"y\n", b"")


def test_descendants_print_on(tmp_path: Path) -> None:
    """A process that the command leaves behind keeps its output, as without us; we do not wait for it."""
    begun = time.monotonic()
    read, write = os.pipe()
    words = ("sh", "-c", "(sleep 2; echo late) & echo done")
    with subprocess.Popen([*RUN, "--log", "k", "--", *words], cwd=tmp_path, env=environment(), stdout=write, stderr=write) as process:
        os.close(write)
        assert process.wait() == 0
        assert time.monotonic() - begun < 1.9
        with os.fdopen(read, "rb") as out:
            assert out.read() == b"done\nlate\n"
    assert (tmp_path / "k").read_bytes() == b"done\nlate\n"


def test_much_output(tmp_path: Path) -> None:
    """All of 200 MB arrives, in the log too."""
    done = subprocess.run(
        f"{' '.join(RUN)} --log kept.log -- head -c 200000000 /dev/zero | wc -c",
        shell=True,
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
    )
    assert done.stdout.split() == [b"200000000"]
    assert (tmp_path / "kept.log").stat().st_size == 200_000_000


def test_the_end_does_not_wait_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ext4 writes a file out that is closed after a truncation: a new log is not truncated, one that is written over is closed while
    it is empty."""
    path, done = tmp_path / "kept.log", list[tuple[str, int]]()

    def noted(name: str, call: Callable[..., None]) -> Callable[..., None]:
        def noting(file: int, *more: int) -> None:
            done.append((name, os.fstat(file).st_ino))
            call(file, *more)

        return noting

    monkeypatch.setattr(os, "ftruncate", noted("truncated", os.ftruncate))
    monkeypatch.setattr(os, "close", noted("closed", os.close))
    run_log.RunLog(str(path)).write(b"x")
    assert done == []
    run_log.RunLog(str(path)).write(b"y")
    same = path.stat().st_ino
    assert done == [("truncated", same), ("closed", same)] and path.read_bytes() == b"y"


# -- signals

COUNTS = """
import signal, sys, time
got = []
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP):
    signal.signal(number, lambda number, _: got.append(signal.Signals(number).name))
print("ready", flush=True)
end = time.monotonic() + 15
while time.monotonic() < end:
    if got: end = min(end, time.monotonic() + 0.5)  # for a second one
    time.sleep(0.05)
print(*got, flush=True)
sys.exit(9)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP])
@pytest.mark.parametrize("whole_group", [False, True])
def test_a_signal_arrives_once(tmp_path: Path, number: signal.Signals, whole_group: bool) -> None:
    """Sent to us alone it is passed on; sent to the group (a terminal, a launcher) the command has it already."""
    begun = start(tmp_path, *python(COUNTS))
    (os.killpg if whole_group else os.kill)(begun.pid, number)
    out, err = begun.communicate(timeout=30)
    assert (begun.returncode, out.decode().split(), err) == (9, [number.name], b"")


def test_what_is_ignored_stays_ignored(tmp_path: Path) -> None:
    """nohup: the command inherits that hang-ups are ignored."""
    done = subprocess.run(
        ["nohup", *RUN, "--log", "k", "--", "sh", "-c", "grep SigIgn /proc/self/status"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
    )
    mask = int(done.stdout.split()[1], 16)
    assert mask & 1 << signal.SIGHUP - 1
    assert not mask & 1 << signal.SIGPIPE - 1


def test_killing_us_kills_the_command(tmp_path: Path) -> None:
    """A launcher that kills its worker means the training: no orphan goes on holding the card."""
    begun = start(
        tmp_path, *python("import os, time; print('ready', flush=True); open('pid', 'w').write(str(os.getpid())); time.sleep(60)")
    )
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        time.sleep(0.02)
    pid = int((tmp_path / "pid").read_text())
    begun.kill()
    begun.communicate()
    for _ in range(100):
        if not Path(f"/proc/{pid}").exists() or "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text():
            return
        time.sleep(0.05)
    pytest.fail("the command lives on")


# -- launchers


def test_one_rank_answers_at_length(tmp_path: Path) -> None:
    """Three ranks that die together: a log for each, one long answer, two sentences; the next launch answers again."""
    for _ in range(2):
        ranks = [
            subprocess.Popen(
                [*RUN, "--log", "train.log", "--", "sh", "-c", f"sleep 1; echo '{OOM}'; exit 1"], cwd=tmp_path, stderr=subprocess.PIPE,
                stdout=subprocess.DEVNULL, env=environment(RANK=str(rank), WORLD_SIZE="3", MASTER_PORT="29500"),
            )
            for rank in range(3)
        ]  # fmt: skip
        said = sorted((process.communicate()[1] for process in ranks), key=len)
        assert [text.count(b"\n") for text in said[:2]] == [1, 1]
        assert all(
            b"4.64 GiB requested, 1.41 GiB free (its log: train.rank" in text for text in said[:2]
        )  # the reasons stand in the long one
        assert b"OUT OF MEMORY" in said[2]
        assert {process.returncode for process in ranks} == {1}
    assert sorted(path.name for path in tmp_path.glob("*.log")) == [f"train.rank{rank}.log" for rank in range(3)]
