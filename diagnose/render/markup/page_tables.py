"""The tables of a page: a diff, the frontier, the ledger in full with its formulas, failures and settings."""

from __future__ import annotations

from diagnose.budget.model.ledger import Ledger, Moment
from diagnose.diagnosis import Diagnosis
from diagnose.facts import Fact
from diagnose.phrases import Lang
from diagnose.render.markup import facts_view
from diagnose.render.markup.elements import Child, Html, el, inside
from diagnose.render.parts import failure_text, memory_rows, words
from diagnose.render.parts.strings import one_line, visible
from diagnose.render.parts.view import View
from diagnose.render.parts.words import colon, word
from diagnose.render.text import details


def diff(text: str, label: str) -> Html:
    """A unified diff that is copied whole by one click; added and removed lines are told by sign and colour."""
    shown: list[Child] = []
    for line in visible(text).rstrip("\n").split("\n"):
        kind = "at" if line.startswith(("---", "+++", "@@")) else {"+": "add", "-": "del"}.get(line[:1])
        shown += [el("span", line, class_=kind) if kind else line, "\n"]
    return el("pre", el("code", *shown[:-1], class_="copy"), tabindex=0, aria_label=label)


def plain(head: list[str], lines: list[list[str]]) -> Html:
    """Cells under headings; every column but the first and the last is figures."""
    last = len(head) - 1
    kinds = ["figure" if 0 < at < last else None for at in range(len(head))]
    top = el("tr", *(el("th", cell, scope="col", class_=kind) for cell, kind in zip(head, kinds, strict=True)))
    rows = [el("tr", *(el("td", cell, class_=kind) for cell, kind in zip(line, kinds, strict=True))) for line in lines]
    return el("div", el("table", el("thead", top), el("tbody", *rows)), class_="wide")


def full(diagnosis: Diagnosis, lang: Lang) -> Html:
    """What one opens to check: ledger, failures, settings, rules."""
    held = dict(facts_view.sections(diagnosis, View()))
    parts = [
        folded(word("budget", lang), [of_ledger(ledger, lang) for ledger in diagnosis.ledgers]),
        folded(word("events", lang), failures(diagnosis, lang)),
        *(folded(word(title, lang), known(held[title], lang)) for title in ("knobs", "facts")),
    ]
    return el("section", el("h2", word("details", lang), id="details"), *parts, aria_labelledby="details") if any(parts) else Html("")


def folded(title: str, children: Child) -> Html:
    held = inside(children)
    return el("details", el("summary", el("b", title)), held) if held else Html("")


def of_ledger(ledger: Ledger, lang: Lang) -> Html:
    """Every term of every moment, with its formula in symbols and in numbers."""
    tables = [of_moment(moment, words.moment(moment.name, lang), lang) for moment in ledger.moments if moment.terms]
    tables += [of_moment(moment, title, lang) for title, moment in details.on_host(ledger, lang)]
    return inside(el("h3", memory_rows.on_gpus(ledger, lang)), *tables) if tables else Html("")


def of_moment(moment: Moment, name: str, lang: Lang) -> Html:
    whole = max(moment.total.bytes, 1)
    rows = [
        el("tr", el("td", term.name.to(lang)), el("td", words.figure(term.size) + words.width(term.size, lang), class_="figure"),
           el("td", f"{term.size.bytes / whole:.0%}", class_="figure"), el("td", el("code", details.formula(term)), class_="formula"))
        for term in moment.terms
    ]  # fmt: skip
    head = el("tr", el("th", word("term", lang), scope="col"), el("th", word("size", lang), scope="col", class_="figure"),
              el("th", word("share", lang), scope="col", class_="figure"), el("th", word("formula", lang), scope="col"))  # fmt: skip
    caption = el("caption", f"{name}{colon(lang)}{words.amount(moment.total, lang)}")
    return el("div", el("table", caption, el("thead", head), el("tbody", *rows)), class_="wide")


def failures(diagnosis: Diagnosis, lang: Lang) -> Html:
    """Every failure of the log with its innermost frames."""
    items = []
    for number, event in enumerate(diagnosis.events):
        frames = [f"{frame.file}:{frame.line} {frame.function}" for frame in event.frames[-8:]]
        trace = el("pre", el("code", "\n".join(map(one_line, frames)))) if frames else None
        items.append(el("li", failure_text.failure(diagnosis, number, lang), trace))
    return el("ol", *items) if items else Html("")


def known(held: list[Fact], lang: Lang) -> Html:
    """Facts or settings: each with its value, and where it is from."""
    rows = [
        el("tr", el("td", el("code", fact.name)), el("td", words.value_text(fact.value, lang)), el("td", facts_view.origin(fact, lang)))
        for fact in held
    ]
    return el("div", el("table", el("tbody", *rows)), class_="wide") if rows else Html("")
