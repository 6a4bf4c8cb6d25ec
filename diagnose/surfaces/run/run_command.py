"""`oomdoctor run -- CMD`: the command runs as if we were not there; where it dies of memory the answer follows on standard error.

Nothing of the diagnosis is imported before the command has ended, and nothing that goes wrong with us changes what it does or returns.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from diagnose.live.process_rank import first_to_answer, rank
from diagnose.surfaces.run import run_log
from diagnose.surfaces.run.pty_tee import write_all
from diagnose.surfaces.run.relay import Relay
from diagnose.surfaces.term.console import language

if TYPE_CHECKING:
    from pathlib import Path

    from diagnose.diagnosis import Diagnosis
    from diagnose.facts import Notice
    from diagnose.phrases import Lang

#: Seconds that the answer may take; then the exit status is returned without one.
PATIENCE = 120

#: Seconds that the clock of a file system may be behind.
SLACK = 2

#: How the report calls the command that was run.
COMMAND = "command line"

#: As shells say it: not found, found and not to be executed.
NOT_FOUND, NOT_EXECUTABLE = 127, 126


class Enough(BaseException):
    """The answer took too long, or somebody wants us gone."""


def run(command: Sequence[str], options: Mapping[str, Any]) -> int:
    """Run the command and return its exit status, 128 and the signal's number where one ended it."""
    lang = language(options.get("lang"))
    number = rank(os.environ)
    log = run_log.Kept(options.get("log"), number)
    before = run_log.killed_by_kernel()

    def say(key: str, error: Exception) -> None:
        why = getattr(error, "strerror", None) or str(error)
        tell(key, lang, why=why, error=f"{type(error).__name__}: {why}"[:300])

    if log.trouble and log.path is None:
        tell("run_no_log", lang, path=log.trouble[0], why=log.trouble[1].strerror or str(log.trouble[1]))
    try:
        status = Relay(log, say).run(command)
    except OSError as error:
        log.forget()
        tell("run_not_started", lang, command=command[0], why=error.strerror or str(error))
        return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
    if log.fresh:
        tell("run_log_ended", lang, path=str(log.path), why=log.fresh.strerror or str(log.fresh))
    if status:
        after_death(command, status, log, number, before, options, lang)
    return status


def after_death(
    command: Sequence[str],
    status: int,
    log: run_log.Kept,
    number: int | None,
    before: int | None,
    options: Mapping[str, Any],
    lang: Lang,
) -> None:
    """Answer where the command died of memory. Whatever goes wrong is one sentence, and takes no longer than PATIENCE."""

    def enough(*_: object) -> NoReturn:
        raise Enough

    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM"):
        if signal.getsignal(getattr(signal, name)) is not signal.SIG_IGN:
            signal.signal(getattr(signal, name), enough)
    signal.alarm(PATIENCE)
    try:
        if status == 128 + signal.SIGKILL:
            log.note(f"oomdoctor: the command was killed: exitcode: -{int(signal.SIGKILL)}")
        now = run_log.killed_by_kernel()
        if now is not None and before is not None and now > before:
            log.note(f"oomdoctor: a process of this control group has been killed by the OOM killer (oom_kill {before} -> {now})")
        answer(command, log, number, options, lang)
    except Enough:
        pass
    except Exception as error:
        if os.environ.get("OOMDOCTOR_DEBUG"):
            import traceback

            traceback.print_exc()
        tell("run_no_answer", lang, error=f"{type(error).__name__}: {error}"[:300])
    finally:
        signal.alarm(0)


def answer(command: Sequence[str], log: run_log.Kept, number: int | None, options: Mapping[str, Any], lang: Lang) -> None:
    """Explain the log; say nothing where it does not speak of memory, and one sentence where another rank has answered."""
    diagnosis, shown = diagnosed(command, log, options)
    if diagnosis.verdict.status not in ("oom", "suspected"):
        return
    path = log.path or ""
    from diagnose.render.formats import RENDERERS
    from diagnose.render.parts import words
    from diagnose.render.parts.view import stream_view

    if number is not None and log.path and not first_to_answer(log.folder, log.started, os.environ):
        first, _, _ = diagnosis.verdict.headline.to(lang).partition(words.sentence_break(lang))
        tell("run_rank_too", lang, rank=number, headline=first.rstrip(".。"), path=path)
        return

    error = sys.stderr
    view = stream_view(error, shown.top, shown.verbose, shown.budget, shown.every_rule)
    text = RENDERERS[shown.format](shown.masked(diagnosis), lang, view)
    write_all(2, f"\n{text.rstrip()}\n".encode(error.encoding or "utf-8", "replace"))
    for notice in diagnosis.notices:
        if notice.level == "error":
            tell("", lang, text=notice.message.to(lang))
    if path:
        tell("run_kept", lang, path=path)


def diagnosed(command: Sequence[str], log: run_log.Kept, options: Mapping[str, Any]) -> tuple[Diagnosis, Any]:
    """The diagnosis of what was kept, and how it is shown. The command itself is a config: it says what was set."""
    import shlex
    from pathlib import Path

    from diagnose.adapters.formats.settings import ConfigSource
    from diagnose.pipeline import explain
    from diagnose.record import replace
    from diagnose.scan.source import Source
    from diagnose.surfaces.term.answer_command import parted

    asked, shown = parted({name: value for name, value in options.items() if name != "log"})
    given = asked.options()
    said = ConfigSource(COMMAND, f"{shlex.join(command)}\n".encode(errors="surrogateescape"), None, Path.cwd())
    configs = [*given.pop("configs"), said]
    logs: list[Path | Source] = [Path(log.path)] if log.path else []
    if held := log.remembered:
        logs.append(Source.text(held, name="output"))
    found = explain(logs or [Source.text(b"", name="output")], configs=configs, snapshot=taken(asked.snapshot, log, shown.lang), **given)
    return replace(found, notices=tuple(each for each in found.notices if not unasked(each, asked.configs))), shown


def taken(name: str | None, log: run_log.Kept, lang: Lang) -> Path | None:
    """The memory snapshot that the command was to leave; one from before the command began is of another failure."""
    from pathlib import Path

    if name is None:
        return None
    path = Path(name)
    try:
        if path.stat().st_mtime >= log.started - SLACK:
            return path
    except (OSError, ValueError):
        pass
    tell("run_no_snapshot", lang, path=name)
    return None


def unasked(notice: Notice, configs: Sequence[str]) -> bool:
    """Whether it complains that something is no config which nobody said was one: the command, a script that it names."""
    source = notice.witness.source if notice.witness else COMMAND
    return notice.code == "config.unknown_kind" and source not in configs


def tell(key: str, lang: Lang, text: str = "", **values: object) -> None:
    """One sentence on standard error, whatever state we are in."""
    try:
        from diagnose.phrases import phrase
        from diagnose.surfaces.term.console import warn

        warn(text or phrase(f"cli.{key}", **values).to(lang))
    except Exception:
        try:
            os.write(2, f"oomdoctor: {key} {values}\n".encode(errors="replace"))
        except OSError:
            pass
