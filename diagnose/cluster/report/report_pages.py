"""The pages beside the report: the jobs of a group with the diagnosis of each, some to a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from diagnose.cluster.report import report_words as told
from diagnose.cluster.report.report_charts import badge
from diagnose.cluster.report.report_html import document
from diagnose.cluster.report.report_tables import Listed, Shown, amounts, heading, hours, tools
from diagnose.cluster.report.report_words import say
from diagnose.cluster.store import digests
from diagnose.phrases import Lang, Text
from diagnose.plan.rules.remedy import Edit
from diagnose.record import record
from diagnose.render.markup import bar_charts
from diagnose.render.markup.elements import Child, Html, el, inside, prose
from diagnose.render.markup.markdown import diff
from diagnose.render.parts import advice_text, card, words
from diagnose.render.parts.words import colon, comma, semicolon, sentence, word
from diagnose.units import show


@record
class Leaf:
    """One page of a group: which of how many, its jobs, and the addresses of its neighbours (empty: there is none)."""

    title: str
    number: int  # of the group; 0: of groups that the report does not list
    at: int
    of: int
    jobs: tuple[Listed, ...]
    report: str
    before: str = ""
    after: str = ""


def leaf(page: Leaf, held: dict[str, str], order: Sequence[str], lang: Lang, shown: Shown) -> str:
    """A page; `held` the digests of its diagnoses, `order` their keys as they are numbered on it."""
    nav = el(
        "nav",
        el("a", say("back", lang), href=page.report),
        el("a", say("previous_page", lang), href=page.before) if page.before else None,
        el("span", say("page_of", lang, number=page.at, pages=page.of), class_="dim") if page.of > 1 else None,
        el("a", say("next_page", lang), href=page.after) if page.after else None,
        class_="jump",
        aria_label=say("page_title", lang),
    )
    counts: dict[str, int] = {}
    for each in page.jobs:
        counts[each.job.diagnosis] = counts.get(each.job.diagnosis, 0) + 1
    articles = [article(held.get(key, ""), number, counts.get(key, 0), lang, shown) for number, key in enumerate(order, 1)]
    body: list[Child] = [
        bar_charts.patterns(),
        el("header", nav, el("h1", badge(page.number), " ", page.title)),
        el(
            "main",
            el("section", el("h2", told.count(len(page.jobs), lang), id="jobs"), tools("list-jobs", say("filter_jobs", lang), lang),
               table(page, lang), aria_labelledby="jobs"),
            el("section", el("h2", say("diagnoses", lang), id="diagnoses"), *articles, aria_labelledby="diagnoses"),
            nav if page.of > 1 else None,
        ),
    ]  # fmt: skip
    return document(f"{page.title} · oomdoctor", lang, body)


def table(page: Leaf, lang: Lang) -> Html:
    """The jobs of the page, each with a link to its diagnosis."""
    head = el(
        "tr",
        heading("column_job", "t", lang),
        heading("column_ended", "t", lang, "narrow-off"),
        heading("column_user", "t", lang, "wide-only"),
        heading("column_asked", "n", lang),
        heading("column_lacked", "n", lang, "narrow-off"),
        heading("column_hours", "n", lang, "narrow-off"),
    )
    rows = []
    for of in page.jobs:
        cells = [
            el("th", el("a", of.name, href=f"#{of.address.rpartition('#')[2]}"), scope="row"),
            el("td", told.minute(of.job.moment), class_="narrow-off"),
            el("td", of.user, class_="wide-only"),
            *amounts(of.job, lang, "figure"),
            el(
                "td",
                "" if of.job.gpu_seconds is None else told.number(of.job.gpu_seconds / 3600),
                class_="figure narrow-off",
                data_v=hours(of.job),
            ),
        ]
        rows.append(el("tr", *cells))
    return el("div", el("table", el("thead", head), el("tbody", *rows), class_="list", id="list-jobs"), class_="wide")


# -- a diagnosis


def article(text: str, number: int, jobs: int, lang: Lang, shown: Shown) -> Html:
    """One diagnosis, as far as a digest keeps it."""
    anchor = f"d{number}"
    if not text:
        return el("article", el("h3", say("no_diagnosis", lang)), id=anchor)
    of = digests.read(text)
    return el("article", *_Diagnosis(of, lang, shown).parts(jobs), id=anchor)


class _Diagnosis:
    """The parts of one digest in one language."""

    def __init__(self, of: dict[str, Any], lang: Lang, shown: Shown) -> None:
        self.of, self.lang, self.shown = of, lang, shown

    def said(self, text: dict[str, str] | None) -> str:
        """A sentence in the language of the page."""
        return "" if text is None else self.shown(Text(text["en"], text["zh"]).to(self.lang))

    def parts(self, jobs: int) -> Iterator[Child]:
        yield el("h3", prose(self.said(self.of["headline"])))
        if jobs > 1:
            yield el("p", say("answers", self.lang, count=told.number(jobs)), class_="dim")
        yield self.card()
        yield self.facts()
        if self.of["plan"]:
            yield el("h4", self.heading())
            yield from self.plan()
        if self.of["causes"]:
            yield el("h4", say("why", self.lang))
            yield el("ol", *map(self.cause, self.of["causes"]))
        others = [each for each in self.of["remedies"] if not each["planned"]]
        if others:
            yield el("details", el("summary", say("else", self.lang)), el("ul", *map(self.remedy, others)))
        if asked := self.of["question"]:
            text = words.question(self.said(asked["why"]), self.said(asked["how"]), self.lang)
            yield el("p", say("ask", self.lang), colon(self.lang), prose(text), " ", el("code", self.shown(asked["set"])), class_="dim")
        for notice in self.of["notices"]:
            yield el("p", prose(self.said(notice["message"])), class_="note error" if notice["level"] == "error" else "note")

    def card(self) -> Html | None:
        """The card as a bar."""
        held = self.of["card"]
        if not held:
            return None
        parts = tuple(card.Part(kind, count, estimated) for kind, count, estimated in held["parts"])
        return bar_charts.of_card(card.Card(self.said(held["title"]), parts, held["edge"]), self.lang)

    def facts(self) -> Html | None:
        """The line that proves it, the place in the code, what the request was."""
        event = self.of["event"]
        if event is None:
            return None
        rows: list[tuple[str, Child]] = []
        if event["line"] is not None:
            rows.append(
                (say("failed_line", self.lang), inside(self.place(event["line"]), " ", el("code", self.shown(event["line"]["text"]))))
            )
        if event["frame"]:
            rows.append((say("in_code", self.lang), el("code", self.shown(event["frame"]))))
        if asked := self.of["request"]:
            key = "request_named" if asked["named"] else "request_maybe"
            rows.append((say("request", self.lang), say(key, self.lang, tensor=self.said(asked["tensor"]), numbers=asked["numbers"])))
        return el("dl", *(inside(el("dt", name), el("dd", held)) for name, held in rows), class_="facts") if rows else None

    def place(self, line: dict[str, Any]) -> str:
        return self.shown(f"{line['source']}:{line['line']}" if line["line"] else f"{line['source']}: {line['key']}")

    def heading(self) -> str:
        """What to do, and whether it fits."""
        plan = self.of["plan"]
        told_of = [word(f"plan_{plan['fits']}", self.lang)]
        if plan["peak"] and plan["fits"] in advice_text.FITTING:
            told_of.insert(0, word("peak_after", self.lang, size=show(plan["peak"])))
        return say("do", self.lang) + words.bracketed(comma(self.lang).join(told_of), self.lang)

    def plan(self) -> Iterator[Child]:
        plan = self.of["plan"]
        known = {each["remedy"]: each for each in self.of["remedies"]}
        items = [
            el("li", el("b", self.said(known[step]["title"])), colon(self.lang), self.price(known[step]))
            if step in known
            else el("li", words.name_of("remedy", step, self.lang))
            for step in plan["steps"]
        ]
        yield el("ol", *items, class_="steps")
        lines = [*diff(self.edits(plan["edits"])), *(f"+ {each}" for each in plan["env"])]
        if lines:
            yield el("pre", el("code", *self.coloured(lines)), tabindex=0)
        if plan["note"]:
            yield el("p", sentence(self.said(plan["note"]), self.lang))

    def coloured(self, lines: list[str]) -> list[Child]:
        shown: list[Child] = []
        for line in lines:
            shown += [el("span", line[:2] + self.shown(line[2:]), class_={"+": "add", "-": "del"}.get(line[:1], "at")), "\n"]
        return shown[:-1]

    def edits(self, edits: list[dict[str, Any]]) -> tuple[Edit, ...]:
        return tuple(Edit(each["target"], each["key"], each["from"], each["to"], each["renamed"]) for each in edits)

    def price(self, remedy: dict[str, Any]) -> str:
        """What it saves and costs."""
        price = remedy["price"]
        parts = (
            [word("saves", self.lang, size=show(remedy["saves"]))]
            if remedy["saves"] and remedy["saves"] > 0 and remedy["fits"] != "unknown"
            else []
        )
        parts.append(word(f"results_{price['results']}", self.lang))
        parts += [word(f"speed_{price['speed']}", self.lang)] if price["speed"] != "same" else []
        return semicolon(self.lang).join(parts)

    def cause(self, cause: dict[str, Any]) -> Html:
        """Title, how sure and how much; the explanation, and where it is seen."""
        sure = ("also_true" if cause["certainty"] == "certain" else "also_likely") if cause["also_true"] else cause["certainty"]
        chips = [word(sure, self.lang)]
        if cause["accounts_for"] is not None:
            much = show(cause["accounts_for"])
            share = cause["share"]
            chips.append(word("accounts_for", self.lang, size=much) if share is None else
                         word("accounts_for_share", self.lang, size=much, share=f"{share:.0%}"))  # fmt: skip
        seen = ", ".join(dict.fromkeys(self.place(each) for each in cause["places"]))
        text = sentence(self.said(cause["said"]), self.lang)
        return el(
            "li",
            el("b", self.said(cause["title"]).rstrip(".。")),
            *(inside(" ", el("span", chip, class_="chip")) for chip in chips),
            el("p", prose(text), inside(" ", el("code", seen)) if seen else None) if text or seen else None,
        )

    def remedy(self, remedy: dict[str, Any]) -> Html:
        """Another remedy: whether it fits, what it costs, its edits."""
        edits = [
            f"{self.shown(each.target)}{colon(self.lang)}{self.shown(advice_text.edit(each, self.lang))}"
            for each in self.edits(remedy["edits"])
        ]
        lines = [*edits, *map(self.shown, remedy["env"])]
        command = remedy["command"]
        if command is not None and command["en"] == command["zh"]:
            lines.append(self.said(command))
        return el(
            "li",
            el("b", self.said(remedy["title"])),
            " ",
            el("span", word(f"fits_{remedy['fits']}", self.lang), class_="chip good" if remedy["fits"] in advice_text.FITTING else "chip"),
            el("p", self.price(remedy)),
            el("p", prose(self.said(command))) if command is not None and command["en"] != command["zh"] else None,
            el("pre", el("code", "\n".join(lines)), tabindex=0) if lines else None,
        )
