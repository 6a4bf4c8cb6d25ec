"""Many jobs at once, on the command line: what is asked, a bar while it is done, the report, the exit status."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, TextIO

from diagnose.cluster.run.task import JobOptions
from diagnose.cluster.run.triage_run import Engine, Run, RunPlan
from diagnose.errors import UserError
from diagnose.inputs.given import as_config
from diagnose.phrases import Lang, Text, phrase
from diagnose.record import record
from diagnose.surfaces.term import answer_command, console, path_arguments
from diagnose.surfaces.term.console import trouble

if TYPE_CHECKING:
    from diagnose.cluster.report.fail_conditions import Condition
    from diagnose.cluster.store.result_store import Store
    from diagnose.surfaces.term.answer_command import Asked, Shown

#: Exit statuses: some jobs could not be read; a condition of --fail-on holds; stopped by Ctrl-C.
UNREAD, HOLDS, STOPPED = 1, 5, 130
#: Parts of jobs that could not be used and are named on standard error.
NAMED = 20


@record
class How:
    """How many jobs are triaged: where they are read, kept and reported. `since` and `fail_on` as written."""

    store: str | None = None
    out: str | None = None
    export: str | None = None
    engine: str = "local"
    ray_address: str | None = None
    jobs: int | None = None
    watch: bool = False
    notify: str | None = None
    since: str | None = None
    group_by: str = "fingerprint"
    fail_on: Sequence[str] = ()
    job_pattern: str | None = None


def triage(paths: Sequence[str], asked: Asked, shown: Shown, how: How) -> int:
    """Diagnose every job under some paths and print the failures in groups; the exit status of the contract."""
    from diagnose.cluster.report import fail_conditions

    if shown.format == "sarif":
        answer_command.of_many(shown)
    wanted = [fail_conditions.parse_condition(text) for text in how.fail_on]
    plan, question = planned(paths, how), questioned(asked, shown, how)
    if how.watch:
        return watched(plan, question, shown, how)
    with opened(how.store) as store:
        run = Run(store, plan, question, lambda text: console.warn(text.to(shown.lang)))
        try:
            exported_to = done(run, how, shown.lang)
        except KeyboardInterrupt:
            console.warn(stopped(run, how).to(shown.lang))
            return STOPPED
        if not run.found:
            raise trouble("triage_none", where=", ".join(paths), hint="name_the_log")
        reported(store, how, shown, plan.since)
        if exported_to is not None:
            console.warn(exported_to.to(shown.lang))
        return status(run, wanted, shown.lang)


def watched(plan: RunPlan, question: JobOptions, shown: Shown, how: How) -> int:
    """The same in rounds, until somebody ends it: jobs are read when they have settled, and what is new is reported."""
    from diagnose.cluster.run.folder_watch import Watch

    watch, first = Watch(), True

    def say(text: Text) -> None:
        console.warn(text.to(shown.lang))

    with opened(how.store) as store:

        def round() -> None:
            nonlocal first
            run = Run(store, plan, question, say if first else lambda _: None, watch.is_ready)  # how jobs are told apart is said once
            first = False
            done(run, how, shown.lang)
            if run.done > run.reused:
                reported(store, how, shown, plan.since)
            elif how.notify:  # whoever could not be told in an earlier round
                announced(store, how.notify, shown)

        try:
            watch.run(round, say)
        finally:
            watch.close()
    return 0


def planned(paths: Sequence[str], how: How) -> RunPlan:
    """The run that the options mean. Raises UserError for those that mean none."""
    from diagnose.cluster.report import fail_conditions
    from diagnose.cluster.report.failure_groups import BY
    from diagnose.cluster.report.webhooks import platform_of

    if how.jobs is not None and how.jobs < 1:
        raise trouble("jobs_positive")
    if how.notify:
        platform_of(how.notify)
    if how.group_by not in BY:
        raise trouble("bad_group_by", hint="known_groups", text=repr(how.group_by), known=", ".join(BY))
    if how.export and "://" in how.export and how.engine != "ray":
        raise trouble("export_address", where=how.export, hint="check_target")
    since = fail_conditions.parse_since(how.since, time()) if how.since else None
    engine: Engine = "ray" if how.engine == "ray" else "local"
    folder = how.export if how.export and not is_lines(how.export) else ""
    return RunPlan(tuple(paths), how.job_pattern, since, engine, how.ray_address, how.jobs, export=folder)


def questioned(asked: Asked, shown: Shown, how: How) -> JobOptions:
    """What every job is diagnosed with; files that options name are read once, here."""
    model = path_arguments.model(asked.model)
    return JobOptions(
        configs=tuple(as_config(each) for each in path_arguments.configs(asked.configs)),
        model=model.read_text(encoding="utf-8", errors="replace") if isinstance(model, Path) and model.is_file() else asked.model,
        gpu=asked.gpu,
        gpus=asked.gpus,
        set=path_arguments.settings(asked.set),
        rules=tuple(asked.rules),
        trial=asked.trial,
        reports=shown.lang if how.export and is_lines(how.export) else None,
        redact=bool(shown.redact),
    )


@contextmanager
def opened(name: str | None) -> Iterator[Store]:
    """The database that was named, or one that is gone afterwards."""
    from diagnose.cluster.store.result_store import Store

    with tempfile.TemporaryDirectory(prefix="oomdoctor-", ignore_cleanup_errors=True) as folder:
        store = Store.open(Path(name) if name else Path(folder) / "triage.duckdb")
        try:
            yield store
        finally:
            store.close()


def done(run: Run, how: How, lang: Lang) -> Text | None:
    """Do the work; a sentence on what was exported, if anything was."""
    count = troubles = 0
    with exported(how.export) as line, progress(run, lang):
        for result in run.results():
            if result.report:
                line(result.report)
                count += 1
            for each in result.troubles:
                troubles += 1
                if troubles <= NAMED:
                    run.say(each.message)
    if troubles > NAMED:
        console.warn(phrase("cli.triage_more_troubles", count=troubles - NAMED).to(lang))
    if not how.export:
        return None
    if is_lines(how.export):
        return phrase("cli.triage_exported", count=count, file=how.export)
    if "://" in how.export:  # there are the partitions, and no tables
        return phrase("cli.triage_partitions", file=how.export)
    return phrase("cli.triage_tables", count=len(run.store.export_tables(Path(how.export))), file=how.export)


def reported(store: Store, how: How, shown: Shown, since: float | None) -> None:
    """The report: on standard output, as a page where one was asked for, and to a webhook what is new."""
    from diagnose.cluster.report import report_files
    from diagnose.cluster.report.group_queries import summarize

    found = summarize(store, how.group_by, since)
    if how.out:
        try:
            report_files.write_html(store, found, Path(how.out), shown.lang, shown.redact is not False)
        except OSError as error:
            raise trouble("cannot_write", where=how.out, hint="check_target", why=error.strerror or str(error)) from error
    if shown.format == "html":
        console.say(report_files.html(store, found, shown.lang, redact=shown.redact is not False))
    else:
        masked = shown.format == "markdown" if shown.redact is None else shown.redact
        render = {"text": report_files.text, "json": report_files.json, "markdown": report_files.markdown}[shown.format]
        console.say(render(report_files.masked(store, found) if masked else found, shown.lang, console.view(shown.top)))
    if how.notify:
        announced(store, how.notify, shown)


def announced(store: Store, url: str, shown: Shown) -> None:
    """Tell a webhook of the groups that it was not told of yet."""
    from diagnose.cluster.report import report_files
    from diagnose.cluster.report import webhooks as notify
    from diagnose.cluster.report.group_queries import summarize

    new = {name for (name,) in store.query("select fingerprint from groups where notified is null")}
    if not new:
        return
    found = summarize(store, only=sorted(new))
    told = found if shown.redact is False else report_files.masked(store, found)
    platform = notify.platform_of(url) or "slack"
    news = [
        notify.News(
            group.key,
            notify.group_message(group, platform, shown.lang).text,
            {"jobs": group.jobs, "cause": group.title.to(shown.lang)},
        )
        for group in told.groups
        if group.key in new
    ]

    def failed(_: str, refusal: UserError) -> None:
        console.warn(refusal.to(shown.lang))
        store.add_error("not_told", Text(refusal.to("en"), refusal.to("zh")))

    notify.announce(news, url, store.mark_notified, failed, shown.lang)


def status(run: Run, wanted: Sequence[Condition], lang: Lang) -> int:
    """5 where a condition holds, each said; else 1 where something could not be read."""
    from diagnose.cluster.report.fail_conditions import run_figures

    told = run_figures(run.store, run.store.run)
    holding = [one for one in wanted if one.holds(told)]
    for one in holding:
        console.warn(phrase("cli.triage_holds", condition=one.text, value=f"{told[one.figure]:g}").to(lang))
    return HOLDS if holding else UNREAD if run.errors else 0


def stopped(run: Run, how: How) -> Text:
    """What is kept of a run that was stopped, and how to go on."""
    if how.store:
        return phrase("cli.triage_stopped", done=run.done, file=how.store)
    return phrase("cli.triage_lost", done=run.done)


# -- what is written beside


def is_lines(export: str) -> bool:
    """Whether an export is one file of JSON lines, and not a folder of tables."""
    return Path(export).suffix in (".jsonl", ".json", ".ndjson") and not Path(export).is_dir()


@contextmanager
def exported(export: str | None) -> Iterator[Callable[[str], None]]:
    """A function that writes a line to the export, or none. Raises UserError where it cannot be written."""
    if export is None or not is_lines(export):
        yield lambda _: None
        return
    path = Path(export)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file: TextIO = path.open("w", encoding="utf-8", errors="replace", newline="\n")
    except OSError as error:
        raise trouble("cannot_write", where=str(path), hint="check_target", why=error.strerror or str(error)) from error
    with file:
        yield lambda line: print(line, file=file)


@contextmanager
def progress(run: Run, lang: Lang) -> Iterator[None]:
    """A bar on standard error with the rate and the time left, where that is a terminal."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    figures = TextColumn("{task.fields[figures]}")
    columns = (TextColumn("{task.description}"), BarColumn(), figures, TimeRemainingColumn())
    plain = run.say
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(phrase("cli.triage_progress").to(lang), total=None, figures="")

        def tick() -> None:
            """While jobs are still being found, as many as there are by now stand for all."""
            more = "" if run.finished else "+"
            told = phrase("cli.triage_rate", done=run.done, found=f"{run.found}{more}", rate=f"{bar.tasks[0].speed or 0:.0f}")
            bar.update(task, completed=run.done, total=run.found, figures=told.to(lang))

        def say(text: Text) -> None:
            """A sentence instead of the bar, which comes again below it."""
            bar.stop()
            plain(text)
            bar.start()

        run.on_result, run.say = tick, say
        try:
            yield
        finally:
            run.on_result, run.say = None, plain
