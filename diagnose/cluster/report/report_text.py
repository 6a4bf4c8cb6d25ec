"""The report as text at the width of a terminal, and as Markdown for a chat or an issue."""

from __future__ import annotations

from diagnose.cluster.report import report_words as told
from diagnose.cluster.report.failure_groups import Group, Summary
from diagnose.cluster.report.report_words import say
from diagnose.phrases import Lang
from diagnose.render.markup.markdown import COMMENT, code, diff, escape, fenced
from diagnose.render.parts.layout import Page
from diagnose.render.parts.strings import changed, harmless, one_line
from diagnose.render.parts.view import PLAIN, View
from diagnose.render.parts.words import bracketed, colon, comma, semicolon, sentence

#: Variants of a plan, and jobs that could not be read, in a text; groups in a table of Markdown.
VARIANTS, UNREAD, ROWS = 3, 20, 20


def text(summary: Summary, lang: Lang = "en", view: View = PLAIN) -> str:
    """The answer, the groups with their plans, what could not be read."""
    summary = changed(summary, harmless)
    page = Page(view.width, view.colour)
    page.say(told.counted(summary, lang), style="dim")
    page.say(told.lead(summary, lang), style="bold")
    if summary.groups and summary.counts.failed:
        page.say(told.costs(summary, lang))
    for group in summary.groups[: view.top]:
        _group(page, group, summary, lang)
    if len(summary.groups) > view.top:
        page.gap()
        page.say(say("more_groups", lang, count=told.number(summary.total - view.top), total=summary.total), style="dim")
    elif summary.total > len(summary.groups):
        page.gap()
        left = {"count": told.number(summary.left), "groups": told.number(summary.total - len(summary.groups))}
        page.say(say("left_groups", lang, **left), style="dim")
    if summary.unread:
        page.heading(sentence(say("unread", lang), lang).rstrip(".。"))
    for unread in summary.unread[:UNREAD]:
        page.say(f"- {told.lost(unread, lang)}", "  ", "    ", "note")
    if (hidden := max(summary.counts.unread, len(summary.unread)) - UNREAD) > 0:
        page.say(say("more_unread", lang, count=told.number(hidden)), "  ")
    return page.text()


def _group(page: Page, group: Group, summary: Summary, lang: Lang) -> None:
    """One group: what it is, what it cost, what to change, an example."""
    share = say("share", lang, share=told.percent(group.jobs, summary.counts.failed))
    note = comma(lang).join(filter(None, (share, say("new", lang) if group.new else "")))
    page.heading(say("item", lang, count=told.number(group.jobs), title=told.title(group, summary.by, lang)) + bracketed(note, lang))
    page.say(told.where(group, lang), "  ", "    ")
    when = semicolon(lang).join(filter(None, (told.hours(group.cost, lang), told.seen(group.period, lang))))
    page.say(f"{say('cost', lang)}{colon(lang)}{when}", "  ", "    ")
    if who := told.people(group, lang):
        page.say(f"{say('who', lang)}{colon(lang)}{who}", "  ", "    ")
    if group.plan is not None:
        page.say(f"{say('plan', lang)}{colon(lang)}{told.steps(group, lang)}", "  ", "    ", "good")
        for variant in group.plan.variants[:VARIANTS]:
            lines = told.edits(variant, lang)
            note = told.beside(group, variant, lang)
            if lines or note:
                page.say(told.of_variant(variant, lang) + (bracketed(note, lang) if note else "") + colon(lang).rstrip(), "    ", "      ")
            for line in lines:
                page.say(line, "      ", "        ")
        hidden = group.plan.more + sum(variant.jobs for variant in group.plan.variants[VARIANTS:])
        page.say(say("more_variants", lang, jobs=told.count(hidden, lang)) if hidden else "", "    ", "      ", "dim")
    page.say(f"{say('sure', lang)}{colon(lang)}{told.sure(group, lang)}", "  ", "    ")
    example = f"{one_line(group.example.name)}{colon(lang)}{one_line(group.example.headline.to(lang))}"
    page.say(f"{say('example', lang)}{colon(lang)}{example}", "  ", "    ", "dim")
    if summary.by == "fingerprint":
        page.say(f"{say('group', lang)} {group.key}", "  ", "    ", "dim")
    for near in group.near[:1]:
        page.say(told.near(near, lang, near.key), "  ", "    ", "dim")


# -- Markdown


def markdown(summary: Summary, lang: Lang = "en", view: View = PLAIN) -> str:
    """What one pastes into a chat or an issue: the answer with its edits, a table of groups, what could not be read."""
    summary = changed(summary, harmless)
    lines = [
        f"**{escape(told.lead(summary, lang))}** {escape(told.costs(summary, lang))}".rstrip(),
        "",
        escape(told.counted(summary, lang)),
    ]
    if summary.groups:
        lines += ["", *_answer(summary.groups[0], summary, lang), "", *_table(summary, lang, max(view.top, ROWS) if view.verbose else ROWS)]
    if summary.unread:
        unread = [f"- {escape(told.lost(job, lang))}" for job in summary.unread[:UNREAD]]
        hidden = max(summary.counts.unread, len(summary.unread)) - len(unread)
        lines += ["", f"**{escape(sentence(say('unread', lang), lang).rstrip('.。'))}**", "", *unread]
        lines += [f"- {escape(say('more_unread', lang, count=told.number(hidden)))}"] if hidden > 0 else []
    return _within(lines)


def _within(lines: list[str]) -> str:
    """As many lines as a comment holds."""
    fitting, budget = [], COMMENT - 2
    for line in lines:
        budget -= len(line) + 1
        if budget < 0:
            fitting.append("…")
            break
        fitting.append(line)
    return "\n".join(fitting) + "\n"


def _answer(group: Group, summary: Summary, lang: Lang) -> list[str]:
    """The first group with the diff for each variant of its configs."""
    where = told.where(group, lang)
    lines = [f"**{escape(told.title(group, summary.by, lang))}**" + (bracketed(escape(where), lang) if where else "")]
    if group.plan is None:
        return [*lines, "", escape(say("no_plan", lang))]
    lines += [
        "",
        f"{escape(say('change_this', lang))}{colon(lang)}{escape(semicolon(lang).join((told.steps(group, lang), told.sure(group, lang))))}",
    ]
    for variant in group.plan.variants[:VARIANTS]:
        changes = [*diff(variant.edits), *(f"+ {line}" for line in variant.env)]
        note = told.beside(group, variant, lang)
        if changes:
            head = escape(told.of_variant(variant, lang)) + (bracketed(escape(note), lang) if note else "") + colon(lang).rstrip()
            lines += ["", head, "", fenced("diff", changes)]
    return lines


def _table(summary: Summary, lang: Lang, limit: int) -> list[str]:
    head = ["column_jobs", "column_hours", "column_users", "column_last"]
    names = [say(key, lang) for key in head] + [
        say("column_what" if summary.by == "fingerprint" else f"by_{summary.by}", lang),
        say("change_this", lang),
    ]
    lines = [f"| {' | '.join(map(escape, names))} |", "|---:|---:|---:|---|---|---|"]
    for group in summary.groups[:limit]:
        cells = [
            told.number(group.jobs),
            "" if group.cost.hours is None else told.number(group.cost.hours),
            told.number(group.user_count) if group.user_count else "",
            "" if group.period.last is None else told.date(group.period.last),
            escape(told.title(group, summary.by, lang)) + (f" {code(group.key, cell=True)}" if summary.by == "fingerprint" else ""),
            escape(told.steps(group, lang)),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    hidden = summary.total - min(limit, len(summary.groups))
    if hidden > 0:
        jobs = summary.counts.failed - sum(group.jobs for group in summary.groups[:limit])
        lines += ["", escape(say("left_groups", lang, count=told.number(jobs), groups=told.number(hidden)))]
    return lines
