"""The answer for a terminal: on one screen what someone wants to read at two in the morning; the rest with --verbose."""

from __future__ import annotations

from diagnose.facts import Notice
from diagnose.phrases import Lang
from diagnose.plan.remedy import Remedy
from diagnose.render import PLAIN, View, advice, bar, details, full, happened, ledgers, outlook, words
from diagnose.render.layout import Page
from diagnose.render.strings import changed, harmless
from diagnose.render.words import colon, word
from diagnose.report import Diagnosis

#: How many edits, causes and notes the screen has room for; from this line on it has none for the edits of alternatives.
EDITS, CAUSES, NOTES, FULL = 2, 2, 2, 22


def render(diagnosis: Diagnosis, lang: Lang = "en", view: View = PLAIN) -> str:
    """The answer as text of at most `view.width` columns."""
    diagnosis = changed(diagnosis, harmless)
    page = Page(view.width, view.colour)
    headline(page, diagnosis, lang)
    if view.verbose:
        full.append(page, diagnosis, lang, view)
    else:
        screen(page, diagnosis, lang, view)
    details.append(page, diagnosis, lang, view)
    if not view.verbose and (diagnosis.judgement.causes or diagnosis.ledgers or diagnosis.root is not None):
        page.gap()
        patch = diagnosis.outcome.plan is not None and diagnosis.outcome.plan.edits and diagnosis.documents
        page.say(word("more_detail_patch" if patch else "more_detail", lang), style="dim")
    return page.text()


def headline(page: Page, diagnosis: Diagnosis, lang: Lang) -> None:
    good = diagnosis.exit_status == 0 if diagnosis.asked == "check" else diagnosis.verdict.status in ("none", "lookalike")
    page.say(happened.banner(diagnosis, lang), style="good" if good else "bad")
    page.say(diagnosis.verdict.headline.to(lang), style="bold")
    for number, line in enumerate(outlook.room(diagnosis, lang)):
        page.say(line, "  " if number and len(diagnosis.ledgers) > 1 else "")


# -- the screen


def screen(page: Page, diagnosis: Diagnosis, lang: Lang, view: View) -> None:
    """Why, the card, what to do, what else to know: each as short as it can be said."""
    why(page, diagnosis, lang)
    bar.append(page, diagnosis, lang)
    caveats(page, diagnosis, lang)
    full.snapshot(page, diagnosis, lang, brief=True)
    outlook.append(page, diagnosis, lang, edits=False)
    remedies(page, diagnosis, lang, view)
    asked(page, diagnosis, lang)
    noted(page, diagnosis, lang)


def why(page: Page, diagnosis: Diagnosis, lang: Lang) -> None:
    """The causes that the headline tells of, each by its name: how sure, how much, where it is seen."""
    leading = [cause for cause in diagnosis.judgement.causes if not cause.also_true][:CAUSES]
    said = words.semicolon(lang).join(happened.in_short(cause, lang) for cause in leading)
    if said:
        page.say(f"{word('why', lang)}{colon(lang)}{words.sentence(said, lang)}")
    elif diagnosis.verdict.status in ("oom", "suspected") and diagnosis.asked != "check":
        page.say(happened.no_cause(diagnosis, lang))


def caveats(page: Page, diagnosis: Diagnosis, lang: Lang) -> None:
    """What the bar does not show: a higher peak elsewhere, an estimate that the log contradicts or that lacks something."""
    ledger = ledgers.leading(diagnosis)
    now = (ledger.moment(ledger.failing) or ledger.peak) if ledger is not None else None
    if ledger is None or now is None or happened.on_host(diagnosis):
        return
    doubt = ledgers.doubt(diagnosis, lang)
    page.say(doubt, "  ", style="note")
    if ledger.failing and ledgers.comes_later(ledger, now) and (ledgers.overflows(ledger) or not doubt):
        page.say(ledgers.peak(ledger, now, lang), "  ", style="note")
    page.say(ledgers.gaps(ledger, lang) if now.terms else "", "  ", style="note")


def remedies(page: Page, diagnosis: Diagnosis, lang: Lang, view: View) -> None:
    """The plan's steps with their edits; then others, until so many are shown as were asked for."""
    outcome, plan = diagnosis.outcome, diagnosis.outcome.plan
    known = {remedy.id: remedy for remedy in outcome.remedies}
    steps = plan.steps if plan is not None else ()
    others = [remedy for remedy in outcome.remedies if remedy.id not in steps][: max(view.top - len(steps), 0)]
    if plan is not None and steps:
        page.heading(advice.heading_of(plan, diagnosis, ledgers.leading(diagnosis), lang))
    elif others:
        page.heading(word("remedies_only", lang))
    for number, step in enumerate(steps, 1):
        remedy = known.get(step)
        if remedy is None:
            page.say(f"{number}. {words.name_of('remedy', step, lang)}", "  ", "     ")
            continue
        page.say(f"{number}. {remedy.title.to(lang)}{colon(lang)}{advice.worth(remedy, lang, alone=False)}", "  ", "     ")
        changes(page, diagnosis, remedy, lang)
    if plan is not None:
        done = [edit for step in steps if step in known for edit in known[step].edits]
        full.edits(page, diagnosis, [edit for edit in plan.edits if edit not in done], (), lang, "     ")
        page.say(advice.remark(plan, lang), "  ", style="note")
        page.say(advice.climb(plan, diagnosis, lang) if steps else "", "  ", "    ")
    for number, remedy in enumerate(others):
        lead = word("instead", lang) if steps else f"{number + 1}. "
        page.say(f"{remedy.title.to(lang)}{colon(lang)}{advice.worth(remedy, lang)}", f"  {lead}", "     ")
        if view.top > PLAIN.top or len(page.lines) < FULL:
            changes(page, diagnosis, remedy, lang)


def changes(page: Page, diagnosis: Diagnosis, remedy: Remedy, lang: Lang, indent: str = "     ") -> None:
    """The first edits of a remedy, or its command; what is to be done where there is neither and no figure to say."""
    full.edits(page, diagnosis, remedy.edits[:EDITS], remedy.env, lang, indent)
    if len(remedy.edits) > EDITS:
        page.say(word("more_edits", lang, count=len(remedy.edits) - EDITS), indent, style="dim")
    if remedy.command is not None:
        page.say(remedy.command.to(lang), indent)
    elif not remedy.edits and not remedy.env and remedy.saves is None:
        page.say(remedy.why.to(lang), indent)


def asked(page: Page, diagnosis: Diagnosis, lang: Lang) -> None:
    """The most useful question, unless the plan surely works."""
    questions, plan = diagnosis.outcome.questions, diagnosis.outcome.plan
    if not questions or (plan is not None and plan.fits in advice.FITTING) or (diagnosis.asked == "check" and diagnosis.exit_status == 0):
        return
    page.gap()
    first = questions[0]
    page.say(f"{word('question', lang)}{colon(lang)}{words.question(first.why.to(lang), first.how.to(lang), lang)}", "", "  ")
    page.say(first.set, "  ", "    ", style="good")


def noted(page: Page, diagnosis: Diagnosis, lang: Lang) -> None:
    """What went wrong with the inputs, and which of several runs this is."""
    plan = diagnosis.outcome.plan
    corrected = {(edit.target, edit.key) for edit in plan.edits if edit.renamed or edit.to is None} if plan is not None else set()
    said = [notice for notice in diagnosis.notices if notice.level != "info" or notice.code in full.WHICH]
    said = [notice for notice in said if notice.level == "error" or not about(notice, corrected)]
    said.sort(key=lambda notice: notice.level != "error")
    if not said:
        return
    page.gap()
    for notice in said[:NOTES]:
        full.notice(page, notice, diagnosis, lang, "")
    if len(said) > NOTES:
        page.say(word("more_notices", lang, count=len(said) - NOTES), style="dim")


def about(notice: Notice, keys: set[tuple[str, str]]) -> bool:
    """Whether a notice is about one of these keys of a file: where the plan corrects it, the plan has said so."""
    return notice.witness is not None and (notice.witness.source, notice.witness.key) in keys
