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

from diagnose.surfaces.run.pty_tee import Log, OutputTee, write_all

SILENCE_SECONDS = 0.3  # seconds that descendants of a command that has ended may be silent before we stop to listen
GROUP_DELAY = 0.05  # seconds in which a signal to the whole group has reached all of it
SIGNAL_LIFETIME = 0.5  # seconds after which a signal that the listener heard belongs to no signal of ours any more

#: Signals that are passed on: all that can be caught and mean something to a command, without those of job control and of faults.
_FORWARDED = ("HUP", "INT", "QUIT", "USR1", "USR2", "ALRM", "TERM", "XCPU", "VTALRM", "PROF", "IO", "PWR")


#: Signals that Python ignores and a command should not.
PYTHON_IGNORED = ("PIPE", "XFSZ", "XFZ")


class Relay:
    """One command, from its start to its end. `say(key, error)` tells of trouble that did not touch it."""

    def __init__(self, log: Log, warn: Callable[[str, Exception], None]) -> None:
        self.log, self.warn = log, warn
        self.child: int | None = None
        self.status: int | None = None
        self.tees: list[OutputTee] = []
        self._early_signals: list[int] = []
        self._signal_times: dict[int, float] = {}
        self._signal_reader, self._control_writer, self._listener = -1, -1, 0
        self._previous_handlers: dict[int, object] = {}

    def run(self, command: Sequence[str]) -> int:
        """Start the command, pass everything on until it has ended; its exit status as a shell tells it.

        Raises OSError where it cannot be started.
        """
        fill_standard_streams()
        self._wakeup_reader, wakeup_writer = os.pipe()
        os.set_blocking(wakeup_writer, False)
        self._install_handlers()
        self._start_listener()
        signal.set_wakeup_fd(wakeup_writer, warn_on_full_buffer=False)
        try:
            self._open_tees()
            self._start(command)
            try:
                self._forward_output(self._tees_by_source())
            except Exception as error:  # a mistake of ours; the command shall not know
                self.warn("run_no_answer", error)
                self._forward_plainly()
        finally:
            self._stop_listener()
        assert self.status is not None
        code = os.waitstatus_to_exitcode(self.status)
        return code if code >= 0 else 128 - code

    # -- output

    def _open_tees(self) -> None:
        """An tee for each place that standard output and standard error go to; a closed one stays closed."""
        tees: dict[tuple[int, int, int], OutputTee] = {}
        for descriptor in (1, 2):
            if not os.get_inheritable(descriptor):
                continue
            status = os.fstat(descriptor)
            key = (status.st_dev, status.st_ino, status.st_rdev)
            if key in tees:
                tees[key].descriptors.append(descriptor)
            else:
                tees[key] = OutputTee(descriptor)
        self.tees = list(tees.values())

    def _tees_by_source(self) -> dict[int, OutputTee]:
        return {tee.source: tee for tee in self.tees}

    def _forward_output(self, tees: dict[int, OutputTee]) -> None:
        poller = select.poll()
        poller.register(self._wakeup_reader, select.POLLIN)
        for source in tees:
            poller.register(source, select.POLLIN)
        while tees or self.status is None:
            ready = poller.poll(None if self.status is None else 1000 * SILENCE_SECONDS)
            for source, _ in ready:
                if source == self._wakeup_reader:
                    os.read(source, 4096)
                elif not tees[source].forward(self.log, self.warn):
                    poller.unregister(source)
                    os.close(source)
                    del tees[source]
            if not ready and self.status is not None:
                self._fork_forwarder(list(tees.values()))
                return

    def _forward_plainly(self) -> None:
        """The least that can be done: what is printed goes where it would have gone, to its end or the command's."""
        tees = self._tees_by_source()
        while tees or self.status is None:
            ready = select.select([*tees, self._wakeup_reader], [], [], SILENCE_SECONDS)[0]
            if not ready and self.status is not None:
                return
            for source in ready:
                try:
                    data = os.read(source, 65536)
                    if source in tees and data:
                        write_all(tees[source].target, data)
                    elif source in tees:
                        del tees[source]
                except OSError:
                    tees.pop(source, None)

    def _fork_forwarder(self, tees: list[OutputTee]) -> None:
        """What the command left running still prints: a process of its own passes that on, as long as it lasts."""
        try:
            if os.fork():
                return
        except OSError:
            return
        try:
            signal.set_wakeup_fd(-1)
            for number in self._previous_handlers:
                signal.signal(number, signal.SIG_DFL)
            os.close(self._control_writer)
            tees_by_source = {tee.source: tee for tee in tees}
            poller = select.poll()
            for source in tees_by_source:
                poller.register(source, select.POLLIN)
            while tees_by_source:
                for source, _ in poller.poll():
                    if not tees_by_source[source].forward(self.log, self.warn):
                        poller.unregister(source)
                        os.close(source)
                        del tees_by_source[source]
        finally:
            os._exit(0)

    # -- the command

    def _start(self, command: Sequence[str]) -> None:
        actions = [(os.POSIX_SPAWN_DUP2, tee.child_end, descriptor) for tee in self.tees for descriptor in tee.descriptors]
        defaults = [getattr(signal, f"SIG{name}") for name in PYTHON_IGNORED if hasattr(signal, f"SIG{name}")]
        words = list(command)
        for _ in range(2):
            try:
                child = os.posix_spawnp(words[0], words, os.environ, file_actions=actions, setsigdef=defaults)
                break
            except OSError as error:  # a script that does not say what runs it is the shell's
                if error.errno != errno.ENOEXEC or words[0] == "/bin/sh":
                    raise
                words = ["/bin/sh", *words]
        self.child = child
        if self._control_writer >= 0:
            os.write(self._control_writer, b"%d\n" % child)
        for tee in self.tees:
            os.close(tee.child_end)
        self._reap()
        for descriptor in self._early_signals:
            self._send_to_child(descriptor)

    def _reap(self) -> None:
        if self.child is not None and self.status is None:
            try:
                pid, status = os.waitpid(self.child, os.WNOHANG)
            except ChildProcessError:  # somebody else's doing; its status is lost
                pid, status = self.child, 0
            if pid:
                self.status = status

    # -- signals

    def _install_handlers(self) -> None:
        """Catch what is to be passed on. What was ignored when we came stays ignored, for the command too."""
        numbers = [getattr(signal, f"SIG{name}") for name in _FORWARDED if hasattr(signal, f"SIG{name}")]
        numbers += range(signal.SIGRTMIN, signal.SIGRTMAX + 1) if hasattr(signal, "SIGRTMIN") else ()
        for number in (*numbers, signal.SIGCHLD, signal.SIGWINCH):
            if number == signal.SIGCHLD or signal.getsignal(number) is not signal.SIG_IGN:
                try:
                    self._previous_handlers[number] = signal.signal(number, self._on_signal)
                except (OSError, ValueError):
                    pass

    def _on_signal(self, number: int, _: object) -> None:
        if number == signal.SIGCHLD:
            self._reap()
        elif number == signal.SIGWINCH:
            for tee in self.tees:
                if tee.tty:
                    tee.resize()
            self._send_to_child(number)  # it may have looked before the size had changed
        elif self.child is None:
            self._early_signals.append(number)
        elif not self._is_group_signal(number):
            self._send_to_child(number)

    def _send_to_child(self, number: int) -> None:
        if self.child is not None and self.status is None:
            try:
                os.kill(self.child, number)
            except OSError:
                pass

    def _is_group_signal(self, number: int) -> bool:
        """Whether the signal went to our whole group, and so to the command: the terminal's do, and those of many launchers."""
        if self._signal_reader < 0:
            return False
        time.sleep(GROUP_DELAY)
        try:
            while numbers := os.read(self._signal_reader, 4096):
                now = time.monotonic()
                self._signal_times.update((received, now) for received in numbers)
        except BlockingIOError:
            pass
        return time.monotonic() - self._signal_times.pop(number, -SIGNAL_LIFETIME) < SIGNAL_LIFETIME

    def _start_listener(self) -> None:
        """Fork a listener, which tells us of each signal that it gets. Nobody knows of it, so what it gets went to all of the group.

        Should we be killed, it kills the command: whoever kills a wrapper means what it wraps.
        """
        signal_reader, signal_writer = os.pipe()
        control_reader, control_writer = os.pipe()
        for end in (signal_reader, signal_writer):
            os.set_blocking(end, False)
        try:
            self._listener = os.fork()
        except OSError:
            return
        if self._listener:
            os.close(signal_writer)
            os.close(control_reader)
            self._signal_reader, self._control_writer = signal_reader, control_writer
            return
        message = b""
        try:
            signal.set_wakeup_fd(signal_writer, warn_on_full_buffer=False)
            for number in self._previous_handlers:
                signal.signal(number, _ignore)
            null = os.open(os.devnull, os.O_RDWR)
            for number in range(3):
                os.dup2(null, number)
            low, high = sorted((signal_writer, control_reader))
            for first, last in ((3, low), (low + 1, high), (high + 1, os.sysconf("SC_OPEN_MAX"))):
                os.closerange(first, last)
            while part := os.read(control_reader, 64):
                message += part
            pid, _, goodbye = message.partition(b"\n")
            if pid and not goodbye:
                os.kill(int(pid), signal.SIGKILL)
        finally:
            os._exit(0)

    def _stop_listener(self) -> None:
        """Send the listener home and take signals as before."""
        signal.set_wakeup_fd(-1)
        for number, handler in self._previous_handlers.items():
            if handler is not None:
                signal.signal(number, handler)  # type: ignore[arg-type]
        if self._listener:
            try:
                os.write(self._control_writer, b"\nbye" if self.child is None else b"bye")
                os.close(self._control_writer)
                os.waitpid(self._listener, 0)
            except OSError:
                pass


def _ignore(*_: object) -> None:
    """A handler, so that the signal wakes and does not kill."""


def fill_standard_streams() -> None:
    """Put something harmless where standard streams are closed, lest a pipe of ours takes their place; the command finds them closed."""
    while (free := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(free)
