"""The report as text at the width of a terminal, and as Markdown for a chat or an issue."""

from __future__ import annotations

from diagnose.cluster.report import report_words
from diagnose.cluster.report.report_words import say
from diagnose.cluster.report.summary_types import Group, Summary
from diagnose.phrases import Lang
from diagnose.render.markup.markdown import COMMENT_LIMIT, code, diff, escape, fenced
from diagnose.render.parts.strings import harmless, map_texts, one_line
from diagnose.render.parts.view import PLAIN, View
from diagnose.render.parts.words import bracketed, colon, comma, semicolon, sentence
from diagnose.render.parts.wrapping import Page

#: Variants of a plan, and jobs that could not be read, in a text; groups in a table of Markdown.
VARIANTS, UNREAD, ROWS = 3, 20, 20


def text(summary: Summary, lang: Lang = "en", view: View = PLAIN) -> str:
    """The lead, the groups with their plans, unreadable jobs."""
    summary = map_texts(summary, harmless)
    page = Page(view.width, view.colour)
    page.say(report_words.jobs_read(summary, lang), style="dim")
    page.say(report_words.lead(summary, lang), style="bold")
    if summary.groups and summary.counts.failed:
        page.say(report_words.costs(summary, lang))
    for group in summary.groups[: view.top]:
        _group(page, group, summary, lang)
    if len(summary.groups) > view.top:
        page.gap()
        page.say(say("more_groups", lang, count=report_words.number(summary.total - view.top), total=summary.total), style="dim")
    elif summary.total > len(summary.groups):
        page.gap()
        left = {"count": report_words.number(summary.left), "groups": report_words.number(summary.total - len(summary.groups))}
        page.say(say("left_groups", lang, **left), style="dim")
    if summary.unread:
        page.heading(sentence(say("unread", lang), lang).rstrip(".。"))
    for unread in summary.unread[:UNREAD]:
        page.say(f"- {report_words.unread_job(unread, lang)}", "  ", "    ", "note")
    if (hidden := max(summary.counts.unread, len(summary.unread)) - UNREAD) > 0:
        page.say(say("more_unread", lang, count=report_words.number(hidden)), "  ")
    return page.text()


def _group(page: Page, group: Group, summary: Summary, lang: Lang) -> None:
    """One group: title, cost, plan, example."""
    share = say("share", lang, share=report_words.percent(group.jobs, summary.counts.failed))
    note = comma(lang).join(filter(None, (share, say(f"change_{group.change}", lang) if group.change else "")))
    page.heading(
        say("item", lang, count=report_words.number(group.jobs), title=report_words.title(group, summary.by, lang)) + bracketed(note, lang)
    )
    page.say(report_words.where(group, lang), "  ", "    ")
    when = semicolon(lang).join(filter(None, (report_words.hours(group.cost, lang), report_words.period_text(group.period, lang))))
    page.say(f"{say('cost', lang)}{colon(lang)}{when}", "  ", "    ")
    if who := report_words.people(group, lang):
        page.say(f"{say('who', lang)}{colon(lang)}{who}", "  ", "    ")
    if group.plan is not None:
        page.say(f"{say('plan', lang)}{colon(lang)}{report_words.steps(group, lang)}", "  ", "    ", "good")
        for variant in group.plan.variants[:VARIANTS]:
            lines = report_words.edits(variant, lang)
            note = report_words.variant_note(group, variant, lang)
            if lines or note:
                page.say(
                    report_words.variant_title(variant, lang) + (bracketed(note, lang) if note else "") + colon(lang).rstrip(),
                    "    ",
                    "      ",
                )
            for line in lines:
                page.say(line, "      ", "        ")
        hidden = group.plan.more + sum(variant.jobs for variant in group.plan.variants[VARIANTS:])
        page.say(say("more_variants", lang, jobs=report_words.count(hidden, lang)) if hidden else "", "    ", "      ", "dim")
    page.say(f"{say('sure', lang)}{colon(lang)}{report_words.certainty_text(group, lang)}", "  ", "    ")
    if told := report_words.tried_text(group, lang):
        page.say(f"{say('tried', lang)}{colon(lang)}{told}", "  ", "    ")
    example = f"{one_line(group.example.name)}{colon(lang)}{one_line(group.example.headline.to(lang))}"
    page.say(f"{say('example', lang)}{colon(lang)}{example}", "  ", "    ", "dim")
    if summary.by == "fingerprint":
        page.say(f"{say('group', lang)} {group.key}", "  ", "    ", "dim")
    for near in group.near[:1]:
        page.say(report_words.near_text(near, lang, near.key), "  ", "    ", "dim")


# -- Markdown


def markdown(summary: Summary, lang: Lang = "en", view: View = PLAIN) -> str:
    """Markdown for a chat or an issue: the lead with its edits, a table of groups, unreadable jobs."""
    summary = map_texts(summary, harmless)
    lines = [
        f"**{escape(report_words.lead(summary, lang))}** {escape(report_words.costs(summary, lang))}".rstrip(),
        "",
        escape(report_words.jobs_read(summary, lang)),
    ]
    if summary.groups:
        lines += ["", *_answer(summary.groups[0], summary, lang), "", *_table(summary, lang, max(view.top, ROWS) if view.verbose else ROWS)]
    if summary.unread:
        unread = [f"- {escape(report_words.unread_job(job, lang))}" for job in summary.unread[:UNREAD]]
        hidden = max(summary.counts.unread, len(summary.unread)) - len(unread)
        lines += ["", f"**{escape(sentence(say('unread', lang), lang).rstrip('.。'))}**", "", *unread]
        lines += [f"- {escape(say('more_unread', lang, count=report_words.number(hidden)))}"] if hidden > 0 else []
    return _fit_comment(lines)


def _fit_comment(lines: list[str]) -> str:
    """As many lines as fit into a comment."""
    fitting, budget = [], COMMENT_LIMIT - 2
    for line in lines:
        budget -= len(line) + 1
        if budget < 0:
            fitting.append("…")
            break
        fitting.append(line)
    return "\n".join(fitting) + "\n"


def _answer(group: Group, summary: Summary, lang: Lang) -> list[str]:
    """The first group, with the diff of each config variant."""
    where = report_words.where(group, lang)
    lines = [f"**{escape(report_words.title(group, summary.by, lang))}**" + (bracketed(escape(where), lang) if where else "")]
    if group.plan is None:
        return [*lines, "", escape(say("no_plan", lang))]
    plan = semicolon(lang).join((report_words.steps(group, lang), report_words.certainty_text(group, lang)))
    lines += ["", f"{escape(say('change_this', lang))}{colon(lang)}{escape(plan)}"]
    for variant in group.plan.variants[:VARIANTS]:
        changes, variables = [*diff(variant.edits)], report_words.variables(variant.env)
        note = report_words.variant_note(group, variant, lang)
        dated = report_words.releases(variant, lang)
        if changes or variables:
            head = (
                escape(report_words.variant_title(variant, lang)) + (bracketed(escape(note), lang) if note else "") + colon(lang).rstrip()
            )
            lines += ["", head]
        lines += ["", fenced("diff", changes)] if changes else []
        lines += ["", escape(dated)] if dated else []
        lines += ["", fenced("bash", variables)] if variables else []
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
            report_words.number(group.jobs),
            "" if group.cost.hours is None else report_words.number(group.cost.hours),
            report_words.number(group.user_count) if group.user_count else "",
            "" if group.period.last is None else report_words.date(group.period.last),
            escape(report_words.title(group, summary.by, lang)) + (f" {code(group.key, cell=True)}" if summary.by == "fingerprint" else ""),
            escape(report_words.steps(group, lang)),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    hidden = summary.total - min(limit, len(summary.groups))
    if hidden > 0:
        jobs = summary.counts.failed - sum(group.jobs for group in summary.groups[:limit])
        lines += ["", escape(say("left_groups", lang, count=report_words.number(jobs), groups=report_words.number(hidden)))]
    return lines
