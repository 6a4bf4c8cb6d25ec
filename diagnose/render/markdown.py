"""The answer as one pastes it into a chat or an issue: short, a table, a diff."""

from __future__ import annotations

import re
from itertools import groupby

from diagnose.budget.ledger import Moment
from diagnose.phrases import Lang, Text
from diagnose.plan.remedy import Edit, Remedy
from diagnose.render import PLAIN, View, ledgers, words
from diagnose.render.strings import changed, harmless, one_line
from diagnose.render.words import colon, comma, word
from diagnose.report import Diagnosis

#: What Markdown, HTML or a chat would act on.
ACTIVE = re.compile(r"([\\*\[\]<>~|#]|(?<!\w)_|_(?!\w)|!(?=\[)|&(?=[\w#]+;))")
#: A mention: a blank of no width keeps it from calling anybody.
MENTION = re.compile(r"@(?=\w)")
CODE = re.compile(r"(`+)(?!`)([^`\n]+)(?<!`)\1(?!`)")

TERMS, REJECTED, QUESTIONS = 6, 5, 3


def render(diagnosis: Diagnosis, lang: Lang = "en", view: View = PLAIN) -> str:
    """The whole answer as Markdown that holds nothing a stranger's log could make act."""
    diagnosis = changed(diagnosis, harmless)
    parts = [
        f"**{words.banner(diagnosis, lang)}**{colon(lang)}{escape(diagnosis.verdict.headline.to(lang))}",
        plan(diagnosis, lang),
        memory(diagnosis, lang, view),
        causes(diagnosis, lang),
        remedies(diagnosis, lang, view),
        rejected(diagnosis, lang, view),
        questions(diagnosis, lang),
        notices(diagnosis, lang),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def escape(text: str) -> str:
    """A text that Markdown shows as it is; code spans in it stay code."""
    shown, at = "", 0
    flat = one_line(text)
    for span in CODE.finditer(flat):
        shown += _inert(flat[at : span.start()]) + span[0]
        at = span.end()
    return shown + _inert(flat[at:])


def _inert(text: str) -> str:
    return MENTION.sub("@\u200b", ACTIVE.sub(r"\\\1", text.replace("`", "'")))


def code(text: str, cell: bool = False) -> str:
    """A code span that no backtick in the text can end; in the `cell` of a table no bar either."""
    flat = one_line(text).replace("|", "\\|") if cell else one_line(text)
    ticks = "`" * (max((len(run) for run in re.findall("`+", flat)), default=0) + 1)
    return f"{ticks} {flat} {ticks}" if "`" in flat else f"{ticks}{flat}{ticks}"


def fenced(language: str, lines: list[str]) -> str:
    """A code block that no line in it can end."""
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", "\n".join(lines)) or ["``"]))
    return "\n".join([fence + language, *map(one_line, lines), fence])


def bullets(title: str, items: list[str]) -> str:
    return "\n".join([f"**{title}**", "", *(f"- {item}" for item in items)]) if items else ""


def memory(diagnosis: Diagnosis, lang: Lang, view: View) -> str:
    """The failing moment as a table, and how it compares with what was printed."""
    if words.on_host(diagnosis):
        kept = ledgers.kept_on_host(diagnosis)
        return "\n".join([*_table(word("memory_host", lang), kept, lang, TERMS)]) if kept.terms else ""
    ledger = ledgers.leading(diagnosis)
    now = (ledger.moment(ledger.failing) or ledger.peak) if ledger is not None else None
    said = ledgers.printed(diagnosis, lang, "`")
    if ledger is None or now is None or not now.terms:
        return "\n".join(map(escape, said))
    title = word("memory_at" if ledger.failing else "memory_needed", lang, moment=words.moment(now.name, lang))
    rows = _table(title, now, lang, len(now.terms) if view.verbose else TERMS)
    lines = [
        ledgers.balance(ledger, now, lang),
        ledgers.doubt(diagnosis, lang),
        *said,
        ledgers.peak(ledger, now, lang),
        ledgers.gaps(ledger, lang),
    ]
    lines += ledgers.others(diagnosis, ledger, lang)
    return "\n".join([*rows, "", *(escape(line) + "  " for line in filter(None, lines))]).rstrip()


def _table(title: str, now: Moment, lang: Lang, most: int) -> list[str]:
    """The terms of a moment, largest first."""
    rows = [f"| {escape(title)} | {word('size', lang)} | {word('share', lang)} |", "|---|---:|---:|"]
    return rows + [f"| {escape(row.name)} | {words.figure(row.size)} | {row.share:.0%} |" for row in ledgers.rows(now, lang, most)]


def causes(diagnosis: Diagnosis, lang: Lang) -> str:
    headline = diagnosis.verdict.headline.to(lang)
    lines = []
    for number, cause in enumerate(diagnosis.judgement.causes, 1):
        notes = [words.certainty(cause, lang)]
        if accounted := words.accounted(cause, lang):
            notes.append(accounted)
        if where := words.places(cause.evidence):
            notes.append(code(where))
        explanation = words.sentence(cause.explanation.to(lang), lang)
        more = "" if cause.also_true or words.told(explanation, headline) else f"{words.stop(lang)}{escape(explanation)}"
        title = cause.title.to(lang).rstrip(".。")
        lines.append(f"{number}. {escape(title)}{words.bracketed(comma(lang).join(notes), lang)}{more}")
    if not lines and diagnosis.verdict.status in ("oom", "suspected") and diagnosis.asked != "check":
        lines.append(words.no_cause(diagnosis, lang))
    return "\n".join([f"**{word('why', lang)}**", "", *lines]) if lines else ""


def plan(diagnosis: Diagnosis, lang: Lang) -> str:
    """The plan with its diff and its variables."""
    made = diagnosis.outcome.plan
    if made is None or not made.steps:
        return ""
    known = {remedy.id: remedy for remedy in diagnosis.outcome.remedies}
    lines = [f"**{escape(words.heading_of(made, diagnosis, ledgers.leading(diagnosis), lang))}**", ""]
    for number, step in enumerate(made.steps, 1):
        remedy = known.get(step)
        title = escape(remedy.title.to(lang)) if remedy else words.name_of("remedy", step, lang)
        lines.append(f"{number}. {title}" + (f"{colon(lang)}{words.price(remedy, lang)}" if remedy else ""))
        if remedy is not None and (why := words.reason(remedy, diagnosis, lang)):
            lines.append(f"   {escape(why)}")
        if remedy is not None and remedy.command is not None:
            lines.append(f"   {command(remedy.command, lang)}")
    if made.edits:
        lines += ["", fenced("diff", diff(made.edits))]
    if made.env:
        lines += ["", fenced("bash", [f"export {variable}" for variable in made.env])]
    return "\n".join(lines)


def diff(edits: tuple[Edit, ...]) -> list[str]:
    """The changes as removed and added lines, file by file."""
    lines = []
    for target, changes in groupby(edits, key=lambda change: change.target):
        lines.append(f"# {words.short(target)}")
        for change in changes:
            if change.frm is not None:
                lines.append("- " + words.setting(change.key, change.frm))
            if change.to is not None:
                lines.append("+ " + words.setting(change.renamed or change.key, change.to))
    return lines


def remedies(diagnosis: Diagnosis, lang: Lang, view: View) -> str:
    outcome = diagnosis.outcome
    planned = outcome.plan.steps if outcome.plan else ()
    others = [remedy for remedy in outcome.remedies if remedy.id not in planned]
    shown = others if view.verbose else others[: view.top]
    return bullets(word("remedies" if planned else "remedies_only", lang), [one_remedy(remedy, diagnosis, lang) for remedy in shown])


def one_remedy(remedy: Remedy, diagnosis: Diagnosis, lang: Lang) -> str:
    line = f"{escape(remedy.title.to(lang))}{colon(lang)}{words.effect(remedy, lang)}{words.semicolon(lang)}{words.price(remedy, lang)}"
    edits = [f"{escape(words.target(change, diagnosis))}{colon(lang)}{code(words.edit(change, lang))}" for change in remedy.edits]
    commands = [command(remedy.command, lang)] if remedy.command else []
    return "\n  ".join([line, *edits, *(code(f"export {variable}") for variable in remedy.env), *commands])


def command(text: Text, lang: Lang) -> str:
    """What to run as code; a sentence about what to do as a sentence. A command needs no translation."""
    return code(text.en) if text.en == text.zh else escape(text.to(lang))


def rejected(diagnosis: Diagnosis, lang: Lang, view: View) -> str:
    advice = diagnosis.outcome.rejected if view.verbose else diagnosis.outcome.rejected[:REJECTED]
    reasons = [(words.name_of("remedy", each.id, lang), escape(words.sentence(each.reason.to(lang), lang))) for each in advice]
    return bullets(word("not_here", lang), [f"{name}{colon(lang)}{reason}" for name, reason in reasons])


def questions(diagnosis: Diagnosis, lang: Lang) -> str:
    asked = diagnosis.outcome.questions[:QUESTIONS]
    lines = [f"{escape(words.question(each.why.to(lang), each.how.to(lang), lang))} {code(each.set)}" for each in asked]
    return bullets(word("questions", lang), lines)


def notices(diagnosis: Diagnosis, lang: Lang) -> str:
    said = [(words.level(notice, lang), escape(words.notice(notice, lang))) for notice in diagnosis.notices if notice.level != "info"]
    return bullets(word("notices", lang), [f"{level}{colon(lang)}{text}" for level, text in said])
