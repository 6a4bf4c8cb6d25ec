"""The full answer for a terminal (--verbose), part by part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from diagnose.decide.verdict import Verdict as Ruling
from diagnose.diagnosis import Diagnosis
from diagnose.facts import Notice
from diagnose.phrases import Lang
from diagnose.plan.remedies.remedy import Edit, Remedy
from diagnose.render.parts import advice_text, card_bar, cited_lines, failure_text, memory_rows, outlook_view, words
from diagnose.render.parts.words import colon, comma, word
from diagnose.render.parts.wrapping import Page, cells, pad
from diagnose.render.text import character_bar, details


def append(page: Page, diagnosis: Diagnosis, lang: Lang) -> None:
    """Append all parts, most wanted first."""
    plan_steps(page, diagnosis, lang)
    character_bar.append(page, diagnosis, lang)
    memory(page, diagnosis, lang)
    snapshot(page, diagnosis, lang, brief=False)
    outlook_view.append(page, diagnosis, lang, edits=True)
    causes(page, diagnosis, lang)
    other_remedies(page, diagnosis, lang)
    for line in advice_text.little_gains(diagnosis, lang):
        page.say(line, "  ", "    ", style="note")
    rejected(page, advice_text.rejection_lines(diagnosis.outcome.rejected, lang), lang)
    questions(page, diagnosis, lang)
    unsettled(page, diagnosis, lang)
    notices(page, diagnosis, lang, verbose=True)
    if told := advice_text.note_command(diagnosis, lang):
        page.heading(told)


def plan_steps(page: Page, diagnosis: Diagnosis, lang: Lang) -> None:
    """The plan: steps, edits, and what may be raised afterwards."""
    plan = diagnosis.outcome.plan
    if plan is None or not plan.steps:
        return
    page.heading(advice_text.plan_heading(plan, diagnosis, memory_rows.main_ledger(diagnosis), lang))
    by_id = {remedy.id: remedy for remedy in diagnosis.outcome.remedies}
    for number, step in enumerate(plan.steps, 1):
        remedy = by_id.get(step)
        title = remedy.title.to(lang) if remedy else words.name_of("remedy", step, lang)
        cost = f"{colon(lang)}{advice_text.price(remedy, lang)}" if remedy else ""
        page.say(f"{number}. {title}{cost}", "  ", "     ")
        if remedy is not None:
            page.say(advice_text.reason(remedy, diagnosis, lang), "     ")
            edits(page, diagnosis, remedy.edits, remedy.env, lang, "     ")
        if remedy is not None and remedy.command is not None:
            page.say(remedy.command.to(lang), "     ")
    changes, env = advice_text.changes_without_step(plan, by_id)
    edits(page, diagnosis, changes, env, lang, "     ")
    page.say(advice_text.plan_note(plan, lang), "  ", style="note")
    page.say(advice_text.ladder_line(plan, diagnosis, lang), "  ", "    ")
    if advice_text.is_patchable(diagnosis):
        page.say(word("patch_hint", lang), "  ", style="dim")


def edits(page: Page, diagnosis: Diagnosis, changes: Iterable[Edit], env: Iterable[str], lang: Lang, indent: str) -> None:
    """The edits in the keys of the user's files."""
    for change in changes:
        page.say(advice_text.placed_edit(change, diagnosis, lang), indent, indent + "  ", "edit")
    for line in advice_text.shell_lines([*env], diagnosis):
        page.say(line, indent, indent + "  ", "edit")


def memory(page: Page, diagnosis: Diagnosis, lang: Lang) -> None:
    """The failing moment (else the peak) as a table with bars, and its comparison with the printed figures."""
    if failure_text.on_host(diagnosis):
        host = memory_rows.host_moment(diagnosis)
        if host.terms:
            page.heading(word("memory_host", lang))
            table(page, memory_rows.rows(host, lang, len(host.terms)))
            page.say(word("memory_host_sum", lang, size=words.amount(host.total, lang)), "  ", style="bold")
    ledger, printed = memory_rows.main_ledger(diagnosis), memory_rows.printed_lines(diagnosis, lang)
    moment = memory_rows.main_moment(ledger)
    if ledger is None or moment is None or not moment.terms:
        if printed or diagnosis.verdict.status == "oom":
            page.heading(word("memory", lang))
            for line in printed or [word("no_ledger", lang)]:
                page.say(line, "  ")
        return
    role = word("memory_role", lang, role=words.name_of("role", ledger.role, lang)) if len(diagnosis.ledgers) > 1 else ""
    title = "memory_at" if ledger.failing else "memory_needed"
    page.heading(word(title, lang, moment=words.moment(moment.name, lang)) + role)
    table(page, memory_rows.rows(moment, lang, len(moment.terms)))
    page.say(memory_rows.balance(ledger, moment, lang), "  ", style="bold")
    page.say(memory_rows.deviation_text(diagnosis, lang), "  ", style="note")
    for line in printed:
        page.say(line, "  ")
    if ledger.failing:  # before a run the headline says it
        page.say(memory_rows.peak_text(ledger, moment, lang), "  ", style="note" if memory_rows.overflows(ledger) else "")
    page.say(memory_rows.missing_facts(ledger, lang), "  ", style="note")
    for line in memory_rows.other_roles(diagnosis, ledger, lang):
        page.say(line, "  ", "    ")


def snapshot(page: Page, diagnosis: Diagnosis, lang: Lang, *, brief: bool, short: bool = False) -> None:
    """The content of a memory snapshot, if there is one."""
    if diagnosis.snapshot is not None:
        from diagnose.render.parts import snapshot_view  # few diagnoses have a snapshot

        snapshot_view.append(page, diagnosis, lang, brief=brief, short=short)


def table(page: Page, rows: list[memory_rows.Row]) -> None:
    """Rows of name, size, share of the sum and bar."""
    if not rows:
        return
    widest = min(max(cells(row.name) for row in rows), max(page.width - 31, 14))
    longest = min(page.width - widest - 23, 30)
    for row in rows:
        bar = ("░" if row.folded else "█") * max(round(row.bar * longest), 1)
        page.row(f"  {pad(row.name, widest)}  {words.figure(row.size):>10}  {row.share:>4.0%}  {page.paint('block', bar)}")


def causes(page: Page, diagnosis: Diagnosis, lang: Lang) -> None:
    verdicts = diagnosis.judgement.causes
    if not verdicts and (diagnosis.verdict.status not in ("oom", "suspected") or diagnosis.asked == "check"):
        return
    page.heading(word("why", lang))
    if not verdicts:
        page.say(failure_text.no_cause(diagnosis, lang, card_bar.largest_part(diagnosis, lang)), "  ")
    figures = card_bar.figures_of_causes(diagnosis, lang)
    for number, cause in enumerate(verdicts, 1):
        cause_entry(page, number, cause, figures, lang)


def cause_entry(page: Page, number: int, cause: Ruling, figures: Mapping[str, failure_text.Figure], lang: Lang) -> None:
    """A cause: title, certainty, size and places; then explanation and cited lines."""
    notes = [failure_text.certainty(cause, lang)]
    if accounted := failure_text.accounted_size(cause, figures, lang):
        notes.append(accounted)
    if where := words.places(cause.evidence):
        notes.append(where)
    title = cause.title.to(lang).rstrip(".。")
    page.say(f"{number}. {title}{words.bracketed(comma(lang).join(notes), lang)}", "  ", "     ", "bold" if number == 1 else "")
    page.say(words.sentence(cause.explanation.to(lang), lang), "     ")
    if cause.assumes is not None:
        page.say(failure_text.assumption_line(cause.assumes, lang), "     ")
    details.evidence(page, cause)


def other_remedies(page: Page, diagnosis: Diagnosis, lang: Lang) -> None:
    outcome = diagnosis.outcome
    planned = outcome.plan.steps if outcome.plan else ()
    others = [remedy for remedy in outcome.remedies if remedy.id not in planned]
    if not others:
        return
    page.heading(word("remedies" if planned else "remedies_only", lang))
    if not planned and diagnosis.ledgers:
        page.say(word("no_plan", lang), "  ")
    for remedy in others:
        remedy_entry(page, diagnosis, remedy, lang)


def remedy_entry(page: Page, diagnosis: Diagnosis, remedy: Remedy, lang: Lang) -> None:
    worth = f"{advice_text.effect(remedy, lang)}{words.semicolon(lang)}{advice_text.price(remedy, lang)}"
    page.say(f"- {remedy.title.to(lang)}{colon(lang)}{worth}", "  ", "    ")
    edits(page, diagnosis, remedy.edits, remedy.env, lang, "    ")
    if remedy.command is not None:
        page.say(remedy.command.to(lang), "    ")
    if not advice_text.is_unproven(remedy, diagnosis):  # the line above has said all there is
        page.say(advice_text.reason(remedy, diagnosis, lang), "    ")
    for reference in dict.fromkeys((*remedy.references, words.where_to_read(remedy.url, remedy.rule))):
        page.say(reference, "    ", style="name")


def rejected(page: Page, rejections: Sequence[str], lang: Lang) -> None:
    """Common advice that would not help here, with the reasons."""
    if rejections:
        page.heading(word("not_here", lang))
    for rejection in rejections:
        page.say(f"- {rejection}", "  ", "    ")


def questions(page: Page, diagnosis: Diagnosis, lang: Lang) -> None:
    if not diagnosis.outcome.questions:
        return
    page.heading(word("questions", lang))
    for question in diagnosis.outcome.questions:
        page.say(f"- {words.question(question.why.to(lang), question.how.to(lang), lang)}", "  ", "    ")
        page.say(question.set, "    ", style="edit")


def unsettled(page: Page, diagnosis: Diagnosis, lang: Lang) -> None:
    """Undecided causes grouped by the fact that they lack, with the way to learn it."""
    undecided = diagnosis.outcome.unsettled
    if undecided:
        page.heading(word("could_not_tell", lang))
    for fact in dict.fromkeys(rule.fact for rule in undecided):
        lacking = [rule for rule in undecided if rule.fact == fact]
        page.say(f"- {words.undecided_causes(lacking, lang)}", "  ", "    ")
        page.say(lacking[0].how.to(lang), "    ", style="edit")


def notices(page: Page, diagnosis: Diagnosis, lang: Lang, *, verbose: bool, with_leading: bool = False) -> None:
    """Remarks beside the answer; with `verbose` of level info too; `with_leading` also those that a headline carries."""
    leading = failure_text.leading_notices(diagnosis)
    rest = (note for note in diagnosis.notices if note not in leading) if verbose else failure_text.important_notices(diagnosis)
    visible = [*leading, *rest] if with_leading else [*rest]
    if not visible:
        return
    page.heading(word("notices", lang))
    for note in visible:
        notice(page, note, diagnosis, lang)


def notice(page: Page, note: Notice, diagnosis: Diagnosis, lang: Lang, indent: str = "  ", excerpt: bool = True) -> None:
    """A notice with the line that it refers to."""
    style = {"error": "error", "warning": "note"}.get(note.level, "")
    page.say(words.notice_with_level(note, lang), f"{indent}- " if indent else "", f"{indent}  ", style)
    for line in cited_lines.caret_lines(note, diagnosis, page.width - len(indent)) if excerpt else ():
        page.row(indent + line)
