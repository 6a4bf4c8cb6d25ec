"""The report as one page: the answer first, then figures, charts, the groups with their plans, and every failed job. It loads nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import time

from diagnose.cluster.report import report_charts as charts
from diagnose.cluster.report import report_style as style
from diagnose.cluster.report import report_words as told
from diagnose.cluster.report.failure_groups import Group, Summary
from diagnose.cluster.report.report_charts import badge
from diagnose.cluster.report.report_tables import Listed, groups, jobs, left_out, steps, variant
from diagnose.cluster.report.report_words import say
from diagnose.phrases import Lang
from diagnose.render.markup import elements
from diagnose.render.markup.elements import Child, Html, el
from diagnose.render.parts.strings import one_line
from diagnose.version import __version__

#: Variants shown beside the answer.
FIRST = 2


def page(summary: Summary, listed: Iterable[Listed], addresses: dict[int, str], lang: Lang, *, masked: bool) -> str:
    """The page. `addresses` are those of the groups' own pages, by number; `listed` the jobs, the latest first."""
    failed = summary.counts.failed
    title = f"{told.lead(summary, lang)} · oomdoctor"
    body = [
        el("a", say("skip", lang), href="#groups", class_="skip"),
        header(summary, lang),
        el(
            "main",
            stats(summary, lang),
            jump(summary, lang) if failed else None,
            el("div", charts.times(summary, lang), charts.cost(summary, lang), charts.causes(summary, lang), charts.lack(summary, lang),
               class_="charts") if failed else None,
            groups(summary, addresses, lang) if failed else None,
            jobs(list(listed), summary, lang) if failed else None,
            unread(summary, lang),
        ),
        footer(summary, lang, masked),
    ]  # fmt: skip
    return document(title, lang, body)


def document(title: str, lang: Lang, body: Sequence[Child]) -> str:
    """A whole page that may load nothing and run nothing but its own script."""
    return elements.document(title, lang, style.policy(), style.SHEET, *body, el("script", Html(style.SCRIPT)))


# -- the answer


def header(summary: Summary, lang: Lang) -> Html:
    """How many failures are one mistake, what it cost, and what to change."""
    when = told.seen(summary.period, lang)
    since = [say("since", lang, date=told.date(summary.since))] if summary.since is not None else []
    eyebrow = " · ".join([say("eyebrow", lang), *([when] if when else []), *since])
    lead = el("h1", told.lead(summary, lang))
    if not summary.groups or not summary.counts.failed:
        return el("header", el("div", el("p", eyebrow, class_="eyebrow"), lead), class_="hero")
    first = summary.groups[0]
    said = [
        el("p", eyebrow, class_="eyebrow"),
        lead,
        el("p", badge(1), " ", told.title(first, summary.by, lang), class_="mistake"),
        el("p", where, class_="dim") if (where := told.where(first, lang)) else None,
        el("p", cost, class_="paid") if (cost := told.costs(summary, lang)) else None,
    ]
    return el("header", el("div", *said), answer(first, lang), charts.split(summary, lang), class_="hero")


def answer(group: Group, lang: Lang) -> Html:
    """What to change, with the edits for the configs that most jobs have."""
    if group.plan is None:
        return el("section", el("h2", say("change_this", lang)), el("p", say("no_plan", lang)), class_="answer")
    shown = [variant(group, each, lang) for each in group.plan.variants[:FIRST]]
    rest = len(group.plan.variants) - FIRST
    more = el("p", el("a", say("more_variants", lang, jobs=told.count(left_out(group, FIRST), lang)), href="#g-1")) if rest > 0 else None
    return el(
        "section",
        el("h2", say("change_this", lang)),
        steps(group, lang),
        *shown,
        more,
        el("p", told.sure(group, lang), class_="dim"),
        class_="answer",
    )


# -- figures


def stats(summary: Summary, lang: Lang) -> Html:
    """Four figures: what was read, what failed, what it cost, how many mistakes."""
    of = summary.counts
    lost = max(of.unread, len(summary.unread))
    repeated = sum(group.jobs - 1 for group in summary.groups) if summary.by == "fingerprint" else 0
    notes = {
        "read": " · ".join(filter(None, (
            say("figure_unread", lang, count=told.number(lost)) if lost else say("figure_all_read", lang),
            say("figure_states", lang, states=states) if (states := told.states(summary, lang)) else ""))),
        "failed": " · ".join(filter(None, (
            say("figure_share", lang, share=told.percent(of.failed, of.jobs)) if of.jobs else "",
            say("figure_suspected", lang, count=told.number(of.suspected)) if of.suspected else ""))),
        "hours": say("figure_hours_known", lang, known=told.number(summary.cost.known), jobs=told.number(of.failed)) if of.failed else "",
        "groups": say("figure_repeated", lang, share=told.percent(repeated, of.failed)) if repeated else "",
    }  # fmt: skip
    figures = {
        "read": told.number(of.jobs),
        "failed": told.number(of.failed),
        "hours": "—" if summary.cost.hours is None else told.number(round(summary.cost.hours)),
        "groups": told.number(summary.total),
    }
    made = []
    for name, figure in figures.items():
        label = "figure_groups_by" if name == "groups" and summary.by != "fingerprint" else f"figure_{name}"
        made.append(el("div", el("dt", say(label, lang)), el("dd", el("span", figure, class_="n")), el("dd", notes[name], class_="s")))
    return el("dl", *made, class_="stats")


def jump(summary: Summary, lang: Lang) -> Html:
    """To the parts of the page."""
    targets = [("groups", "groups"), ("jobs", "jobs")] + ([("unread", "unread_title")] if summary.unread else [])
    return el(
        "nav", *(el("a", say(key, lang), href=f"#{name}") for name, key in targets), class_="jump", aria_label=say("page_title", lang)
    )


# -- the rest


def unread(summary: Summary, lang: Lang) -> Html | None:
    """What could not be read, and why."""
    if not summary.unread:
        return None
    head = el("tr", el("th", say("column_job", lang), scope="col"), el("th", say("column_fault", lang), scope="col"))
    rows = [
        el("tr", el("th", el("code", one_line(each.job)), scope="row"), el("td", one_line(each.message.to(lang))))
        for each in summary.unread
    ]
    rest = summary.counts.unread - len(summary.unread)
    more = el("p", say("more_unread", lang, count=told.number(rest)), class_="dim") if rest > 0 else None
    return el(
        "section",
        el("h2", say("unread_title", lang), id="unread"),
        el("table", el("thead", head), el("tbody", *rows)),
        more,
        aria_labelledby="unread",
    )


def footer(summary: Summary, lang: Lang, masked: bool) -> Html:
    said = say("footer", lang, version=summary.tool or __version__, date=told.minute(time()))
    return el("footer", el("p", said), el("p", say("footer_masked", lang)) if masked else None)
