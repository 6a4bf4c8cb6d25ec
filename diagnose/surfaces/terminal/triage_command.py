"""The command `triage`: its options, a progress bar, the report on all jobs, the exit status."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import time

from diagnose.cluster.report import fail_conditions, report_files
from diagnose.cluster.report.fail_conditions import Condition
from diagnose.cluster.report.group_summaries import summarize
from diagnose.cluster.report.summary_types import BY
from diagnose.cluster.run.folder_watch import Watch
from diagnose.cluster.run.task import JobOptions
from diagnose.cluster.run.triage_run import Engine, Run, RunPlan
from diagnose.cluster.store.result_store import Store
from diagnose.errors import UserError
from diagnose.inputs.caller_arguments import as_config
from diagnose.phrases import Lang, Text, phrase
from diagnose.surfaces.terminal import answer_command, console, path_arguments
from diagnose.surfaces.terminal.answer_options import AnswerInputs, DisplayOptions
from diagnose.surfaces.terminal.console import trouble
from diagnose.whole_file import draft

#: Exit statuses: some jobs could not be read; a condition of --fail-on holds; stopped by Ctrl-C.
UNREAD, CONDITION_HOLDS, STOPPED = 1, 5, 130
#: Unusable parts of jobs that are named on standard error; more are counted.
MAX_NAMED = 20


@dataclass(slots=True)
class TriageOptions:
    """Options of the command about the run: where results are stored, exported and reported. `since` and `fail_on` are not parsed yet."""

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


def triage(paths: Sequence[str], request: AnswerInputs, display: DisplayOptions, options: TriageOptions) -> int:
    """Diagnose every job below the paths and print the failures in groups; the documented exit status."""
    if display.format == "sarif":
        answer_command.of_many(display)
    conditions = [fail_conditions.parse_condition(text) for text in options.fail_on]
    plan, job_settings = build_plan(paths, options), job_options(request, display, options)
    if options.watch:
        return watch_jobs(plan, job_settings, display, options)
    with open_store(options.store) as store:
        run = Run(store, plan, job_settings, lambda text: console.warn(text.to(display.lang)))
        try:
            export_note = run_jobs(run, options, display.lang)
        except KeyboardInterrupt:
            console.warn(stop_message(run, options).to(display.lang))
            return STOPPED
        if not run.found:
            raise trouble("triage_none", where=", ".join(paths), hint="name_the_log")
        print_report(store, options, display, plan.since)
        if export_note is not None:
            console.warn(export_note.to(display.lang))
        return exit_status(run, conditions, display.lang)


def watch_jobs(plan: RunPlan, job_settings: JobOptions, display: DisplayOptions, options: TriageOptions) -> int:
    """Triage in rounds until interrupted: jobs are read once their files stop changing, and new failures are reported."""
    watch, is_first = Watch(), True

    def say(text: Text) -> None:
        console.warn(text.to(display.lang))

    with open_store(options.store) as store:

        def round() -> None:
            nonlocal is_first
            note = say if is_first else lambda _: None  # how files are sorted into jobs is explained in the first round only
            run = Run(store, plan, job_settings, note, watch.is_ready)
            is_first = False
            run_jobs(run, options, display.lang)
            if run.done > run.reused:
                print_report(store, options, display, plan.since)
            elif options.notify:  # groups that a webhook did not take in an earlier round
                announce_groups(store, options.notify, display)

        try:
            watch.run(round, say)
        finally:
            watch.close()
    return 0


def build_plan(paths: Sequence[str], options: TriageOptions) -> RunPlan:
    """The run that the options describe. Raises UserError for options that contradict or mean nothing."""
    if options.jobs is not None and options.jobs < 1:
        raise trouble("jobs_positive")
    if options.notify:
        from diagnose.cluster.report import webhooks  # here and below: HTTP clients and chat renderers, only for --notify

        webhooks.platform_of(options.notify)
    if options.group_by not in BY:
        raise trouble("bad_group_by", hint="known_groups", text=repr(options.group_by), known=", ".join(BY))
    if options.export and "://" in options.export and options.engine != "ray":
        raise trouble("export_address", where=options.export, hint="check_target")
    since = fail_conditions.parse_since(options.since, time()) if options.since else None
    engine: Engine = "ray" if options.engine == "ray" else "local"
    folder = options.export if options.export and not is_json_lines(options.export) else ""
    return RunPlan(tuple(paths), options.job_pattern, since, engine, options.ray_address, options.jobs, export=folder)


def job_options(request: AnswerInputs, display: DisplayOptions, options: TriageOptions) -> JobOptions:
    """The options that every job is diagnosed with; files named by options are read once, here."""
    model = path_arguments.model(request.model)
    return JobOptions(
        configs=tuple(as_config(path) for path in path_arguments.configs(request.configs)),
        model=model.read_text(encoding="utf-8", errors="replace") if isinstance(model, Path) and model.is_file() else request.model,
        gpu=request.gpu,
        gpus=request.gpus,
        set=path_arguments.settings(request.set),
        rules=tuple(request.rules),
        trial=request.trial,
        reports=display.lang if options.export and is_json_lines(options.export) else None,
        redact=bool(display.redact),
    )


@contextmanager
def open_store(name: str | None) -> Iterator[Store]:
    """The named database, or a temporary one."""
    with tempfile.TemporaryDirectory(prefix="oomdoctor-", ignore_cleanup_errors=True) as folder:
        store = Store.open(Path(name) if name else Path(folder) / "triage.duckdb")
        try:
            yield store
        finally:
            store.close()


def run_jobs(run: Run, options: TriageOptions, lang: Lang) -> Text | None:
    """Diagnose the jobs; a sentence on what was exported, or None."""
    count = troubles = 0
    with open_export(options.export) as write_line, progress(run, lang), closing(run.results()) as results:  # before the database is
        for result in results:
            if result.report:
                write_line(result.report)
                count += 1
            for trouble_found in result.troubles:
                troubles += 1
                if troubles <= MAX_NAMED:
                    run.say(trouble_found.message)
    if troubles > MAX_NAMED:
        console.warn(phrase("cli.triage_more_troubles", count=troubles - MAX_NAMED).to(lang))
    if not options.export:
        return None
    if is_json_lines(options.export):
        return phrase("cli.triage_exported", count=count, file=options.export)
    if "://" in options.export:  # a remote export has partitions, no tables
        return phrase("cli.triage_partitions", file=options.export)
    return phrase("cli.triage_tables", count=len(run.store.export_tables(Path(options.export))), file=options.export)


def print_report(store: Store, options: TriageOptions, display: DisplayOptions, since: float | None) -> None:
    """Print the report, write the page of `out`, and announce new groups to the webhook of `notify`."""
    groups = summarize(store, options.group_by, since)
    if options.out:
        with console.write_errors(options.out):
            report_files.write_html(store, groups, Path(options.out), display.lang, display.redact is not False)
    if display.format == "html":
        console.say(report_files.html(store, groups, display.lang, redact=display.redact is not False))
    else:
        masked = display.format == "markdown" if display.redact is None else display.redact
        render = {"text": report_files.text, "json": report_files.json, "markdown": report_files.markdown}[display.format]
        console.say(render(report_files.masked(store, groups) if masked else groups, display.lang, console.view(display.top)))
    if options.notify:
        announce_groups(store, options.notify, display)


def announce_groups(store: Store, url: str, display: DisplayOptions) -> None:
    """Send the groups that have not been announced yet to a webhook."""
    from diagnose.cluster.report import webhooks

    unannounced = {name for (name,) in store.query("select fingerprint from groups where notified is null")}
    if not unannounced:
        return
    groups = summarize(store, only=sorted(unannounced))
    visible_groups = groups if display.redact is False else report_files.masked(store, groups)
    platform = webhooks.platform_of(url) or "slack"
    news = [
        webhooks.News(
            group.key,
            webhooks.group_message(group, platform, display.lang).text,
            {"jobs": group.jobs, "cause": group.title.to(display.lang)},
        )
        for group in visible_groups.groups
        if group.key in unannounced
    ]

    def failed(_: str, refusal: UserError) -> None:
        console.warn(refusal.to(display.lang))
        store.add_error("not_told", Text(refusal.to("en"), refusal.to("zh")))

    webhooks.announce(news, url, store.mark_notified, failed, display.lang)


def exit_status(run: Run, conditions: Sequence[Condition], lang: Lang) -> int:
    """5 if a condition of --fail-on holds (each is named on standard error), else 1 if a job could not be read, else 0."""
    values = fail_conditions.run_figures(run.store, run.store.run)
    matches = [condition for condition in conditions if condition.holds(values)]
    for condition in matches:
        console.warn(phrase("cli.triage_holds", condition=condition.text, value=f"{values[condition.figure]:g}").to(lang))
    return CONDITION_HOLDS if matches else UNREAD if run.errors else 0


def stop_message(run: Run, options: TriageOptions) -> Text:
    """What an interrupted run has stored, and how to resume it."""
    if options.store:
        return phrase("cli.triage_stopped", done=run.done, file=options.store)
    return phrase("cli.triage_lost", done=run.done)


# -- exports and progress


def is_json_lines(export: str) -> bool:
    """Whether an export is one file of JSON lines, and not a folder of tables."""
    return Path(export).suffix in (".jsonl", ".json", ".ndjson") and not Path(export).is_dir()


@contextmanager
def open_export(export: str | None) -> Iterator[Callable[[str], None]]:
    """A function that appends a line to a JSON-lines export; does nothing for other exports. The file is as it was until the run
    ends, also where it cannot be written. Raises UserError."""
    if export is None or not is_json_lines(export):
        yield lambda _: None
        return
    path, failure = Path(export), None

    with console.write_errors(export):
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft(path) as beside, beside.open("w", encoding="utf-8", errors="replace", newline="\n") as file:
            try:
                yield lambda line: print(line, file=file)
            except OSError:
                raise
            except BaseException as error:  # of the run: what it has stored is not read again, so its lines stay
                failure = error
    if failure is not None:
        raise failure


@contextmanager
def progress(run: Run, lang: Lang) -> Iterator[None]:
    """A bar on standard error with rate and remaining time, if that is a terminal."""
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
            """Advance the bar; while jobs are still being found, the total is the count so far."""
            suffix = "" if run.finished else "+"
            rate = phrase("cli.triage_rate", done=run.done, found=f"{run.found}{suffix}", rate=f"{bar.tasks[0].speed or 0:.0f}")
            bar.update(task, completed=run.done, total=run.found, figures=rate.to(lang))

        def say(text: Text) -> None:
            """Print a sentence above the bar."""
            bar.stop()
            plain(text)
            bar.start()

        run.on_result, run.say = tick, say
        try:
            yield
        finally:
            run.on_result, run.say = None, plain
