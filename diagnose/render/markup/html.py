"""The answer as one HTML file: no scripts, nothing from the network, printable; every place that is named can be followed."""

from __future__ import annotations

from collections.abc import Sequence

from diagnose.decide.verdict import Verdict as Ruling
from diagnose.diagnosis import Diagnosis
from diagnose.facts import Witness
from diagnose.phrases import Lang
from diagnose.plan.rules.remedy import Edit, Remedy
from diagnose.render.markup import bar_charts, page_tables, style
from diagnose.render.markup.elements import SCHEMES, Child, Html, document, el, inside, link, prose
from diagnose.render.parts import advice_text, card, failure_text, memory_rows, outlook_view, variables, words
from diagnose.render.parts.cited_lines import Line, excerpts
from diagnose.render.parts.layout import clip
from diagnose.render.parts.strings import changed, harmless, one_line
from diagnose.render.parts.view import PLAIN, View
from diagnose.render.parts.words import colon, comma, word
from diagnose.version import __version__


def render(diagnosis: Diagnosis, lang: Lang = "en", _: View = PLAIN) -> str:
    """The whole answer as a page of its own."""
    title = f"{failure_text.banner(diagnosis, lang)} · oomdoctor"
    return document(title, lang, style.policy(), style.SHEET, body(diagnosis, lang))


def body(diagnosis: Diagnosis, lang: Lang = "en") -> Html:
    """What stands in a page: for pages that bring a head of their own, whose style sheet is `style.SHEET`."""
    diagnosis = changed(diagnosis, harmless)
    page = _Page(diagnosis, lang)
    return inside(
        bar_charts.patterns(),
        page.header(),
        el("main", page.card(), page.plan(), page.why(), page.moments(), page.snapshot(), page.frontier(), page.remedies(), page.rejected(),
           page.questions(), page.unsettled(), page.notices(), page_tables.full(diagnosis, lang), page.read()),
        el("footer", word("page_footer", lang, version=__version__)),
    )  # fmt: skip


class _Page:
    """The sections of one diagnosis in one language; they share the excerpts, to which places are linked."""

    def __init__(self, diagnosis: Diagnosis, lang: Lang) -> None:
        self.of, self.lang = diagnosis, lang
        self.excerpts = excerpts(diagnosis)
        self.ids = {name: f"in{number}" for number, name in enumerate(self.excerpts, 1)}
        self.shown = {(name, line.number) for name, lines in self.excerpts.items() for line in lines}

    def word(self, key: str, **values: object) -> str:
        return word(key, self.lang, **values)

    def section(self, key: str, *children: Child, name: str) -> Html:
        """A section with its heading; nothing where it has nothing to say."""
        held = inside(*children)
        return el("section", el("h2", self.word(key), id=name), held, aria_labelledby=name) if held else Html("")

    def place(self, witness: Witness) -> Html:
        """error.log:84, linked to its line in the excerpt where that is shown."""
        where = words.place(witness)
        if (witness.source, witness.line) in self.shown:
            return el("a", where, href=f"#{self.ids[witness.source]}-L{witness.line}")
        return inside(where)

    # -- the answer

    def header(self) -> Html:
        return el(
            "header",
            el("span", failure_text.banner(self.of, self.lang), class_="banner good" if failure_text.good(self.of) else "banner"),
            el("h1", prose(self.of.verdict.headline.to(self.lang))),
            [el("p", prose(line)) for line in outlook_view.room(self.of, self.lang)],
            el("p", comma(self.lang).join(one_line(given.name) for given in self.of.inputs), class_="dim"),
        )

    def card(self) -> Html:
        """The card as a bar, with what the bar does not show."""
        shown = card.of(self.of, self.lang)
        ledger = memory_rows.leading(self.of)
        now = memory_rows.told_of(ledger)
        said = [] if failure_text.on_host(self.of) else memory_rows.printed(self.of, self.lang, "`")
        notes = [memory_rows.doubt(self.of, self.lang)]
        if ledger is not None and now is not None and now.terms and not failure_text.on_host(self.of):
            said.insert(0, words.sentence(memory_rows.balance(ledger, now, self.lang), self.lang))
            notes += [memory_rows.peak(ledger, now, self.lang) if ledger.failing and memory_rows.comes_later(ledger, now) else ""]
            notes += [memory_rows.gaps(ledger, self.lang)]
        return self.section(
            "memory_check" if self.of.asked == "check" else "memory",
            bar_charts.of_card(shown, self.lang) if shown is not None else None,
            [el("p", prose(line)) for line in said],
            [el("p", prose(line), class_="note") for line in notes if line],
            name="memory",
        )

    def plan(self) -> Html:
        """The steps of the plan with their reasons and prices; then the diff, the variables, and how far one may go afterwards."""
        plan = self.of.outcome.plan
        if plan is None or not plan.steps:
            return Html("")
        known = {remedy.id: remedy for remedy in self.of.outcome.remedies}
        steps = []
        for step in plan.steps:
            remedy = known.get(step)
            if remedy is None:
                steps.append(el("li", el("b", words.name_of("remedy", step, self.lang))))
                continue
            worth = advice_text.worth(remedy, self.lang, alone=False)
            why = (
                "" if advice_text.unproven(remedy, self.of) else advice_text.reason(remedy, self.of, self.lang)
            )  # its worth says the bound
            title = el("b", remedy.title.to(self.lang))
            steps.append(el("li", title, colon(self.lang), worth, el("p", prose(why), class_="dim") if why else None, self.command(remedy)))
        after = [el("p", said) for said in (advice_text.remark(plan, self.lang), advice_text.climb(plan, self.of, self.lang)) if said]
        heading = advice_text.heading_of(plan, self.of, memory_rows.leading(self.of), self.lang)
        diff = advice_text.patch(self.of)
        patched = {document.name for document in self.of.documents if document.form != "command"}
        others = [change for change in plan.edits if not diff or change.target not in patched]
        parts = [
            el("h2", heading, id="plan"),
            el("ol", *steps, class_="steps"),
            page_tables.diff(diff, self.word("copy_patch")) if diff else None,
            self.changes(others),
            self.variables(plan.env),
            after,
        ]
        return el("section", *parts, aria_labelledby="plan")

    def command(self, remedy: Remedy) -> Html | None:
        """A command as something to copy, a sentence as a sentence."""
        if remedy.command is None:
            return None
        text = remedy.command.to(self.lang)
        return el("pre", el("code", text, class_="copy")) if remedy.command.en == remedy.command.zh else el("p", prose(text))

    def variables(self, env: tuple[str, ...]) -> Html | None:
        return el("pre", el("code", "\n".join(variables.lines(env, self.of)), class_="copy")) if env else None

    def changes(self, edits: Sequence[Edit]) -> Html | None:
        """Edits as lines: where, and what."""
        lines = [
            f"{advice_text.target(each, self.of)}{colon(self.lang)}{advice_text.edit(each, self.lang)}"
            for each in edits
            if isinstance(each, Edit)
        ]
        return el("pre", el("code", "\n".join(map(one_line, lines)), class_="copy")) if lines else None

    # -- why

    def why(self) -> Html:
        causes = [self.cause(cause) for cause in self.of.judgement.causes]
        if not causes and self.of.verdict.status in ("oom", "suspected") and self.of.asked != "check":
            return self.section("why", el("p", failure_text.no_cause(self.of, self.lang)), name="why")
        return self.section("why", el("ol", *causes) if causes else None, name="why")

    def cause(self, cause: Ruling) -> Html:
        """Title, how sure, how much; the explanation; the lines that it rests on."""
        notes = [el("span", failure_text.certainty(cause, self.lang), class_="chip")]
        if accounted := failure_text.accounted(cause, self.lang):
            notes.append(el("span", accounted, class_="chip"))
        evidence = [
            el("li", self.place(each), " ", el("code", clip(one_line(each.text or each.key), 150)))
            for each in dict.fromkeys(cause.evidence)
            if words.place(each)
        ]
        return el(
            "li",
            el("b", cause.title.to(self.lang).rstrip(".。")),
            [inside(" ", note) for note in notes],
            el("p", prose(words.sentence(cause.explanation.to(self.lang), self.lang))),
            el("ul", *evidence) if evidence else None,
            el("p", link(cause.url) if cause.url.startswith(SCHEMES) else el("code", f"oomdoctor rules show {cause.rule}"), class_="dim"),
        )

    def moments(self) -> Html:
        """A chart for every role that has more than one moment."""
        drawn = [bar_charts.of_moments(ledger, self.lang) for ledger in self.of.ledgers if len(ledger.moments) > 1]
        return self.section("moments", drawn, name="moments")

    def snapshot(self) -> Html:
        """What a memory snapshot shows."""
        if self.of.snapshot is None:
            return Html("")
        from diagnose.render.parts.snapshot_view import parts

        (title, lines), *others = parts(self.of, self.lang)
        held: list[Child] = [el("ul", *(el("li", line) for line in lines))]
        held += [page_tables.folded(name, el("ul", *(el("li", line) for line in each))) for name, each in others]
        return el("section", el("h2", title, id="snapshot"), *held, aria_labelledby="snapshot")

    def frontier(self) -> Html:
        """Before a run: how far each way of running it can be taken."""
        head, *lines = outlook_view.columns(self.of, self.lang) or [[]]
        if not lines:
            return Html("")
        title = outlook_view.title(self.of, self.lang)
        notes = [el("p", note, class_="dim") for note in outlook_view.notes(self.of, self.lang)]
        return el("section", el("h2", title, id="frontier"), page_tables.plain(head, lines), notes, aria_labelledby="frontier")

    # -- what else

    def remedies(self) -> Html:
        outcome = self.of.outcome
        planned = outcome.plan.steps if outcome.plan else ()
        others = [remedy for remedy in outcome.remedies if remedy.id not in planned]
        bare = not planned and self.of.ledgers and others
        said = el("p", self.word("no_plan")) if bare else None
        return self.section("remedies" if planned else "remedies_only", said, [self.remedy(each) for each in others], name="remedies")

    def remedy(self, remedy: Remedy) -> Html:
        """Title, whether it fits and what it saves; open it for the edits, the reasons and the price."""
        fits = el("span", self.word(f"fits_{remedy.fits}"), class_="chip good" if remedy.fits in advice_text.FITTING else "chip")
        saved = remedy.saves is not None and remedy.saves.high > 0
        size = inside(" ", el("span", advice_text.saving(remedy, self.lang, alone=False), class_="chip")) if saved else None
        why = "" if advice_text.unproven(remedy, self.of) else advice_text.reason(remedy, self.of, self.lang)
        return el(
            "details",
            el("summary", el("b", remedy.title.to(self.lang)), " ", fits, size),
            el("p", f"{advice_text.effect(remedy, self.lang)}{words.semicolon(self.lang)}{advice_text.price(remedy, self.lang)}"),
            el("p", prose(why)) if why else None,
            self.changes(remedy.edits),
            self.variables(remedy.env),
            self.command(remedy),
            [el("p", link(each)) for each in dict.fromkeys((*remedy.references, remedy.url)) if each.startswith(SCHEMES)],
            class_="remedy",
        )

    def rejected(self) -> Html:
        items = [
            el("li", el("b", words.name_of("remedy", each.id, self.lang)), colon(self.lang),
               prose(words.sentence(each.reason.to(self.lang), self.lang)))
            for each in self.of.outcome.rejected
        ]  # fmt: skip
        return self.section("not_here", el("ul", *items) if items else None, name="rejected")

    def questions(self) -> Html:
        items = [
            el(
                "li",
                prose(words.question(each.why.to(self.lang), each.how.to(self.lang), self.lang)),
                el("pre", el("code", each.set, class_="copy")),
            )
            for each in self.of.outcome.questions
        ]
        return self.section("questions", el("ul", *items) if items else None, name="questions")

    def unsettled(self) -> Html:
        found = self.of.outcome.unsettled
        items = [
            el("li", prose(words.lacking(mine, self.lang)), el("p", prose(mine[0].how.to(self.lang)), class_="dim"))
            for fact in dict.fromkeys(each.fact for each in found)
            if (mine := [each for each in found if each.fact == fact])
        ]
        return self.section("could_not_tell", el("ul", *items) if items else None, name="undecided")

    def notices(self) -> Html:
        items = []
        for said in self.of.notices:
            where = self.place(said.witness) if said.witness is not None else Html("")
            text = said.message.to(self.lang)
            level = f"{words.level(said, self.lang)}{colon(self.lang)}"
            lead = inside(where, colon(self.lang)) if where and words.place(said.witness or Witness("")) not in text else None
            items.append(el("p", level, lead, prose(text), class_="dim" if said.level == "info" else f"note {said.level}"))
        return self.section("notices", items, name="notices")

    def read(self) -> Html:
        """The cited lines of every input, each with an address of its own."""
        shown = [
            inside(el("h3", one_line(name)), el("pre", *self.lines(name, lines), class_="excerpt", tabindex=0, aria_label=one_line(name)))
            for name, lines in self.excerpts.items()
        ]
        return self.section("excerpt", shown, name="excerpt")

    def lines(self, name: str, lines: list[Line]) -> list[Child]:
        out: list[Child] = []
        before = 0
        for line in lines:
            if out and line.number > before + 1:
                out.append(el("span", "⋯", class_="gap", aria_hidden="true"))
            number = el("span", str(line.number), class_="n")
            out.append(el("span", number, line.text, id=f"{self.ids[name]}-L{line.number}", class_="l cited" if line.cited else "l"))
            before = line.number
        return out
