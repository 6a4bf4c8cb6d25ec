"""A command whose output passes through us, unchanged, to where it would have gone, and into a log.

The command stays in our process group and session and keeps our standard input, so the terminal treats it as if we were not there:
its keys, its job control, its hang-up. Only what it prints is led past us: through a pseudo-terminal of the same size and kind where
that goes to a terminal, else through a pipe; through one where both streams go to the same place, so that their order is kept.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import time
from collections.abc import Callable, Sequence

from diagnose.surfaces.run.pty_tee import Log, Outlet, write_all

GRACE = 0.3  # seconds that descendants of a command that has ended may be silent before we stop to listen
ECHO = 0.05  # seconds in which a signal to the whole group has reached all of it
FRESH = 0.5  # seconds after which a signal that the listener heard belongs to no signal of ours any more

#: Signals that are passed on: all that can be caught and mean something to a command, without those of job control and of faults.
_NAMES = ("HUP", "INT", "QUIT", "USR1", "USR2", "ALRM", "TERM", "XCPU", "VTALRM", "PROF", "IO", "PWR")


#: Signals that Python ignores and a command should not.
PYTHONS = ("PIPE", "XFSZ", "XFZ")


class Relay:
    """One command, from its start to its end. `say(key, error)` tells of trouble that did not touch it."""

    def __init__(self, log: Log, say: Callable[[str, Exception], None]) -> None:
        self.log, self.say = log, say
        self.child: int | None = None
        self.status: int | None = None
        self.outlets: list[Outlet] = []
        self._early: list[int] = []
        self._heard: dict[int, float] = {}
        self._ears, self._leash, self._listener = -1, -1, 0
        self._before: dict[int, object] = {}

    def run(self, command: Sequence[str]) -> int:
        """Start the command, pass everything on until it has ended; its exit status as a shell tells it.

        Raises OSError where it cannot be started.
        """
        occupy()
        self._wake, waker = os.pipe()
        os.set_blocking(waker, False)
        self._install()
        self._listen()
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        try:
            self._lead()
            self._start(command)
            try:
                self._pass_everything(self._ways())
            except Exception as error:  # a mistake of ours; the command shall not know
                self.say("run_no_answer", error)
                self._pass_plainly()
        finally:
            self._dismiss()
        assert self.status is not None
        code = os.waitstatus_to_exitcode(self.status)
        return code if code >= 0 else 128 - code

    # -- output

    def _lead(self) -> None:
        """An outlet for each place that standard output and standard error go to; a closed one stays closed."""
        known: dict[tuple[int, int, int], Outlet] = {}
        for number in (1, 2):
            if not os.get_inheritable(number):
                continue
            place = os.fstat(number)
            key = (place.st_dev, place.st_ino, place.st_rdev)
            if key in known:
                known[key].numbers.append(number)
            else:
                known[key] = Outlet(number)
        self.outlets = list(known.values())

    def _ways(self) -> dict[int, Outlet]:
        return {outlet.source: outlet for outlet in self.outlets}

    def _pass_everything(self, ways: dict[int, Outlet]) -> None:
        watched = select.poll()
        watched.register(self._wake, select.POLLIN)
        for source in ways:
            watched.register(source, select.POLLIN)
        while ways or self.status is None:
            ready = watched.poll(None if self.status is None else 1000 * GRACE)
            for source, _ in ready:
                if source == self._wake:
                    os.read(source, 4096)
                elif not ways[source].pass_on(self.log, self.say):
                    watched.unregister(source)
                    os.close(source)
                    del ways[source]
            if not ready and self.status is not None:
                self._leave_behind(list(ways.values()))
                return

    def _pass_plainly(self) -> None:
        """The least that can be done: what is printed goes where it would have gone, to its end or the command's."""
        ways = self._ways()
        while ways or self.status is None:
            ready = select.select([*ways, self._wake], [], [], GRACE)[0]
            if not ready and self.status is not None:
                return
            for source in ready:
                try:
                    data = os.read(source, 65536)
                    if source in ways and data:
                        write_all(ways[source].target, data)
                    elif source in ways:
                        del ways[source]
                except OSError:
                    ways.pop(source, None)

    def _leave_behind(self, outlets: list[Outlet]) -> None:
        """What the command left running still prints: a process of its own passes that on, as long as it lasts."""
        try:
            if os.fork():
                return
        except OSError:
            return
        try:
            signal.set_wakeup_fd(-1)
            for number in self._before:
                signal.signal(number, signal.SIG_DFL)
            os.close(self._leash)
            ways = {outlet.source: outlet for outlet in outlets}
            watched = select.poll()
            for source in ways:
                watched.register(source, select.POLLIN)
            while ways:
                for source, _ in watched.poll():
                    if not ways[source].pass_on(self.log, self.say):
                        watched.unregister(source)
                        os.close(source)
                        del ways[source]
        finally:
            os._exit(0)

    # -- the command

    def _start(self, command: Sequence[str]) -> None:
        actions = [(os.POSIX_SPAWN_DUP2, outlet.inlet, number) for outlet in self.outlets for number in outlet.numbers]
        restored = [getattr(signal, f"SIG{name}") for name in PYTHONS if hasattr(signal, f"SIG{name}")]
        words = list(command)
        for _ in range(2):
            try:
                child = os.posix_spawnp(words[0], words, os.environ, file_actions=actions, setsigdef=restored)
                break
            except OSError as error:  # a script that does not say what runs it is the shell's
                if error.errno != errno.ENOEXEC or words[0] == "/bin/sh":
                    raise
                words = ["/bin/sh", *words]
        self.child = child
        if self._leash >= 0:
            os.write(self._leash, b"%d\n" % child)
        for outlet in self.outlets:
            os.close(outlet.inlet)
        self._reap()
        for number in self._early:
            self._send(number)

    def _reap(self) -> None:
        if self.child is not None and self.status is None:
            try:
                pid, status = os.waitpid(self.child, os.WNOHANG)
            except ChildProcessError:  # somebody else's doing; its status is lost
                pid, status = self.child, 0
            if pid:
                self.status = status

    # -- signals

    def _install(self) -> None:
        """Catch what is to be passed on. What was ignored when we came stays ignored, for the command too."""
        numbers = [getattr(signal, f"SIG{name}") for name in _NAMES if hasattr(signal, f"SIG{name}")]
        numbers += range(signal.SIGRTMIN, signal.SIGRTMAX + 1) if hasattr(signal, "SIGRTMIN") else ()
        for number in (*numbers, signal.SIGCHLD, signal.SIGWINCH):
            if number == signal.SIGCHLD or signal.getsignal(number) is not signal.SIG_IGN:
                try:
                    self._before[number] = signal.signal(number, self._signalled)
                except (OSError, ValueError):
                    pass

    def _signalled(self, number: int, _: object) -> None:
        if number == signal.SIGCHLD:
            self._reap()
        elif number == signal.SIGWINCH:
            for outlet in self.outlets:
                if outlet.tty:
                    outlet.resize()
            self._send(number)  # it may have looked before the size had changed
        elif self.child is None:
            self._early.append(number)
        elif not self._went_to_all(number):
            self._send(number)

    def _send(self, number: int) -> None:
        if self.child is not None and self.status is None:
            try:
                os.kill(self.child, number)
            except OSError:
                pass

    def _went_to_all(self, number: int) -> bool:
        """Whether the signal went to our whole group, and so to the command: the terminal's do, and those of many launchers."""
        if self._ears < 0:
            return False
        time.sleep(ECHO)
        try:
            while heard := os.read(self._ears, 4096):
                now = time.monotonic()
                self._heard.update((each, now) for each in heard)
        except BlockingIOError:
            pass
        return time.monotonic() - self._heard.pop(number, -FRESH) < FRESH

    def _listen(self) -> None:
        """Fork a listener, which tells us of each signal that it gets. Nobody knows of it, so what it gets went to all of the group.

        Should we be killed, it kills the command: whoever kills a wrapper means what it wraps.
        """
        ears, mouth = os.pipe()
        collar, leash = os.pipe()
        for end in (ears, mouth):
            os.set_blocking(end, False)
        try:
            self._listener = os.fork()
        except OSError:
            return
        if self._listener:
            os.close(mouth)
            os.close(collar)
            self._ears, self._leash = ears, leash
            return
        said = b""
        try:
            signal.set_wakeup_fd(mouth, warn_on_full_buffer=False)
            for number in self._before:
                signal.signal(number, _nothing)
            nowhere = os.open(os.devnull, os.O_RDWR)
            for number in range(3):
                os.dup2(nowhere, number)
            low, high = sorted((mouth, collar))
            for first, last in ((3, low), (low + 1, high), (high + 1, os.sysconf("SC_OPEN_MAX"))):
                os.closerange(first, last)
            while part := os.read(collar, 64):
                said += part
            pid, _, farewell = said.partition(b"\n")
            if pid and not farewell:
                os.kill(int(pid), signal.SIGKILL)
        finally:
            os._exit(0)

    def _dismiss(self) -> None:
        """Send the listener home and take signals as before."""
        signal.set_wakeup_fd(-1)
        for number, before in self._before.items():
            if before is not None:
                signal.signal(number, before)  # type: ignore[arg-type]
        if self._listener:
            try:
                os.write(self._leash, b"\nbye" if self.child is None else b"bye")
                os.close(self._leash)
                os.waitpid(self._listener, 0)
            except OSError:
                pass


def _nothing(*_: object) -> None:
    """A handler, so that the signal wakes and does not kill."""


def occupy() -> None:
    """Put something harmless where standard streams are closed, lest a pipe of ours takes their place; the command finds them closed."""
    while (free := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(free)
