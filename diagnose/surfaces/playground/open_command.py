"""`oomdoctor open`: the answer as a page, written to a file and opened in a browser."""

from __future__ import annotations

import tempfile
import webbrowser
from collections.abc import Sequence
from pathlib import Path

from diagnose import pipeline
from diagnose.diagnosis import Diagnosis
from diagnose.errors import UserError
from diagnose.phrases import Lang, phrase
from diagnose.render.markup import html
from diagnose.render.parts.failure_text import file_stem
from diagnose.surfaces.terminal import console, path_arguments, reading_progress
from diagnose.surfaces.terminal.answer_command import complain
from diagnose.surfaces.terminal.answer_options import AnswerInputs, DisplayOptions


def open_page(logs: Sequence[str], asked: AnswerInputs, shown: DisplayOptions, out: str | None = None) -> int:
    """Write the answer as a page and open it; configs without a log are checked. Returns the exit status of the diagnosis."""
    diagnosis = diagnose(logs, asked, shown.lang)
    file = Path(out) if out else Path(tempfile.mkdtemp(prefix="oomdoctor-")) / f"{file_stem(diagnosis)}.html"
    with console.write_errors(str(file)):
        file.write_text(html.render(shown.masked(diagnosis), shown.lang), encoding="utf-8", errors="replace")
    console.say(phrase("what_if.page_written", file=file).to(shown.lang))
    if not opened(file):
        console.warn(phrase("what_if.page_not_opened", file=file).to(shown.lang))
    refused = complain(diagnosis, shown.lang)
    return 2 if refused and shown.strict else diagnosis.exit_status


def diagnose(logs: Sequence[str], asked: AnswerInputs, lang: Lang) -> Diagnosis:
    """The diagnosis of the logs, or the check of configs alone. Raises UserError without either."""
    logs, configs = path_arguments.apart(logs, lang)
    options = asked._replace(configs=[*asked.configs, *configs]).options(logs)
    snapshot = Path(asked.snapshot) if asked.snapshot else None
    if not logs and snapshot is None:
        if not options["configs"]:
            raise UserError(phrase("what_if.no_page"), "", phrase("cli.give_log"))
        return pipeline.check(options.pop("configs"), **options)
    given = path_arguments.logs(logs) if logs else []
    with reading_progress.reading([*given, *filter(None, [snapshot])], lang):
        return pipeline.explain(given, **options, trial=asked.trial, snapshot=snapshot)


def opened(file: Path) -> bool:
    """Whether a browser took the file."""
    try:
        return webbrowser.open(file.resolve().as_uri())
    except (OSError, webbrowser.Error):
        return False
