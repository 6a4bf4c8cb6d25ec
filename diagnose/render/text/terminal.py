"""The answer for a terminal: on one screen what someone wants to read at two in the morning; the rest with --verbose."""

from __future__ import annotations

from diagnose.diagnosis import Diagnosis
from diagnose.phrases import Lang
from diagnose.render.parts import failure_text, outlook_view
from diagnose.render.parts.layout import Page
from diagnose.render.parts.strings import harmless, map_texts
from diagnose.render.parts.view import PLAIN, View
from diagnose.render.parts.words import bracketed
from diagnose.render.text import details, full_text, screen


def render(diagnosis: Diagnosis, lang: Lang = "en", view: View = PLAIN) -> str:
    """The answer as text of at most `view.width` columns."""
    diagnosis = map_texts(diagnosis, harmless)
    page = Page(view.width, view.colour)
    headline(page, diagnosis, lang)
    if view.verbose:
        full_text.append(page, diagnosis, lang)
    else:
        screen.append(page, diagnosis, lang, view)
    details.append(page, diagnosis, lang, view)
    return page.text()


def headline(page: Page, diagnosis: Diagnosis, lang: Lang) -> None:
    where = failure_text.failure_place(diagnosis)
    banner = failure_text.banner(diagnosis, lang) + (bracketed(where, lang) if where else "")
    page.say(banner, style="good" if failure_text.is_good_news(diagnosis) else "bad")
    page.say(diagnosis.verdict.headline.to(lang), style="bold")
    for number, line in enumerate(outlook_view.room_lines(diagnosis, lang)):
        page.say(line, "  " if number and len(diagnosis.ledgers) > 1 else "")
