"""`oomdoctor worked` and `oomdoctor failed`: what an answer led to, for the next answer on the same job."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from diagnose import notebook
from diagnose.phrases import Lang, phrase
from diagnose.surfaces.terminal import console


def note(job: str, remedies: Sequence[str], result: notebook.Result, lang: Lang) -> int:
    """Note it. Raises UserError for what is no report, no remedy, or cannot be kept."""
    if not notebook.JOB.fullmatch(job):
        raise console.trouble("no_report_id", hint="where_report_id", name=repr(job))
    words = [word.lower().replace("-", "_") for word in remedies]
    for word in words:
        if word not in notebook.remedies():
            near = difflib.get_close_matches(word, notebook.remedies(), 1)
            raise console.trouble("no_such_remedy", hint="did_you_mean" if near else "where_remedy", name=repr(word), near="".join(near))
    with console.write_errors("notes"):
        kept = notebook.write(job, words, result)
    if kept is None:
        raise console.trouble("no_notes_folder", hint="set_data_home")
    console.say(phrase(f"cli.noted_{result}", file=kept).to(lang))
    return 0
