"""What the pages of a report are put together from: the tables that can be sorted and filtered, and the edits of a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from diagnose.cluster.report import report_words as told
from diagnose.cluster.report.failure_groups import Group, Summary, Variant
from diagnose.cluster.report.report_charts import badge
from diagnose.cluster.report.report_queries import Failed
from diagnose.cluster.report.report_words import say
from diagnose.phrases import Lang
from diagnose.record import record
from diagnose.render.markup.elements import Child, Html, el, inside
from diagnose.render.markup.markdown import diff
from diagnose.render.parts.strings import one_line, visible
from diagnose.render.parts.words import colon, comma, semicolon, word
from diagnose.units import show

#: What becomes of a stranger's text before it is shown: harmless, on one line, masked where that is asked for.
Shown: TypeAlias = Callable[[str], str]

#: Variants shown at a group; bytes of rows of jobs that a page may hold.
VARIANTS, ROOM = 8, 6 << 20


@record
class Listed:
    """A failed job and where its diagnosis stands: an address relative to the page, empty where there is none."""

    job: Failed
    name: str
    user: str
    address: str


# -- plans


def left_out(group: Group, shown: int) -> int:
    """Jobs of variants beyond the first ones."""
    return 0 if group.plan is None else group.plan.more + sum(each.jobs for each in group.plan.variants[shown:])


def steps(group: Group, lang: Lang) -> Html:
    """The steps of the plan, each with what it costs."""
    items = []
    for step in group.plan.steps if group.plan is not None else ():
        price = [word(f"results_{step.results}", lang)] if step.results else []
        price += [word(f"speed_{step.speed}", lang)] if step.speed and step.speed != "same" else []
        items.append(el("li", el("b", one_line(step.title.to(lang))), colon(lang) if price else None, comma(lang).join(price)))
    return el("ol", *items, class_="steps")


def variant(group: Group, of: Variant, lang: Lang) -> Html:
    """The edits for one configuration as a diff."""
    note = told.beside(group, of, lang)
    head = el("p", el("b", told.framework(of.framework, lang)), " · ", told.count(of.jobs, lang), inside(" · ", note) if note else None)
    return el("div", head, changes(of), class_="variant")


def changes(of: Variant) -> Html | None:
    """Removed and added lines by sign and colour; nothing where the plan edits no file."""
    lines = [*diff(of.edits), *(f"+ {one_line(each)}" for each in of.env)]
    shown: list[Child] = []
    for line in lines:
        shown += [el("span", visible(line).replace("\n", " "), class_={"+": "add", "-": "del"}.get(line[:1], "at")), "\n"]
    return el("pre", el("code", *shown[:-1]), tabindex=0) if shown else None


# -- tables


def tools(table: str, label: str, lang: Lang) -> Html:
    """A filter, which the script brings out."""
    output = el("output", data_said=say("filter_shown", lang, shown="{shown}", total="{total}"), aria_live="polite", class_="dim")
    field = el("input", type="search", id=f"{table}-filter", placeholder=say("filter_hint", lang), autocomplete="off", spellcheck="false")
    return el("div", el("label", label, for_=f"{table}-filter"), field, output, class_="tools", id=f"{table}-tools", hidden=True)


def heading(key: str, kind: str | None, lang: Lang, of: str = "") -> Html:
    """A column's heading; `kind` n or t: sorted by number or by text."""
    classes = " ".join(filter(None, ("figure" if kind == "n" and of != "left" else "", of)))
    return el("th", say(key, lang), scope="col", data_k=kind, class_=classes or None)


# -- groups


def groups(summary: Summary, addresses: dict[int, str], lang: Lang) -> Html:
    """One row per group, with its plan below, folded."""
    what = "column_what" if summary.by == "fingerprint" else f"by_{summary.by}"
    head = el(
        "tr",
        heading("column_group", "n", lang),
        heading(what, "t", lang),
        heading("column_jobs", "n", lang),
        heading("column_hours", "n", lang),
        heading("column_users", "n", lang, "wide-only"),
        heading("column_last", "t", lang, "wide-only"),
        heading("column_fits", "n", lang, "narrow-off"),
    )
    said = say("groups_help", lang) if summary.by == "fingerprint" else say("groups_help_by", lang, by=say(f"by_{summary.by}", lang))
    rest = summary.total - len(summary.groups)
    left = say("left_groups", lang, count=told.number(summary.left), groups=told.number(rest)) if rest > 0 else ""
    table = el(
        "table",
        el("thead", head),
        *(of_group(group, summary, addresses, lang) for group in summary.groups),
        class_="list groups",
        id="list-groups",
    )
    return el(
        "section",
        el("h2", say("groups", lang), id="groups"),
        el("p", said, class_="dim"),
        tools("list-groups", say("filter_groups", lang), lang),
        table,
        el("p", left, inside(" ", el("a", say("jobs", lang), href=addresses[0])) if 0 in addresses else None, class_="dim")
        if left
        else None,
        aria_labelledby="groups",
    )


def of_group(group: Group, summary: Summary, addresses: dict[int, str], lang: Lang) -> Html:
    """A body of two rows: the figures, and the plan to open."""
    hours = group.cost.hours
    chips = [el("span", say("new", lang), class_="chip good")] if group.new else []
    name = [told.title(group, summary.by, lang), *(inside(" ", chip) for chip in chips), el("span", told.where(group, lang), class_="dim")]
    fitting = told.fitting(group)
    first = el(
        "tr",
        el("td", badge(group.number), rowspan=2, data_v=group.number),
        el("th", *name, scope="row"),
        el("td", told.number(group.jobs), el("span", f" {told.percent(group.jobs, summary.counts.failed)}", class_="dim narrow-off"),
           class_="figure", data_v=group.jobs),
        el("td", say("unknown", lang) if hours is None else told.number(hours), class_="figure",
           data_v="" if hours is None else round(hours, 3)),
        el("td", told.number(group.user_count) if group.user_count else "", class_="figure wide-only"),
        el("td", "" if group.period.last is None else told.date(group.period.last), class_="wide-only"),
        el("td", told.fits_short(group, lang), class_="figure narrow-off",
           data_v=round(fitting / group.jobs, 4) if told.estimated(group) else ""),
    )  # fmt: skip
    planned = told.steps(group, lang)
    summary_line = el("summary", planned or say("no_plan", lang), class_=None if planned else "none")
    second = el("tr", el("td", el("details", summary_line, *opened(group, summary, addresses, lang)), colspan=6))
    return el("tbody", first, second, id=f"g-{group.number}")


def opened(group: Group, summary: Summary, addresses: dict[int, str], lang: Lang) -> Iterator[Child]:
    """What opens below a group: the edit for each configuration, the figures in words, an example, what may be the same."""
    if group.plan is not None:
        yield steps(group, lang)
        yield el("div", *(variant(group, each, lang) for each in group.plan.variants[:VARIANTS]), class_="variants")
        if more := left_out(group, VARIANTS):
            yield el("p", say("more_variants", lang, jobs=told.count(more, lang)), class_="dim")
    facts = [
        (say("cost", lang), told.hours(group.cost, lang)),
        (say("when", lang), told.seen(group.period, lang)),
        (say("who", lang), told.people(group, lang)),
        (say("sure", lang), semicolon(lang).join(filter(None, (told.sure(group, lang), told.lacked(group, lang))))),
        (say("example", lang), inside(el("code", one_line(group.example.name)), colon(lang), one_line(group.example.headline.to(lang)))),
        (say("group", lang), el("code", group.key) if summary.by == "fingerprint" else ""),
    ]
    yield el("dl", *(inside(el("dt", name), el("dd", held)) for name, held in facts if held), class_="facts")
    for near in group.near:
        link = el("a", badge(near.number), href=f"#g-{near.number}")
        before, _, after = told.near(near, lang, "\0").partition("\0")
        yield el("p", before[:1].upper() + before[1:], link, after, class_="dim")
    if group.number in addresses:
        said = say("all_jobs", lang, count=told.number(group.jobs)) if group.jobs > 1 else say("the_job", lang)
        yield el("p", el("a", said, href=addresses[group.number]), class_="more")


# -- jobs


def jobs(listed: list[Listed], summary: Summary, lang: Lang) -> Html:
    """Every failed job with a link to its diagnosis; as many as the page has room for."""
    rows, room = [], ROOM
    titles = {group.number: told.title(group, summary.by, lang) for group in summary.groups}
    for each in listed:
        row = of_job(each, titles.get(each.job.number, say("others", lang)), lang)
        room -= len(row.encode())
        if room < 0:
            break
        rows.append(row)
    head = el(
        "tr",
        heading("column_job", "t", lang),
        heading("column_what" if summary.by == "fingerprint" else f"by_{summary.by}", "n", lang, "left"),
        heading("column_ended", "t", lang, "narrow-off"),
        heading("column_user", "t", lang, "wide-only"),
        heading("column_asked", "n", lang, "wide-only"),
        heading("column_lacked", "n", lang, "wide-only"),
        heading("column_hours", "n", lang),
    )
    columns = inside(el("col", class_="w1"), el("col", class_="w2"), el("col", class_="w3 narrow-off"))
    table = el("table", el("colgroup", columns), el("thead", head), el("tbody", *rows), class_="list jobs", id="list-jobs")
    failed = summary.counts.failed
    counts = {"count": told.number(failed), "shown": told.number(len(rows))}
    cut = [say("jobs_cut", lang, **counts)] if len(rows) < failed else []
    if len(listed) < failed:
        cut = [say("jobs_kept", lang, **{**counts, "shown": told.number(len(listed))})]
    folded = el("details", el("summary", el("b", say("jobs_open", lang, count=told.number(len(rows))))),
                tools("list-jobs", say("filter_jobs", lang), lang), table)  # fmt: skip
    below = el("p", say("jobs_below", lang, root=summary.root), class_="dim") if summary.root and not summary.root.startswith("<") else None
    return el(
        "section",
        el("h2", say("jobs", lang), id="jobs"),
        below,
        [el("p", each, class_="dim") for each in cut],
        folded,
        class_="all-jobs",
        aria_labelledby="jobs",
    )


def of_job(of: Listed, title: str, lang: Lang) -> Html:
    """One row of the jobs; `title` is that of its group."""
    job = of.job
    cells = [
        el("th", el("a", of.name, href=of.address) if of.address else of.name, scope="row"),
        el("td", f"{job.number or '…'} · {title}", class_="cut", data_v=job.number or ""),
        el("td", told.minute(job.moment), class_="narrow-off"),
        el("td", of.user, class_="wide-only"),
        *amounts(job, lang, "figure wide-only"),
        el("td", "" if job.gpu_seconds is None else told.number(job.gpu_seconds / 3600), class_="figure", data_v=hours(job)),
    ]
    return el("tr", *cells)


def amounts(job: Failed, lang: Lang, classes: str) -> Iterator[Html]:
    """What was asked for and what was missing; that it was free in pieces is said."""
    yield el(
        "td", "" if job.requested is None else show(job.requested), class_=classes, data_v="" if job.requested is None else job.requested
    )
    lacked = "" if job.shortage is None else show(job.shortage) if job.shortage > 0 else say("bin_none", lang)
    yield el("td", lacked, class_=classes, data_v="" if job.shortage is None else job.shortage)


def hours(job: Failed) -> str:
    """GPU-hours to sort by."""
    return "" if job.gpu_seconds is None else f"{job.gpu_seconds / 3600:.3f}"
