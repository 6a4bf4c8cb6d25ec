"""Optional parts of the text answer: evidence, all failures, full ledgers, all rules."""

from __future__ import annotations

from diagnose.budget.model.ledger import Ledger, Moment, Term
from diagnose.decide.verdict import Verdict as Ruling
from diagnose.diagnosis import Diagnosis
from diagnose.phrases import Lang
from diagnose.render.parts import failure_text, memory_rows, words
from diagnose.render.parts.strings import one_line
from diagnose.render.parts.view import View
from diagnose.render.parts.words import colon, comma, word
from diagnose.render.parts.wrapping import Page


def append(page: Page, diagnosis: Diagnosis, lang: Lang, view: View) -> None:
    """Append the parts that the view asks for."""
    if view.verbose and diagnosis.events:
        page.heading(word("events", lang))
        failures(page, diagnosis, lang)
    if view.budget and diagnosis.ledgers:
        page.heading(word("budget", lang))
        ledgers_in_full(page, diagnosis, lang)
    if view.rules:
        page.heading(word("rules", lang))
        all_rules(page, diagnosis, lang)


def evidence(page: Page, cause: Ruling) -> None:
    """The lines that a cause cites, and where to read more about it."""
    for witness in cause.evidence:
        if place := words.place(witness):
            page.say(f"{place}  {one_line(witness.text or witness.key)[:200]}", "     ", "       ", "dim")
    page.say(words.where_to_read(cause.url, cause.rule), "     ", style="name")


def failures(page: Page, diagnosis: Diagnosis, lang: Lang) -> None:
    """All failures of the log, with what each is a consequence of."""
    for number in range(len(diagnosis.events)):
        page.say(f"{number + 1}. {failure_text.failure_line(diagnosis, number, lang)}", "  ", "     ")


def ledgers_in_full(page: Page, diagnosis: Diagnosis, lang: Lang) -> None:
    """Every term of every moment of every role, with its formula in symbols and numbers."""
    for ledger in diagnosis.ledgers:
        room = word("of_usable", lang, usable=words.amount(ledger.usable, lang)) if ledger.usable else ""
        page.say(memory_rows.role_title(ledger, lang) + room, "  ", style="bold")
        if ledger.beside:
            others = Moment("beside", ledger.beside)
            terms(page, f"{word('beside', lang)}{colon(lang)}{words.amount(others.total, lang)}", others, lang)
        for moment in ledger.moments:
            marks = [word("moment_failing", lang)] if moment.name == ledger.failing else []
            marks += [word("moment_peak", lang)] if moment is ledger.peak else []
            note = words.bracketed(comma(lang).join(marks), lang) if marks else ""
            terms(page, f"{words.moment(moment.name, lang)}{colon(lang)}{words.amount(moment.total, lang)}{note}", moment, lang)
        for title, host in host_moments(ledger, lang):
            terms(page, f"{title}{colon(lang)}{words.amount(host.total, lang)}", host, lang)


def host_moments(ledger: Ledger, lang: Lang) -> list[tuple[str, Moment]]:
    """Host memory: what stays allocated, and the moments that need more."""
    title = word("host_memory", lang)
    stays = [(title, Moment("host", ledger.host.terms))] if ledger.host.terms else []
    return stays + [(f"{title}{comma(lang)}{words.moment(moment.name, lang)}", moment) for moment in ledger.host.moments]


def terms(page: Page, title: str, moment: Moment, lang: Lang) -> None:
    page.say(title, "  ", "    ", "bold")
    for term in moment.terms:
        page.say(term.name.to(lang) + words.width(term.size, lang), f"    {words.figure(term.size):>10}  ", " " * 16)
        page.say(formula(term), " " * 16, " " * 18, "dim")


def formula(term: Term) -> str:
    """A term's formula in symbols and numbers, and its source."""
    equal = f"{term.symbols} = {term.numbers}" if term.numbers else term.symbols
    return f"{equal}  [{term.source}]" if term.source else equal


def all_rules(page: Page, diagnosis: Diagnosis, lang: Lang) -> None:
    """Every rule with the condition that decided it."""
    for ruling in diagnosis.judgement.all:
        missing = words.bracketed(word("rule_needs", lang, fact=ruling.missing), lang) if ruling.missing else ""
        style = "bold" if ruling.outcome in ("fires", "likely") else ""
        page.say(f"{ruling.rule}{colon(lang)}{word(f'rule_{ruling.outcome}', lang)}{missing}", "  ", "    ", style)
        page.say(one_line(ruling.deciding), "      ", style="dim")
    for rule in diagnosis.judgement.faults:
        page.say(f"{rule.to(lang)}{colon(lang)}{word('rule_crashed', lang)}", "  ", "    ", "note")
