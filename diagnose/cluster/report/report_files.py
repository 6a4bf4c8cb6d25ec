"""The report on many jobs in every format: text, Markdown, JSON, and HTML with further pages."""

from __future__ import annotations

from pathlib import Path

from diagnose.cluster.report import report_masks
from diagnose.cluster.report.summary_types import Store, Summary
from diagnose.phrases import Lang
from diagnose.render.parts.view import PLAIN, View


# Each imports its module when called: a summary on a terminal need not pay for the pages.
def text(summary: Summary, lang: Lang = "en", view: View = PLAIN) -> str:
    """The report at the width of a terminal."""
    from diagnose.cluster.report.report_text import text as written

    return written(summary, lang, view)


def markdown(summary: Summary, lang: Lang = "en", view: View = PLAIN) -> str:
    """The report as Markdown for a chat or an issue."""
    from diagnose.cluster.report.report_text import markdown as written

    return written(summary, lang, view)


def json(summary: Summary, lang: Lang = "en", view: View = PLAIN) -> str:
    """The report as data."""
    from diagnose.cluster.report.report_data import data

    return data(summary, lang, view)


def html(store: Store, summary: Summary, lang: Lang = "en", *, redact: bool = True) -> str:
    """The report page alone, for standard output."""
    from diagnose.cluster.report.page_files import single_page

    return single_page(store, summary, lang, redact)


def write_html(store: Store, summary: Summary, target: Path, lang: Lang = "en", redact: bool = True) -> list[Path]:
    """Write the report page and the pages of diagnoses; returns the paths, the report first. Raises OSError."""
    from diagnose.cluster.report.page_files import write_pages

    return write_pages(store, summary, target, lang, redact)


def masked(store: Store, summary: Summary) -> Summary:
    """The summary without secrets, users, hosts and the jobs' folders."""
    return report_masks.summary(summary, report_masks.masks(store, summary.root))
