"""The answer for a terminal: on one screen what someone wants to read at two in the morning; the rest with --verbose."""

from __future__ import annotations

from diagnose.phrases import Lang
from diagnose.render import PLAIN, View, details, full, happened, outlook, screen
from diagnose.render.layout import Page
from diagnose.render.strings import changed, harmless
from diagnose.render.words import bracketed
from diagnose.report import Diagnosis


def render(diagnosis: Diagnosis, lang: Lang = "en", view: View = PLAIN) -> str:
    """The answer as text of at most `view.width` columns."""
    diagnosis = changed(diagnosis, harmless)
    page = Page(view.width, view.colour)
    headline(page, diagnosis, lang)
    if view.verbose:
        full.append(page, diagnosis, lang)
    else:
        screen.append(page, diagnosis, lang, view)
    details.append(page, diagnosis, lang, view)
    return page.text()


def headline(page: Page, diagnosis: Diagnosis, lang: Lang) -> None:
    where = happened.seen_at(diagnosis)
    banner = happened.banner(diagnosis, lang) + (bracketed(where, lang) if where else "")
    page.say(banner, style="good" if happened.good(diagnosis) else "bad")
    page.say(diagnosis.verdict.headline.to(lang), style="bold")
    for number, line in enumerate(outlook.room(diagnosis, lang)):
        page.say(line, "  " if number and len(diagnosis.ledgers) > 1 else "")
