"""The commands on one job: explain, check, facts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from diagnose import pipeline
from diagnose.diagnosis import Diagnosis
from diagnose.phrases import Lang
from diagnose.render.formats import RENDERERS
from diagnose.render.parts import words
from diagnose.surfaces.terminal import console, path_arguments, quick_preview, reading_progress
from diagnose.surfaces.terminal.answer_options import AnswerInputs, DisplayOptions
from diagnose.surfaces.terminal.console import trouble

#: Formats that mean one diagnosis, and those that a diff can follow.
OF_A_JOB = ("html", "sarif")
READABLE = ("text", "markdown")


def explain(logs: Sequence[str], asked: AnswerInputs, shown: DisplayOptions) -> int:
    """Diagnose a job and print the answer; returns the exit status. Configs among the logs are configs."""
    ready(shown)
    logs, configs = path_arguments.apart(logs, shown.lang)
    asked = asked._replace(configs=[*asked.configs, *configs])
    if configs and not logs and not asked.snapshot:
        return check((), asked, shown)
    given = path_arguments.logs(logs) if logs or not asked.snapshot else []
    quick_preview.say(given, asked, shown)
    snapshot = Path(asked.snapshot) if asked.snapshot else None
    with reading_progress.reading([*given, *filter(None, [snapshot])], shown.lang):
        diagnosis = pipeline.explain(given, **asked.options(logs), trial=asked.trial, snapshot=snapshot)
    return finish(diagnosis, asked, shown)


def check(files: Sequence[str], asked: AnswerInputs, shown: DisplayOptions) -> int:
    """Estimate whether a job fits before it runs. Files named without --config are configs too; options alone may tell the job."""
    ready(shown)
    asked = asked._replace(configs=[*asked.configs, *files])
    options = asked.options()
    if not options["configs"] and not options["model"] and not options["set"]:
        raise trouble("no_config_given", hint="give_config")
    diagnosis = pipeline.check(options.pop("configs"), **options)
    status = finish(diagnosis, asked, shown)
    unusable = sum(notice.level == "error" for notice in diagnosis.notices)
    return 2 if unusable >= len(asked.configs) else status


def facts(logs: Sequence[str], asked: AnswerInputs, shown: DisplayOptions) -> int:
    """Print what was read; exit status 0 if configs alone were given."""
    from diagnose.render.markup import facts_view  # `explain` and `check` do without

    of_many(shown)
    options = asked.options(logs)
    if not logs and not options["configs"]:
        raise trouble("no_log_given", hint="give_log")
    given = path_arguments.logs(logs) if logs else []
    with reading_progress.reading(given, shown.lang):
        diagnosis = pipeline.explain(given, **options) if logs else pipeline.check(options.pop("configs"), **options, frontier=False)
    forms = {"json": facts_view.as_json, "markdown": facts_view.as_markdown}
    render = forms.get(shown.format, facts_view.as_text)
    console.say(render(shown.masked(diagnosis), shown.lang, console.view(verbose=shown.verbose)))
    refused = complain(diagnosis, shown.lang)
    return 2 if refused and (shown.strict or not logs) else diagnosis.exit_status if logs else 0


def ready(shown: DisplayOptions) -> None:
    """Raises UserError for contradictory options, before any work."""
    if shown.patch == "-" and shown.format not in READABLE:
        raise trouble("patch_with_format", hint="patch_to_file", format=shown.format)
    if shown.check_with is not None and not shown.apply:
        raise trouble("check_without_apply", hint="check_after_apply")


def of_many(shown: DisplayOptions) -> None:
    """Raises UserError for a format that needs exactly one diagnosis."""
    if shown.format in OF_A_JOB:
        raise trouble("format_of_a_job", hint="other_formats", format=shown.format)


def finish(diagnosis: Diagnosis, asked: AnswerInputs, shown: DisplayOptions) -> int:
    """Print the answer, write patch and edits on request, report unusable inputs; returns the exit status."""
    view = console.view(shown.top, shown.verbose, shown.budget, shown.every_rule)
    refused = complain(diagnosis, shown.lang, is_shown=view.reader and shown.format == "text")
    console.say(RENDERERS[shown.format](shown.masked(diagnosis), shown.lang, view))
    if shown.patch is not None or shown.apply:
        from diagnose.surfaces.terminal import patch_writer  # only for --patch and --apply

        written = patch_writer.write(diagnosis, asked.configs, shown.patch, shown.apply, shown.lang)
        checked = not written or shown.check_with is None or patch_writer.is_accepted(shown.check_with, shown.lang)
    else:
        checked = True
    return 2 if (refused and shown.strict) or not checked else diagnosis.exit_status


def complain(diagnosis: Diagnosis, lang: Lang, is_shown: bool = False) -> int:
    """A sentence on standard error for each unusable input, unless the answer on the same terminal says it; returns their number."""
    refused = [notice for notice in diagnosis.notices if notice.level == "error"]
    for notice in () if is_shown else refused:
        console.warn(words.notice(notice, lang))
    return len(refused)
