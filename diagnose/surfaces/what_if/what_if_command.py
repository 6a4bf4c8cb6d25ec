"""`oomdoctor what-if`: a job before and after some of its knobs were turned. The playground's figures are made here too."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from diagnose import pipeline
from diagnose.phrases import Lang, phrase
from diagnose.plan.outlook.turned_knobs import Turned
from diagnose.render.data.part import mapping
from diagnose.render.markup import page_templates, turned_page
from diagnose.render.markup.html import SHEET
from diagnose.render.parts import turned_view, words
from diagnose.render.text import turned_text
from diagnose.surfaces.terminal import console, path_arguments
from diagnose.surfaces.terminal.answer_command import complain
from diagnose.surfaces.terminal.answer_options import AnswerInputs, DisplayOptions
from diagnose.surfaces.what_if.turned_roles import bench, roles, values
from diagnose.surfaces.what_if.typed_changes import RoleChange

#: A change on the command line: a knob's dotted name, and its value.
CHANGE = re.compile(r"([a-z_]+\.[a-z_]+)=(.*)", re.DOTALL)


def what_if(asked_words: Sequence[str], asked: AnswerInputs, shown: DisplayOptions) -> int:
    """Print a job before and after the changes among the words; returns the exit status: 0 fits then, 1 does not, 4 cannot tell."""
    changes = {match[1]: match[2] for word in asked_words if (match := CHANGE.fullmatch(word)) and not Path(word).exists()}
    logs = [word for word in asked_words if not CHANGE.fullmatch(word) or Path(word).exists()]
    if not changes:
        raise turned_error("nothing_turned", "give_changes")
    logs, configs = path_arguments.apart(logs, shown.lang)
    options = asked._replace(configs=[*asked.configs, *configs]).options(logs)
    if logs:
        diagnosis = pipeline.explain(path_arguments.logs(logs), **options)
    elif options["configs"]:
        diagnosis = pipeline.check(options.pop("configs"), **options, frontier=False)
    else:
        raise console.trouble("no_config_given", hint="give_config")
    turned = bench(diagnosis, [Path(folder) for folder in asked.rules]).turn(values(changes))
    if shown.format == "json":
        console.say(json.dumps(as_data(turned, shown.lang), ensure_ascii=False, indent=2))
    elif shown.format == "html":
        console.say(page(turned, shown.lang))
    else:
        console.say(turned_text.render(turned, shown.lang, console.view()))
    if complain(diagnosis, shown.lang) and shown.strict:
        return 2
    return {"yes": 0, "likely": 0, "unlikely": 1, "no": 1, "unknown": 4}[turned.after.fits]


def turned_error(key: str, hint: str) -> Exception:
    from diagnose.errors import UserError

    return UserError(phrase(f"what_if.{key}"), "", phrase(f"what_if.{hint}"))


def as_data(turned: Turned, lang: Lang) -> dict[str, object]:
    """The comparison as JSON can hold it: the job, then each role with the terms that differ."""
    return {
        "changes": {name: words.value_text(value, "en") for name, value in turned.changes.items()},
        "before": turned_page.state_of(turned.before),
        "after": turned_page.state_of(turned.after),
        "parts": [row._asdict() for row in turned_view.differences(turned)],
        "roles": [mapping(role, RoleChange, lang) for role in roles(turned, lang)],
        "remarks": turned_view.remarks(turned, lang),
    }


def page(turned: Turned, lang: Lang) -> str:
    """The comparison as a page of its own."""
    title = turned_view.heading(turned, lang)
    sheet = page_templates.asset(*SHEET, *turned_page.SHEET)
    return "".join(page_templates.page("turned_page", lang, title=title, sheet=sheet, body=turned_page.turned(turned, lang)))
