"""The output formats by name: functions from a Diagnosis to text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from diagnose.diagnosis import Diagnosis, Json
from diagnose.phrases import Lang
from diagnose.render.parts.view import PLAIN, View

Renderer: TypeAlias = Callable[[Diagnosis, Lang, View], str]


# Each imports its module when called: a JSON report need not pay for the terminal.
def _text(diagnosis: Diagnosis, lang: Lang = "en", view: View = PLAIN) -> str:
    from diagnose.render.text.one_screen import render

    return render(diagnosis, lang, view)


def _json(diagnosis: Diagnosis, lang: Lang = "en", _: View = PLAIN) -> str:
    import json

    from diagnose.render.parts.strings import escaped

    # One part of the report per line: as fast as none (indent= is written in Python), and still readable.
    parts = (f"{json.dumps(name)}: {json.dumps(part, ensure_ascii=False)}" for name, part in diagnosis.to_dict(lang).items())
    return escaped("{\n" + ",\n".join(parts) + "\n}")


def _markdown(diagnosis: Diagnosis, lang: Lang = "en", view: View = PLAIN) -> str:
    from diagnose.render.markup.markdown import render

    return render(diagnosis, lang, view)


def _html(diagnosis: Diagnosis, lang: Lang = "en", view: View = PLAIN) -> str:
    from diagnose.render.markup.html import render

    return render(diagnosis, lang, view)


def _sarif(diagnosis: Diagnosis, lang: Lang = "en", view: View = PLAIN) -> str:
    from diagnose.render.data.sarif import render

    return render(diagnosis, lang, view)


RENDERERS: dict[str, Renderer] = {"text": _text, "json": _json, "markdown": _markdown, "html": _html, "sarif": _sarif}


def report(diagnosis: Diagnosis, lang: Lang = "en") -> dict[str, Json]:
    """The report as plain data, with keys in the order of the schema."""
    from diagnose.render.data import part, report_schema

    return part.mapping(diagnosis, report_schema.Report, lang)


def markdown(diagnosis: Diagnosis, lang: Lang = "en", *, redact: bool = True, verbose: bool = False) -> str:
    """The answer as Markdown for a chat or an issue; secrets and names masked unless `redact` is False."""
    from diagnose.render.parts import redaction

    return RENDERERS["markdown"](redaction.mask_diagnosis(diagnosis) if redact else diagnosis, lang, View(verbose=verbose))
