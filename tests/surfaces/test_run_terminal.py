"""`oomdoctor run` on a terminal: the command sees one of the same size and kind, and the keys reach it once."""

from __future__ import annotations

import os
import pty
import shutil
import signal
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cases import CORPUS
from terminals import OOM, RUN, Terminal, environment


@contextmanager
def terminal(folder: Path, *words: str, redirect: str = "", options: tuple[str, ...] = (), **env: str) -> Iterator[Terminal]:
    """Start a command under `run` on a terminal of 33 lines and 101 columns. `redirect`: what a shell does with some of its streams."""
    line = [*RUN, "--log", "kept.log", *options, "--", *words]
    pid, master = pty.fork()
    if not pid:
        os.chdir(folder)
        termios.tcsetwinsize(0, (33, 101))
        argv = ["sh", "-c", f'exec "$@" {redirect}', "sh", *line] if redirect else line
        os.execvpe(argv[0], argv, environment(TERM="xterm", **env))
    shown = Terminal(master, pid)
    try:
        yield shown
    finally:
        try:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass
        os.close(master)


def python(text: str) -> tuple[str, ...]:
    return sys.executable, "-c", text


def test_the_command_sees_a_terminal_of_that_size(tmp_path: Path) -> None:
    """Colours and progress bars depend on it."""
    code = (
        "import os, sys; print(*[f.isatty() for f in (sys.stdin, sys.stdout, sys.stderr)],"
        " *os.get_terminal_size(1), *os.get_terminal_size(2))"
    )
    with terminal(tmp_path, *python(code)) as shown:
        assert shown.end() == 0
        assert shown.seen == b"True True True 101 33 101 33\r\n"


def test_bytes_are_neither_added_nor_lost(tmp_path: Path) -> None:
    """A bar redraws itself; the log holds what was written, the terminal shows what it would have shown."""
    code = r"import os; os.write(2, b'\x1b[31m 50%\r100%\x1b[0m\n\tend\n')"
    with terminal(tmp_path, *python(code)) as shown:
        assert shown.end() == 0
        assert shown.seen == b"\x1b[31m 50%\r100%\x1b[0m\r\n\tend\r\n"
    assert (tmp_path / "kept.log").read_bytes() == b"\x1b[31m 50%\r100%\x1b[0m\n\tend\n"


def test_a_stream_that_is_redirected_is_no_terminal(tmp_path: Path) -> None:
    """`2> file` on a terminal: only standard output is one, and the file gets the other."""
    code = "import sys; print(sys.stdout.isatty(), sys.stderr.isatty(), file=sys.stdout); print('err', file=sys.stderr)"
    with terminal(tmp_path, *python(code), redirect="2> err") as shown:
        assert shown.end() == 0
        assert shown.seen == b"True False\r\n"
    assert (tmp_path / "err").read_bytes() == b"err\n"
    assert sorted((tmp_path / "kept.log").read_text().splitlines()) == ["True False", "err"]


def test_a_new_size_arrives(tmp_path: Path) -> None:
    """The window is made larger: the command is told, and finds the new size."""
    code = (
        "import os, signal, sys, time\n"
        "def told(*_):\n"
        "    if os.get_terminal_size(1).columns == 123: print('now', *os.get_terminal_size(1), flush=True); os._exit(0)\n"
        "signal.signal(signal.SIGWINCH, told)\n"
        "print('ready', flush=True)\n"
        "time.sleep(15)"
    )
    with terminal(tmp_path, *python(code)) as shown:
        shown.until(b"ready")
        termios.tcsetwinsize(shown.master, (44, 123))
        assert shown.end() == 0
        assert b"now 123 44" in shown.seen


def test_the_interrupt_key_arrives_once(tmp_path: Path) -> None:
    """A second interrupt would break the saving of a checkpoint that the first began."""
    code = (
        "import signal, sys, time\n"
        "got = []\n"
        "signal.signal(signal.SIGINT, lambda *_: got.append(1))\n"
        "print('ready', flush=True)\n"
        "end = time.monotonic() + 1.5\n"
        "while time.monotonic() < end: time.sleep(0.05)\n"
        "print('got', len(got)); sys.exit(3)"
    )
    with terminal(tmp_path, *python(code)) as shown:
        shown.until(b"ready")
        os.write(shown.master, b"\x03")
        assert shown.end() == 3
        assert b"got 1" in shown.seen


def test_keys_are_typed_at_the_command(tmp_path: Path) -> None:
    """A debugger or a prompt works; the key for end of file too."""
    with terminal(
        tmp_path, *python("import sys; print('name?', flush=True); print('hi', input()); print(repr(sys.stdin.read()))")
    ) as shown:
        shown.until(b"name?")
        os.write(shown.master, b"Ada\n\x04")
        assert shown.end() == 0
        assert b"hi Ada" in shown.seen and b"''" in shown.seen


def test_the_stop_key_stops_both(tmp_path: Path) -> None:
    """Job control is the terminal's: Ctrl-Z stops us with the command, a continue lets both go on."""
    with terminal(tmp_path, *python("import time; print('ready', flush=True); time.sleep(1); print('went on')")) as shown:
        shown.until(b"ready")
        os.kill(shown.pid, 0)
        os.killpg(shown.pid, signal.SIGSTOP)
        assert os.WIFSTOPPED(os.waitpid(shown.pid, os.WUNTRACED)[1])
        os.killpg(shown.pid, signal.SIGCONT)
        assert shown.end() == 0
        assert b"went on" in shown.seen


def test_a_hang_up_ends_the_command(tmp_path: Path) -> None:
    """The window is closed: the command gets the hang-up and, where it lives on, an error when it prints."""
    code = "import os, time\nopen('pid', 'w').write(str(os.getpid())); print('ready', flush=True); time.sleep(60)"
    pid, master = pty.fork()
    if not pid:
        os.chdir(tmp_path)
        os.execvpe(RUN[0], [*RUN, "--log", "kept.log", "--", *python(code)], environment())
    shown = Terminal(master, pid)
    shown.until(b"ready")
    child = int((tmp_path / "pid").read_text())
    os.close(master)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 128 + signal.SIGHUP
    assert not Path(f"/proc/{child}").exists()


def test_the_answer_is_coloured_on_a_terminal(tmp_path: Path) -> None:
    """And follows what the command printed."""
    with terminal(tmp_path, "sh", "-c", f"echo '{OOM}'; exit 1") as shown:
        assert shown.end() == 1
        assert b"\x1b[" in shown.seen and b"OUT OF MEMORY" in shown.seen
    with terminal(tmp_path, "sh", "-c", f"echo '{OOM}'; exit 1", NO_COLOR="1") as shown:
        assert shown.end() == 1
        assert b"\x1b[" not in shown.seen and b"OUT OF MEMORY" in shown.seen


def test_the_plan_is_written_after_a_yes(tmp_path: Path) -> None:
    """Asked on a terminal, of a config that was given; any other answer changes nothing."""
    case = CORPUS / "checkpointing-switched-off"
    for answer, changed in ((b"n\n", False), (b"y\n", True)):
        for name in ("error.log", "lora.yaml"):
            shutil.copy(case / name, tmp_path / name)
        with terminal(tmp_path, "sh", "-c", "cat error.log; exit 1", options=("--config", "lora.yaml")) as shown:
            shown.until(b"Apply this change? [y/N]", 60)
            os.write(shown.master, answer)
            assert shown.end() == 1
        assert ((tmp_path / "lora.yaml").read_bytes() != (case / "lora.yaml").read_bytes()) is changed
