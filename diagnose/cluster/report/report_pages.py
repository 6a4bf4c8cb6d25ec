"""Values for the pages beside the report: the jobs of a group, each with its diagnosis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from diagnose.cluster.report import report_queries, report_words
from diagnose.cluster.report.report_html import Listed, TextFilter, document
from diagnose.cluster.report.report_words import say
from diagnose.cluster.report.summary_types import Store, build_or_report
from diagnose.cluster.store import digests
from diagnose.phrases import Lang, Text
from diagnose.plan.remedies.remedy import Edit
from diagnose.render.markup import bar_charts, page_templates
from diagnose.render.markup.markdown import diff
from diagnose.render.parts import advice_text, card_bar, words
from diagnose.render.parts.words import colon, comma, semicolon, sentence, word
from diagnose.units import show


@dataclass(slots=True)
class JobsPage:
    """One page of a group: its number, number of pages, jobs, and addresses of its neighbours (empty: none)."""

    title: str
    number: int  # of the group; 0: of groups that the report does not list
    at: int
    of: int
    jobs: tuple[Listed, ...]
    report: str
    before: str = ""
    after: str = ""


def render_page(page: JobsPage, store: Store, order: Sequence[str], lang: Lang, clean: TextFilter) -> Iterator[str]:
    """Render a page; `order`: the keys of its diagnoses in page order."""
    stored = report_queries.digests(store, order)
    jobs_by_key: dict[str, list[Listed]] = {}
    for listed in page.jobs:
        jobs_by_key.setdefault(listed.job.diagnosis, []).append(listed)

    def article(key: str) -> _Diagnosis | None:
        build = partial(_read_diagnosis, stored[key], lang, clean)
        return build_or_report(store, jobs_by_key[key][0].job.job, build) if stored.get(key) else None

    articles = [(article(key), len(jobs_by_key[key])) for key in order]
    return document("report_jobs", f"{page.title} · oomdoctor", lang, jobs_page=page, articles=articles)


def _read_diagnosis(digest: str, lang: Lang, clean: TextFilter) -> _Diagnosis:
    """The diagnosis with all its parts built, so that a digest they cannot be built of is noticed before the page is begun."""
    diagnosis = _Diagnosis(digests.read(digest), lang, clean)
    for name, member in vars(_Diagnosis).items():
        if isinstance(member, cached_property):
            getattr(diagnosis, name)
    return diagnosis


class _Diagnosis:
    """A stored digest in one language."""

    def __init__(self, digest: dict[str, Any], lang: Lang, clean: TextFilter) -> None:
        self.digest, self.lang, self.clean = digest, lang, clean
        self.headline = self.text(digest["headline"])

    def text(self, pair: dict[str, str] | None) -> str:
        """A sentence in the page's language."""
        return "" if pair is None else self.clean(Text(pair["en"], pair["zh"]).to(self.lang))

    @cached_property
    def card(self) -> bar_charts.Bar | None:
        """The bar of the card."""
        stored = self.digest["card"]
        if not stored:
            return None
        parts = tuple(card_bar.Part(kind, count, estimated) for kind, count, estimated in stored["parts"])
        return bar_charts.card_chart(card_bar.Card(self.text(stored["title"]), parts, stored["edge"]), self.lang)

    @cached_property
    def facts(self) -> list[tuple[str, str, str]]:
        """Evidence line, place in the code and request, each as name, text and code."""
        event, rows = self.digest["event"], []
        if event is None:
            return []
        if event["line"] is not None:
            rows.append((say("failed_line", self.lang), self.place(event["line"]), self.clean(event["line"]["text"])))
        if event["frame"]:
            rows.append((say("in_code", self.lang), "", self.clean(event["frame"])))
        if request := self.digest["request"]:
            key = "request_named" if request["named"] else "request_maybe"
            text = say(key, self.lang, tensor=self.text(request["tensor"]), numbers=request["numbers"])
            rows.append((say("request", self.lang), text, ""))
        return rows

    def place(self, line: dict[str, object]) -> str:
        return self.clean(f"{line['source']}:{line['line']}" if line["line"] else f"{line['source']}: {line['key']}")

    @cached_property
    def plan(self) -> dict[str, object] | None:
        """The plan and whether it fits; steps with prices, edits, a note."""
        plan = self.digest["plan"]
        if not plan:
            return None
        peak = [word("peak_after", self.lang, size=show(plan["peak"]))] if plan["peak"] and plan["fits"] in advice_text.FITTING else []
        by_id = {remedy["remedy"]: remedy for remedy in self.digest["remedies"]}
        edits = self.edits(plan["edits"])
        return {
            "heading": say("do", self.lang)
            + words.bracketed(comma(self.lang).join([*peak, word(f"plan_{plan['fits']}", self.lang)]), self.lang),
            "steps": [
                (self.text(by_id[step]["title"]), self.price(by_id[step]))
                if step in by_id
                else (words.name_of("remedy", step, self.lang), "")
                for step in plan["steps"]
            ],
            "diff": page_templates.diff(line[:2] + self.clean(line[2:]) for line in diff(edits)),
            "variables": [("", self.clean(line)) for line in report_words.variables(plan["env"])],
            "notes": [
                *map(self.clean, advice_text.release_notes(edits, self.lang)),
                *([sentence(self.text(plan["note"]), self.lang)] if plan["note"] else []),
            ],
        }

    def edits(self, edits: list[dict[str, Any]]) -> tuple[Edit, ...]:
        return tuple(map(digests.edit_of, edits))

    def price(self, remedy: dict[str, Any]) -> str:
        """Saving and price."""
        price, saves = remedy["price"], remedy["saves"] and remedy["saves"] > 0 and remedy["fits"] != "unknown"
        parts = [say("saves", self.lang, size=show(remedy["saves"]))] if saves else []
        parts.append(word(f"results_{price['results']}", self.lang))
        parts += [word(f"speed_{price['speed']}", self.lang)] if price["speed"] != "same" else []
        return semicolon(self.lang).join(parts)

    @cached_property
    def causes(self) -> list[dict[str, object]]:
        return [self.cause(cause) for cause in self.digest["causes"]]

    def cause(self, cause: dict[str, Any]) -> dict[str, object]:
        """Title, certainty and size; explanation and places."""
        sure = ("also_true" if cause["certainty"] == "certain" else "also_likely") if cause["also_true"] else cause["certainty"]
        chips, share = [word(sure, self.lang)], cause["share"]
        if cause["accounts_for"] is not None:
            much = show(cause["accounts_for"])
            chips.append(word("accounts_for", self.lang, size=much) if share is None else
                         word("accounts_for_share", self.lang, size=much, share=f"{share:.0%}"))  # fmt: skip
        return {
            "title": self.text(cause["title"]).rstrip(".。"),
            "chips": chips,
            "text": sentence(self.text(cause["said"]), self.lang),
            "seen": ", ".join(dict.fromkeys(map(self.place, cause["places"]))),
        }

    @cached_property
    def remedies(self) -> list[dict[str, object]]:
        return [self.remedy(remedy) for remedy in self.digest["remedies"] if not remedy["planned"]]

    def remedy(self, remedy: dict[str, Any]) -> dict[str, object]:
        """A remedy outside the plan: whether it fits, price, edits with its command, instruction."""
        edits = self.edits(remedy["edits"])
        lines = [f"{self.clean(edit.target)}{colon(self.lang)}{self.clean(advice_text.dated_edit(edit, self.lang))}" for edit in edits]
        lines += map(self.clean, remedy["env"])
        command = remedy["command"]
        is_code = command is not None and command["en"] == command["zh"]
        return {
            "title": self.text(remedy["title"]),
            "fits": remedy["fits"],
            "good": remedy["fits"] == advice_text.SURE,
            "price": self.price(remedy),
            "said": "" if is_code else self.text(command),
            "lines": [*lines, self.text(command)] if is_code else lines,
        }

    @cached_property
    def question(self) -> dict[str, str] | None:
        question = self.digest["question"]
        if not question:
            return None
        return {
            "text": words.question(self.text(question["why"]), self.text(question["how"]), self.lang),
            "set": self.clean(question["set"]),
        }

    @cached_property
    def notices(self) -> list[tuple[str, str]]:
        return [(notice["level"], self.text(notice["message"])) for notice in self.digest["notices"]]
