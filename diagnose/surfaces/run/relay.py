"""Runs a command, copies its output unchanged to its targets and a log, and forwards signals to it.

The command stays in this process group and session and inherits standard input, so that keys, job control and hang-up of the terminal
reach it directly. Only its output passes through this process: through a pseudo-terminal of the same size and settings if the target
is a terminal, else a pipe; through a single one if both streams have the same target, so that their order is kept.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import time
from collections.abc import Callable, Sequence

from diagnose.surfaces.run.pty_tee import Log, OutputTee, write_all

SILENCE_SECONDS = 0.3  # seconds of silence of the descendants of a command that has ended, after which the relay ends too
GROUP_DELAY = 0.05  # seconds in which a signal to a process group reaches all of its members
SIGNAL_LIFETIME = 0.5  # seconds after which a signal in the listener is unrelated to one here

#: Signals that are forwarded: all that can be caught, except those of job control and of faults.
_FORWARDED = ("HUP", "INT", "QUIT", "USR1", "USR2", "ALRM", "TERM", "XCPU", "VTALRM", "PROF", "IO", "PWR")

#: Signals that Python ignores; the command gets their default actions.
PYTHON_IGNORED = ("PIPE", "XFSZ", "XFZ")


class Relay:
    """One command, from start to end. `warn(key, error)` reports errors of the relay that did not affect the command."""

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
        """Run the command; its exit status in the shell's convention. Raises OSError if it cannot be started."""
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
            except Exception as error:  # a bug in the relay must not affect the command
                self.warn("run_no_answer", error)
                self._forward_plainly()
        finally:
            self._stop_listener()
        if self.status is None:
            raise ChildProcessError("the command has not ended")
        code = os.waitstatus_to_exitcode(self.status)
        return code if code >= 0 else 128 - code

    # -- output

    def _open_tees(self) -> None:
        """Open a tee for each distinct target of standard output and error; closed streams stay closed."""
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
        """Fallback without the log: copy output to its targets until it or the command ends."""
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
        """Fork a process that forwards the output of descendants which outlive the command."""
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
            except OSError as error:  # a script without #! is run by the shell
                if error.errno != errno.ENOEXEC or words[0] == "/bin/sh":
                    raise
                words = ["/bin/sh", *words]
        self.child = child
        if self._control_writer >= 0:
            os.write(self._control_writer, b"%d\n" % child)
        for tee in self.tees:
            os.close(tee.child_end)
        self._reap()
        for number in self._early_signals:
            self._send_to_child(number)

    def _reap(self) -> None:
        if self.child is not None and self.status is None:
            try:
                pid, status = os.waitpid(self.child, os.WNOHANG)
            except ChildProcessError:  # reaped elsewhere; its status is lost
                pid, status = self.child, 0
            if pid:
                self.status = status

    # -- signals

    def _install_handlers(self) -> None:
        """Catch the forwarded signals. Signals that were ignored at the start stay ignored, for the command too."""
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
            self._send_to_child(number)  # it may have read the size before it changed
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
        """Whether the whole process group, and so the command, got the signal: from the terminal, or from many launchers."""
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
        """Fork a process that reports each signal it receives: nobody addresses it, so such a signal went to the whole group.

        If this process is killed, the listener kills the command: killing a wrapper is meant for what it wraps.
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
        """End the listener and restore the signal handlers."""
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
    """A handler that makes the signal write to the wakeup descriptor instead of ending the process."""


def fill_standard_streams() -> None:
    """Open /dev/null in place of closed standard streams, so that no pipe gets their numbers. It is not inherited."""
    while (free := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(free)
