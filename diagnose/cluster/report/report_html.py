"""Values for the report's page template: headline, figures, charts, groups with their plans, all failed jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import time
from typing import TypeAlias

from diagnose.cluster.report import report_charts, report_words
from diagnose.cluster.report.report_queries import Failed
from diagnose.cluster.report.report_words import say
from diagnose.cluster.report.summary_types import Group, Near, Step, Summary, Variant
from diagnose.phrases import Lang
from diagnose.render.markup import page_templates
from diagnose.render.markup.markdown import diff
from diagnose.render.parts.advice_text import enough
from diagnose.render.parts.strings import visible
from diagnose.render.parts.words import comma, semicolon, word
from diagnose.units import show
from diagnose.version import __version__

#: Variants shown beside the answer, and at a group; bytes of rows of jobs that a page may hold.
FIRST, VARIANTS, ROOM = 2, 8, 6 << 20

#: What becomes of a stranger's text before it is shown: harmless, on one line, masked where that is asked for.
TextFilter: TypeAlias = Callable[[str], str]


@dataclass(slots=True)
class Listed:
    """A failed job and the relative address of its diagnosis, empty if there is none; `log`: the address of its log on the machine that
    wrote the report, empty in a report that hides folders."""

    job: Failed
    name: str
    user: str
    address: str
    log: str = ""


def left_out(group: Group, visible: int) -> int:
    """The number of jobs in variants that are not shown."""
    return 0 if group.plan is None else group.plan.more + sum(variant.jobs for variant in group.plan.variants[visible:])


def changes(variant: Variant) -> list[tuple[str, str]]:
    """Removed and added lines with their CSS class; empty if the plan edits no file."""
    return page_templates.diff(visible(line).replace("\n", " ") for line in diff(variant.edits))


def variables(variant: Variant) -> list[tuple[str, str]]:
    """The environment variables of a plan as lines without a sign."""
    return [("", visible(line)) for line in report_words.variables(variant.env)]


#: What the templates may call by its name; `lang` is the last parameter where words are in it.
CALLED = page_templates.by_name(
    report_words.variant_note, report_words.count, report_words.date, report_words.estimated, report_words.fits_short,
    report_words.fitting, report_words.framework, report_words.minute, report_words.number, report_words.percent,
    report_words.certainty_text, report_words.releases, report_words.where, report_charts.colour, enough, changes, variables, left_out,
)  # fmt: skip


def page(summary: Summary, listed: Sequence[Listed], addresses: dict[int, str], lang: Lang, *, masked: bool) -> Iterator[str]:
    """The report page. `addresses`: of the groups' pages, by group number; `listed`: the jobs, latest first."""
    lead, when = report_words.lead(summary, lang), report_words.period_text(summary.period, lang)
    since = [say("since", lang, date=report_words.date(summary.since))] if summary.since is not None else []
    return document(
        "report",
        f"{lead} · oomdoctor",
        lang,
        summary=summary,
        addresses=addresses,
        masked=masked,
        FIRST=FIRST,
        VARIANTS=VARIANTS,
        lead=lead,
        eyebrow=" · ".join([say("eyebrow", lang), *([when] if when else []), *since]),
        costs=report_words.costs(summary, lang),
        split=report_charts.split(summary, lang),
        stats=stats(summary, lang),
        times=report_charts.times(summary, lang),
        charts=[report_charts.cost(summary, lang), report_charts.causes(summary, lang), report_charts.lack(summary, lang)],
        listed=len(listed),
        rows_that_fit=lambda row: rows_that_fit(
            row, listed, {group.number: report_words.title(group, summary.by, lang) for group in summary.groups}, lang
        ),
        footer=say("footer", lang, version=summary.tool or __version__, date=report_words.minute(time())),
        title_of=report_words.title,
        plan_of=report_words.steps,
        price=lambda step: price(step, lang),
        figures=lambda group: figures(group, lang),
        near=lambda similar: near(similar, lang),
    )


def document(name: str, title: str, lang: Lang, **values: object) -> Iterator[str]:
    """A complete page that loads nothing and runs only its own script."""
    return page_templates.page(
        name,
        lang,
        title=title,
        sheet=page_templates.asset("tokens.css", "page.css", "report.css"),
        script=page_templates.asset("report.js"),
        say=lambda key, **arguments: say(key, lang, **arguments),
        size=show,
        **CALLED,
        **values,
    )


def price(step: Step, lang: Lang) -> str:
    """The price of a step."""
    parts = [word(f"results_{step.results}", lang)] if step.results else []
    parts += [word(f"speed_{step.speed}", lang)] if step.speed and step.speed != "same" else []
    return comma(lang).join(parts)


def stats(summary: Summary, lang: Lang) -> list[tuple[str, str, str]]:
    """Four figures with label and note: jobs read, failures, cost, distinct mistakes."""
    counts = summary.counts
    unread = max(counts.unread, len(summary.unread))
    repeated = sum(group.jobs - 1 for group in summary.groups) if summary.by == "fingerprint" else 0
    states = report_words.states(summary, lang)
    read_notes = [say("figure_unread", lang, count=report_words.number(unread)) if unread else say("figure_all_read", lang)]
    read_notes += [say("figure_states", lang, states=states)] if states else []
    failed_notes = [say("figure_share", lang, share=report_words.percent(counts.failed, counts.jobs))] if counts.jobs else []
    failed_notes += [say("figure_suspected", lang, count=report_words.number(counts.suspected))] if counts.suspected else []
    hours = "—" if summary.cost.hours is None else report_words.number(round(summary.cost.hours))
    costed = (
        say("figure_hours_known", lang, known=report_words.number(summary.cost.known), jobs=report_words.number(counts.failed))
        if counts.failed
        else ""
    )
    again = say("figure_repeated", lang, share=report_words.percent(repeated, counts.failed)) if repeated else ""
    return [
        (say("figure_read", lang), report_words.number(counts.jobs), " · ".join(read_notes)),
        (say("figure_failed", lang), report_words.number(counts.failed), " · ".join(failed_notes)),
        (say("figure_hours", lang), hours, costed),
        (say("figure_groups" if summary.by == "fingerprint" else "figure_groups_by", lang), report_words.number(summary.total), again),
    ]


def figures(group: Group, lang: Lang) -> list[tuple[str, str]]:
    """The figures of a group as sentences, by phrase key."""
    return [
        ("cost", report_words.hours(group.cost, lang)),
        ("when", report_words.period_text(group.period, lang)),
        ("who", report_words.people(group, lang)),
        ("sure", semicolon(lang).join(filter(None, (report_words.certainty_text(group, lang), report_words.shortage_text(group, lang))))),
        ("tried", report_words.tried_text(group, lang)),
    ]


def near(similar: Near, lang: Lang) -> tuple[str, str]:
    """Why another group may be the same mistake: the text before and after its number."""
    lead, _, ending = report_words.near_text(similar, lang, "\0").partition("\0")
    return lead[:1].upper() + lead[1:], ending


def rows_that_fit(row: Callable[[Listed, str], str], listed: Sequence[Listed], titles: dict[int, str], lang: Lang) -> list[str]:
    """As many rows as the page can hold; a job is titled like its group."""
    rows, room, others = [], ROOM, say("others", lang)
    for job in listed:
        rows.append(row(job, titles.get(job.job.number, others)))
        room -= len(rows[-1].encode())
        if room < 0:
            return rows[:-1]
    return rows
