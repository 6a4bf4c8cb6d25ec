"""The answer as Markdown for a chat or an issue: short, with a table and a diff."""

from __future__ import annotations

import re
from itertools import groupby

from diagnose.budget.model.ledger import Moment
from diagnose.diagnosis import Diagnosis
from diagnose.phrases import Lang, Text
from diagnose.plan.remedies.remedy import Edit, Remedy
from diagnose.render.parts import advice_text, card_bar, failure_text, memory_rows, outlook_view, words
from diagnose.render.parts.strings import harmless, one_line
from diagnose.render.parts.view import PLAIN, View
from diagnose.render.parts.words import colon, comma, word
from diagnose.render.text import character_bar, details

#: What Markdown, HTML or a chat would act on.
ACTIVE = re.compile(r"([\\*\[\]<>~|#]|(?<!\w)_|_(?!\w)|!(?=\[)|&(?=[\w#]+;))")
#: A mention: a blank of no width keeps it from calling anybody.
MENTION = re.compile(r"@(?=\w)")
CODE = re.compile(r"(`+)(?!`)([^`\n]+)(?<!`)\1(?!`)")

TERMS, REJECTED, QUESTIONS = 6, 8, 3
#: What a comment on GitHub holds, in characters; how wide the bar is.
COMMENT_LIMIT, BAR_WIDTH = 65_536, 76


def render(diagnosis: Diagnosis, lang: Lang = "en", view: View = PLAIN) -> str:
    """The answer as Markdown: advice visible, reasons folded. No text of the input can link, mention or format."""
    diagnosis = advice_text.to_show(diagnosis)
    failed = words.bracketed(code(where), lang) if (where := failure_text.failure_place(diagnosis)) else ""
    parts = [
        f"**{failure_text.banner(diagnosis, lang)}**{failed}{colon(lang)}{escape(diagnosis.verdict.headline.to(lang))}",
        escape(failure_text.why_line(diagnosis, card_bar.figures_of_causes(diagnosis, lang), lang)),
        escape(failure_text.assumption(diagnosis, lang)),
        escape(memory_rows.later_failure(diagnosis, lang)),
        "  \n".join(map(escape, outlook_view.room_lines(diagnosis, lang))),
        "  \n".join(escape(words.notice_with_level(notice, lang)) for notice in failure_text.leading_notices(diagnosis)),
        _card(diagnosis, lang),
        plan(diagnosis, lang),
        frontier(diagnosis, lang),
        "" if diagnosis.outcome.plan else remedies(diagnosis, lang, view),
        notices(diagnosis, lang),
    ]
    folds = [
        folded(word("why", lang), causes(diagnosis, lang)),
        folded(word("memory_host" if failure_text.on_host(diagnosis) else "memory", lang), memory(diagnosis, lang, view)),
        folded(word("budget", lang), ledgers_in_full(diagnosis, lang) if view.budget else ""),
        snapshot(diagnosis, lang),
        folded(word("remedies", lang), remedies(diagnosis, lang, view) if diagnosis.outcome.plan else ""),
        folded(word("not_here", lang), rejected(diagnosis, lang, view)),
        folded(word("questions", lang), questions(diagnosis, lang)),
    ]
    return fit_comment("\n\n".join(filter(None, parts)), list(filter(None, folds)))


def fit_comment(text: str, folds: list[str]) -> str:
    """The visible part and as many folded parts as fit into a comment."""
    while folds and len(text) + sum(map(len, folds)) + 2 * len(folds) > COMMENT_LIMIT:
        folds.pop()
    whole = "\n\n".join([text, *folds])
    return (whole if len(whole) <= COMMENT_LIMIT else whole[: COMMENT_LIMIT - 2] + "…") + "\n"


def folded(title: str, text: str) -> str:
    """A collapsible part; GitHub and GitLab need a blank line between the tag and Markdown."""
    return f"<details><summary>{escape(title)}</summary>\n\n{text}\n\n</details>" if text else ""


def _card(diagnosis: Diagnosis, lang: Lang) -> str:
    """The bar of the card as a code block."""
    memory = card_bar.build_card(diagnosis, lang)
    if memory is None:
        return ""
    lines = [memory.title, character_bar.line(memory, BAR_WIDTH), *character_bar.legend(memory, BAR_WIDTH, lang)]
    return fenced("text", lines)


def escape(text: str) -> str:
    """Escape a text for Markdown, except for its code spans."""
    escaped, at = "", 0
    flat = one_line(text)
    for span in CODE.finditer(flat):
        escaped += _inert(flat[at : span.start()]) + span[0]
        at = span.end()
    return escaped + _inert(flat[at:])


def _inert(text: str) -> str:
    return MENTION.sub("@\u200b", ACTIVE.sub(r"\\\1", text.replace("`", "'")))


def code(text: str, cell: bool = False) -> str:
    """A code span that backticks in the text cannot terminate; in a table `cell`, bars are escaped too."""
    flat = one_line(text).replace("|", "\\|") if cell else one_line(text)
    ticks = "`" * (max((len(run) for run in re.findall("`+", flat)), default=0) + 1)
    return f"{ticks} {flat} {ticks}" if "`" in flat else f"{ticks}{flat}{ticks}"


def fenced(language: str, lines: list[str]) -> str:
    """A code block that no line of its content can terminate."""
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", "\n".join(lines)) or ["``"]))
    return "\n".join([fence + language, *(harmless(line).replace("\n", " ").rstrip() for line in lines), fence])


def bullets(title: str, items: list[str]) -> str:
    head = [f"**{title}**", ""] if title else []
    return "\n".join([*head, *(f"- {item}" for item in items)]) if items else ""


def memory(diagnosis: Diagnosis, lang: Lang, view: View) -> str:
    """The failing moment as a table, and its comparison with the printed figures."""
    if failure_text.on_host(diagnosis):
        host = memory_rows.host_moment(diagnosis)
        return "\n".join([*_table(word("memory_host", lang), host, lang, TERMS)]) if host.terms else ""
    ledger = memory_rows.main_ledger(diagnosis)
    moment = memory_rows.main_moment(ledger)
    printed = memory_rows.printed_lines(diagnosis, lang, "`")
    if ledger is None or moment is None or not moment.terms:
        return "\n".join(map(escape, printed))
    title = word("memory_at" if ledger.failing else "memory_needed", lang, moment=words.moment(moment.name, lang))
    rows = _table(title, moment, lang, len(moment.terms) if view.verbose else TERMS)
    lines = [
        words.sentence(memory_rows.balance(ledger, moment, lang), lang),
        memory_rows.deviation_text(diagnosis, lang),
        *printed,
        memory_rows.peak_text(ledger, moment, lang),
        memory_rows.missing_facts(ledger, lang),
    ]
    lines += memory_rows.other_roles(diagnosis, ledger, lang)
    return "\n".join([*rows, "", *(escape(line) + "  " for line in filter(None, lines))]).rstrip()


def snapshot(diagnosis: Diagnosis, lang: Lang) -> str:
    """The content of a memory snapshot, folded."""
    if diagnosis.snapshot is None:
        return ""
    from diagnose.render.parts.snapshot_view import titled_lists  # few diagnoses have a snapshot

    (title, lines), *others = titled_lists(diagnosis, lang)
    lists = ["\n".join(f"- {escape(line)}" for line in lines)]
    lists += [bullets(name, [escape(line) for line in items]) for name, items in others]
    return folded(title, "\n\n".join(lists))


def _table(title: str, moment: Moment, lang: Lang, limit: int) -> list[str]:
    """The terms of a moment, largest first."""
    rows = [f"| {escape(title)} | {word('size', lang)} | {word('share', lang)} |", "|---|---:|---:|"]
    return rows + [f"| {escape(row.name)} | {words.figure(row.size)} | {row.share:.0%} |" for row in memory_rows.rows(moment, lang, limit)]


def ledgers_in_full(diagnosis: Diagnosis, lang: Lang) -> str:
    """Every term of every moment of every role, with its formula in symbols and numbers."""
    parts: list[str] = []
    for ledger in diagnosis.ledgers:
        parts.append(f"**{escape(memory_rows.role_title(ledger, lang))}**")
        named = [(words.moment(moment.name, lang), moment) for moment in ledger.moments]
        for title, moment in named + details.host_moments(ledger, lang):
            peak = words.bracketed(word("moment_peak", lang), lang) if moment is ledger.peak else ""
            head = escape(f"{title}{colon(lang)}{words.amount(moment.total, lang)}{peak}")
            rows = [f"| {head} | {word('size', lang)} | {word('formula', lang)} |", "|---|---:|---|"]
            for term in moment.terms:
                size = words.figure(term.size) + words.width(term.size, lang)
                rows.append(f"| {escape(term.name.to(lang))} | {escape(size)} | {code(details.formula(term), cell=True)} |")
            parts.append("\n".join(rows))
    return "\n\n".join(parts)


def frontier(diagnosis: Diagnosis, lang: Lang) -> str:
    """How far each way of running the job reaches."""
    head, *lines = outlook_view.table_cells(diagnosis, lang) or [[]]
    if not lines:
        return ""
    rows = [f"| {' | '.join(map(escape, line))} |" for line in (head, *lines)]
    rows.insert(1, "|---|" + "---:|" * (len(head) - 2) + "---|")
    notes = [escape(note) + "  " for note in outlook_view.notes(diagnosis, lang)]
    return "\n".join([f"**{escape(outlook_view.title(diagnosis, lang))}**", "", *rows, *(["", *notes] if notes else [])]).rstrip()


def causes(diagnosis: Diagnosis, lang: Lang) -> str:
    headline, figures = diagnosis.verdict.headline.to(lang), card_bar.figures_of_causes(diagnosis, lang)
    lines = []
    for number, cause in enumerate(diagnosis.judgement.causes, 1):
        notes = [failure_text.certainty(cause, lang)]
        if accounted := failure_text.accounted_size(cause, figures, lang):
            notes.append(accounted)
        if where := words.places(cause.evidence):
            notes.append(code(where))
        explanation = words.sentence(cause.explanation.to(lang), lang)
        detail = (
            ""
            if cause.also_true or failure_text.repeats_headline(explanation, headline)
            else f"{words.sentence_break(lang)}{escape(explanation)}"
        )
        title = cause.title.to(lang).rstrip(".。")
        lines.append(f"{number}. {escape(title)}{words.bracketed(comma(lang).join(notes), lang)}{detail}")
    if not lines and diagnosis.verdict.status in ("oom", "suspected") and diagnosis.asked != "check":
        lines.append(failure_text.no_cause(diagnosis, lang, card_bar.largest_part(diagnosis, lang)))
    return "\n".join(lines)


def plan(diagnosis: Diagnosis, lang: Lang) -> str:
    """The plan with its diff and environment variables."""
    chosen = diagnosis.outcome.plan
    if chosen is None or not chosen.steps:
        return ""
    by_id = {remedy.id: remedy for remedy in diagnosis.outcome.remedies}
    lines = [f"**{escape(advice_text.plan_heading(chosen, diagnosis, memory_rows.main_ledger(diagnosis), lang))}**", ""]
    for number, step in enumerate(chosen.steps, 1):
        remedy = by_id.get(step)
        title = escape(remedy.title.to(lang)) if remedy else words.name_of("remedy", step, lang)
        paragraphs = [f"{number}. {title}" + (f"{colon(lang)}{advice_text.price(remedy, lang)}" if remedy else "")]
        if remedy is not None and (why := advice_text.reason(remedy, diagnosis, lang)):
            paragraphs.append(escape(why))
        if remedy is not None and remedy.command is not None:
            paragraphs.append(command(remedy.command, lang))
        lines.append("  \n   ".join(paragraphs))
    if chosen.edits:
        lines += ["", fenced("diff", diff(chosen.edits))]
    if chosen.env:
        lines += ["", fenced(advice_text.BLOCKS[advice_text.shell(diagnosis)], advice_text.shell_lines(chosen.env, diagnosis))]
    dated = advice_text.release_notes(chosen.edits, lang)
    for remark in (*dated, advice_text.plan_note(chosen, lang), advice_text.ladder_line(chosen, diagnosis, lang)):
        lines += ["", escape(remark)] if remark else []
    return "\n".join(lines)


def diff(edits: tuple[Edit, ...]) -> list[str]:
    """The edits as removed and added lines, by file."""
    lines = []
    for target, changes in groupby(edits, key=lambda change: change.target):
        lines.append(f"# {words.short_name(target)}")
        for change in changes:
            if change.frm is not None:
                lines.append("- " + words.setting(change.key, change.frm, target))
            if change.to is not None:
                lines.append("+ " + words.setting(change.renamed or change.key, change.to, target))
    return lines


def remedies(diagnosis: Diagnosis, lang: Lang, view: View) -> str:
    outcome = diagnosis.outcome
    planned = outcome.plan.steps if outcome.plan else ()
    others = [remedy for remedy in outcome.remedies if remedy.id not in planned]
    visible = others if view.verbose else others[: view.top]
    items = [remedy_item(remedy, diagnosis, lang) for remedy in visible] + [*map(escape, advice_text.little_gains(diagnosis, lang))]
    return bullets("" if outcome.plan else word("remedies_only", lang), items)


def remedy_item(remedy: Remedy, diagnosis: Diagnosis, lang: Lang) -> str:
    gain, price = advice_text.effect(remedy, lang), advice_text.price(remedy, lang)
    line = f"{escape(remedy.title.to(lang))}{colon(lang)}{gain}{words.semicolon(lang)}{price}"
    edits = [
        f"{escape(advice_text.target(change, diagnosis))}{colon(lang)}{code(advice_text.edit(change, lang))}"
        f"{escape(advice_text.release(change, lang))}"
        for change in remedy.edits
    ]
    commands = [command(remedy.command, lang)] if remedy.command else []
    instruction = filter(None, [escape(advice_text.instruction(remedy, diagnosis, lang))])
    return "  \n  ".join([line, *edits, *map(code, advice_text.shell_lines(remedy.env, diagnosis)), *commands, *instruction])


def command(text: Text, lang: Lang) -> str:
    """A command as code; an instruction as a sentence."""
    return code(text.en) if text.en == text.zh else escape(text.to(lang))


def rejected(diagnosis: Diagnosis, lang: Lang, view: View) -> str:
    entries = diagnosis.outcome.rejected
    lines = advice_text.rejection_lines(entries if view.verbose else advice_text.without_idle(entries), lang)
    return bullets("", [escape(line) for line in (lines if view.verbose else lines[:REJECTED])])


def questions(diagnosis: Diagnosis, lang: Lang) -> str:
    first = diagnosis.outcome.questions[:QUESTIONS]
    lines = [f"{escape(words.question(question.why.to(lang), question.how.to(lang), lang))} {code(question.set)}" for question in first]
    return bullets("", lines)


def notices(diagnosis: Diagnosis, lang: Lang) -> str:
    leading = failure_text.leading_notices(diagnosis)
    visible = (notice for notice in diagnosis.notices if notice.level != "info" and notice not in leading)
    texts = [(words.level(notice, lang), escape(words.notice(notice, lang))) for notice in visible]
    return bullets(word("notices", lang), [f"{level}{colon(lang)}{text}" for level, text in texts])
