"""The command on two jobs: what differs between one that worked and one that failed."""

from __future__ import annotations

import json

from diagnose import pipeline, two_jobs
from diagnose.phrases import phrase
from diagnose.render.parts.wrapping import Page
from diagnose.surfaces.terminal import console, path_arguments
from diagnose.surfaces.terminal.answer_command import complain, of_many
from diagnose.surfaces.terminal.answer_options import AnswerInputs, DisplayOptions


def compare(good: str, bad: str, asked: AnswerInputs, shown: DisplayOptions) -> int:
    """Print what differs between two jobs; configs that are given hold for both. Returns the exit status."""
    of_many(shown)
    jobs = [pipeline.explain(path_arguments.logs([path]), **asked.options([path])) for path in (good, bad)]
    comparison = two_jobs.compare(*(shown.masked(job) for job in jobs))
    if shown.format == "json":
        console.say(json.dumps(comparison.to_dict(shown.lang), ensure_ascii=False, indent=2))
    else:
        view = console.view()
        page = Page(view.width, view.colour)
        first, *rest = [line.to(shown.lang) for line in comparison.lines]
        page.say(first)
        if rest:
            page.heading(phrase("compare.heading").to(shown.lang))
        for line in rest:
            page.say(line, "  - ", "    ")
        console.say(page.text())
    refused = sum(complain(job, shown.lang) for job in jobs)
    return 2 if refused and shown.strict else 0
