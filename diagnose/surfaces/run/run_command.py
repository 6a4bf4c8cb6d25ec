"""`oomdoctor run -- CMD`: runs a command transparently; if it dies of an out-of-memory failure, the answer follows on standard error.

The engine is imported only after the command has failed (hence the imports in functions), and no error of oomdoctor changes the
command's output or exit status.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, cast

from diagnose.live.process_rank import first_to_answer, rank
from diagnose.surfaces.run import run_log
from diagnose.surfaces.run.pty_tee import write_all
from diagnose.surfaces.run.relay import Relay
from diagnose.surfaces.terminal.console import language

if TYPE_CHECKING:
    from pathlib import Path

    from diagnose.diagnosis import Diagnosis
    from diagnose.facts import Notice
    from diagnose.phrases import Lang
    from diagnose.surfaces.terminal.answer_options import DisplayOptions

#: Seconds for the answer; then the exit status is returned without one.
ANSWER_SECONDS = 120

#: Seconds by which the clock of a file system may lag.
CLOCK_TOLERANCE = 2

#: The name of the command line as a config in the report.
COMMAND_SOURCE = "command line"

#: Exit statuses of shells: command not found, not executable.
NOT_FOUND, NOT_EXECUTABLE = 127, 126


class AnswerAborted(BaseException):
    """The answer took too long or was interrupted."""


def run(command: Sequence[str], options: Mapping[str, Any]) -> int:
    """Run the command and return its exit status (128 plus the number of a signal that ended it)."""
    lang = language(options.get("lang"))
    rank_number = rank(os.environ)
    log = run_log.RunLog(options.get("log"), rank_number)
    kills_before = run_log.oom_kill_count()

    def warn_of(key: str, error: Exception) -> None:
        why = getattr(error, "strerror", None) or str(error)
        print_sentence(key, lang, why=why, error=f"{type(error).__name__}: {why}"[:300])

    if log.error and log.path is None:
        print_sentence("run_no_log", lang, path=log.error[0], why=log.error[1].strerror or str(log.error[1]))
    try:
        status = Relay(log, warn_of).run(command)
    except OSError as error:
        log.discard()
        print_sentence("run_not_started", lang, command=command[0], why=error.strerror or str(error))
        return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
    if log.write_error:
        print_sentence("run_log_ended", lang, path=str(log.path), why=log.write_error.strerror or str(log.write_error))
    if status:
        answer_failure(command, status, log, rank_number, kills_before, options, lang)
    else:
        log.discard()
    return status


def answer_failure(
    command: Sequence[str],
    status: int,
    log: run_log.RunLog,
    rank_number: int | None,
    kills_before: int | None,
    options: Mapping[str, object],
    lang: Lang,
) -> None:
    """Explain a memory failure within ANSWER_SECONDS; an error of the diagnosis is one sentence."""

    def abort(*_: object) -> NoReturn:
        raise AnswerAborted

    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM"):
        if signal.getsignal(getattr(signal, name)) is not signal.SIG_IGN:
            signal.signal(getattr(signal, name), abort)
    signal.alarm(ANSWER_SECONDS)
    try:
        if status == 128 + signal.SIGKILL:
            log.note(f"oomdoctor: the command was killed: exitcode: -{int(signal.SIGKILL)}")
        kills_now = run_log.oom_kill_count()
        if kills_now is not None and kills_before is not None and kills_now > kills_before:
            log.note(
                f"oomdoctor: a process of this control group has been killed by the OOM killer (oom_kill {kills_before} -> {kills_now})"
            )
        print_answer(command, log, rank_number, options, lang)
    except AnswerAborted:
        pass
    except Exception as error:  # a mistake of ours; the command shall not know
        from diagnose.errors import log_crash

        log_crash("explanation", error)
        print_sentence("run_no_answer", lang, error=f"{type(error).__name__}: {error}"[:300])
    finally:
        signal.alarm(0)


def print_answer(command: Sequence[str], log: run_log.RunLog, rank_number: int | None, options: Mapping[str, object], lang: Lang) -> None:
    """Print the diagnosis of the log: where the log is without a memory failure, one sentence if another rank has printed it."""
    diagnosis, display = diagnose_log(command, log, options)
    path = log.path or ""
    if diagnosis.verdict.status not in ("oom", "suspected"):
        if path and rank_number is None and options.get("log") is None:  # a file that nobody asked for
            print_sentence("run_no_memory_failure", lang, path=path)
        return
    import shlex

    from diagnose.render.formats import RENDERERS
    from diagnose.render.parts import words
    from diagnose.render.parts.view import stream_view

    if rank_number is not None and log.path:
        # Launchers end the other ranks once one has exited: the one that has claimed the answer must still print it.
        for name in ("SIGTERM", "SIGHUP"):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
        if not first_to_answer(log.folder, log.started, os.environ):
            headline, _, _ = diagnosis.verdict.headline.to(lang).partition(words.sentence_break(lang))
            print_sentence("run_rank_too", lang, rank=rank_number, headline=headline.rstrip(".。"), path=path)
            return

    stderr = sys.stderr
    view = stream_view(stderr, display.top, display.verbose, display.budget, display.every_rule)._replace(options=False)
    text = RENDERERS[display.format](display.masked(diagnosis), lang, view)
    write_all(2, f"\n{text.rstrip()}\n".encode(stderr.encoding or "utf-8", "replace"))
    for notice in diagnosis.notices if display.format != "text" else ():
        if notice.level == "error":
            print_sentence("", lang, text=notice.message.to(lang))
    if path:
        configs = [word for config in cast("list[str]", options.get("configs") or []) for word in ("--config", config)]
        print_sentence("run_kept", lang, path=path, again=shlex.join(["oomdoctor", "explain", str(path), *configs, "--verbose"]))
    if rank_number is None:
        offer_change(diagnosis, cast("list[str]", options.get("configs") or []), lang)


def offer_change(diagnosis: Diagnosis, configs: Sequence[str], lang: Lang) -> None:
    """On a terminal: ask whether the plan shall be written into the configs that were given, and write it after a yes."""
    plan = diagnosis.outcome.plan
    if plan is None or not plan.edits or not configs or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    from diagnose.errors import UserError
    from diagnose.phrases import phrase
    from diagnose.surfaces.terminal import patch_writer

    if not {edit.target for edit in plan.edits} & {name for spec in configs for name in (spec, spec.partition("=")[2])}:
        return  # what would change is the command line
    write_all(2, f"{phrase('cli.run_apply').to(lang)} ".encode(sys.stderr.encoding or "utf-8", "replace"))
    if sys.stdin.readline().strip().lower() not in ("y", "yes", "是"):
        return
    try:
        patch_writer.write(diagnosis, configs, None, True, lang)
    except UserError as error:
        print_sentence("", lang, text=error.to(lang))


def diagnose_log(command: Sequence[str], log: run_log.RunLog, options: Mapping[str, object]) -> tuple[Diagnosis, DisplayOptions]:
    """The diagnosis of the log, and the display options. The command line itself is read as a config."""
    import shlex
    from dataclasses import replace
    from pathlib import Path

    from diagnose.adapters.formats.settings import ConfigSource
    from diagnose.pipeline import explain
    from diagnose.scan.source import Source
    from diagnose.surfaces.terminal.answer_options import split_options

    request, display = split_options({name: value for name, value in options.items() if name != "log"})
    arguments = request.options()
    command_config = ConfigSource(COMMAND_SOURCE, f"{shlex.join(command)}\n".encode(errors="surrogateescape"), None, Path.cwd())
    configs = [*arguments.pop("configs"), command_config]
    logs: list[Path | Source] = [Path(log.path)] if log.path else []
    if data := log.buffered:
        logs.append(Source.text(data, name="output"))
    diagnosis = explain(
        logs or [Source.text(b"", name="output")],
        configs=configs,
        snapshot=recent_snapshot(request.snapshot, log, display.lang),
        **arguments,
    )
    return replace(diagnosis, notices=tuple(notice for notice in diagnosis.notices if not is_unrequested(notice, request.configs))), display


def recent_snapshot(name: str | None, log: run_log.RunLog, lang: Lang) -> Path | None:
    """The path of the memory snapshot, unless it is older than the command and so of another failure."""
    from pathlib import Path

    if name is None:
        return None
    path = Path(name)
    try:
        if path.stat().st_mtime >= log.started - CLOCK_TOLERANCE:
            return path
    except (OSError, ValueError):
        pass
    print_sentence("run_no_snapshot", lang, path=name)
    return None


def is_unrequested(notice: Notice, configs: Sequence[str]) -> bool:
    """Whether it reports an unknown kind of config for a file that was not passed as one: the command line or a script in it."""
    source = notice.witness.source if notice.witness else COMMAND_SOURCE
    return notice.code == "config.unknown_kind" and source not in configs


def print_sentence(key: str, lang: Lang, text: str = "", **values: object) -> None:
    """Print one sentence on standard error, even if the modules for it cannot be imported."""
    try:
        from diagnose.phrases import phrase
        from diagnose.surfaces.terminal.console import warn

        warn(text or phrase(f"cli.{key}", **values).to(lang))
    except Exception:
        try:
            os.write(2, f"oomdoctor: {key} {values}\n".encode(errors="replace"))
        except OSError:
            pass
