"""The answer as one HTML file: no scripts, no network access, printable; cited lines are links to excerpts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from diagnose.budget.model.ledger import Ledger, Moment
from diagnose.decide.verdict import Verdict as Ruling
from diagnose.diagnosis import Diagnosis
from diagnose.facts import Notice, Witness
from diagnose.phrases import Lang
from diagnose.plan.remedies.remedy import Edit, Remedy
from diagnose.render.markup import bar_charts, facts_view, page_templates, step_chart
from diagnose.render.parts import advice_text, card_bar, failure_text, memory_rows, outlook_view, words
from diagnose.render.parts.cited_lines import excerpts
from diagnose.render.parts.strings import one_line, visible
from diagnose.render.parts.view import PLAIN, View
from diagnose.render.parts.words import colon, comma, word
from diagnose.render.parts.wrapping import clip
from diagnose.render.text import details
from diagnose.version import __version__

if TYPE_CHECKING:
    from diagnose.render.markup.flame_graph import Flame

#: The style of an answer.
SHEET = ("tokens.css", "page.css")

#: What the template may call by its name; `lang` is the last parameter where words are in it.
CALLED = page_templates.by_name(
    advice_text.effect, advice_text.enough, advice_text.little_gains, advice_text.price, advice_text.saving, advice_text.saving_and_price,
    advice_text.useless, bar_charts.moments_chart,
    details.formula, failure_text.accounted_size, failure_text.certainty,
    memory_rows.role_title, words.amount, words.figure, words.undecided_causes, words.level, words.name_of, words.question, words.semicolon,
    words.sentence, words.width,
)  # fmt: skip


def render(diagnosis: Diagnosis, lang: Lang = "en", _: View = PLAIN) -> str:
    """The answer as a complete page."""
    title = f"{failure_text.banner(diagnosis, lang)} · oomdoctor"
    note = advice_text.note_command(diagnosis, lang)
    return _render("answer_page", diagnosis, lang, title=title, sheet=page_templates.asset(*SHEET), inside=False, note=note)


def body(diagnosis: Diagnosis, lang: Lang = "en", *, inside: bool = False) -> str:
    """The content of a page, for callers with a page frame of their own; `inside`: their frame has a main part and the patterns of bars."""
    return _render("answer", diagnosis, lang, inside=inside)


def _render(name: str, diagnosis: Diagnosis, lang: Lang, **values: object) -> str:
    diagnosis = advice_text.to_show(diagnosis)
    return "".join(
        page_templates.page(name, lang, diagnosis=diagnosis, page=_Page(diagnosis, lang), version=__version__, **CALLED, **values)
    )


class _Page:
    """Values that the page template needs beside the diagnosis itself, in one language."""

    sure, schemes = advice_text.SURE, page_templates.SCHEMES

    def __init__(self, diagnosis: Diagnosis, lang: Lang) -> None:
        self.diagnosis, self.lang = diagnosis, lang
        self.excerpts = excerpts(diagnosis)
        self.anchors = {
            (name, line.number): f"in{number}-L{line.number}"
            for number, (name, lines) in enumerate(self.excerpts.items(), 1)
            for line in lines
        }
        self.banner, self.good = failure_text.banner(diagnosis, lang), failure_text.is_good_news(diagnosis)
        self.assumption, self.leading = failure_text.assumption(diagnosis, lang), failure_text.leading_notices(diagnosis)
        self.room = outlook_view.room_lines(diagnosis, lang)
        self.inputs = comma(lang).join(one_line(source.name) for source in diagnosis.inputs)
        memory = card_bar.build_card(diagnosis, lang)
        self.accounted = card_bar.figures_of_causes(diagnosis, lang)
        self.later = memory_rows.later_failure(diagnosis, lang)
        self.why = failure_text.why_line(diagnosis, self.accounted, lang)
        self.card = bar_charts.card_chart(memory, lang) if memory is not None else None
        self.explained, self.sides = memory_rows.explained(diagnosis), bar_charts.plan_bars(diagnosis, lang)
        self.timelines = step_chart.timelines(diagnosis, lang)
        outcome = diagnosis.outcome
        self.planned = outcome.plan.steps if outcome.plan is not None else ()
        self.others = [remedy for remedy in outcome.remedies if remedy.id not in self.planned]

    def anchor(self, witness: Witness) -> str:
        """The link target of a line in the excerpts; empty if they do not show it."""
        return self.anchors.get((witness.source, witness.line or 0), "")

    def reason(self, remedy: Remedy) -> str:
        """Why a remedy helps; empty if its figures rest on an estimate that the log contradicts."""
        return "" if advice_text.is_unproven(remedy, self.diagnosis) else advice_text.reason(remedy, self.diagnosis, self.lang)

    def changes(self, edits: Sequence[object]) -> list[str]:
        """Edits as lines: the place and the change."""
        return [one_line(advice_text.placed_edit(edit, self.diagnosis, self.lang)) for edit in edits if isinstance(edit, Edit)]

    def variables(self, env: tuple[str, ...]) -> list[str]:
        return advice_text.shell_lines(env, self.diagnosis) if env else []

    # -- the answer

    @cached_property
    def figures(self) -> tuple[list[str], list[str]]:
        """Lines below the bar: printed figures, then caveats of the estimate and what it does not explain."""
        ledger, on_host = memory_rows.main_ledger(self.diagnosis), failure_text.on_host(self.diagnosis)
        moment = memory_rows.main_moment(ledger)
        printed = [] if on_host else memory_rows.printed_lines(self.diagnosis, self.lang, "`")
        notes = [memory_rows.deviation_text(self.diagnosis, self.lang)]
        if ledger is not None and moment is not None and moment.terms and not on_host:
            printed.insert(0, words.sentence(memory_rows.balance(ledger, moment, self.lang), self.lang))
            notes += [
                memory_rows.peak_text(ledger, moment, self.lang)
                if ledger.failing and not self.later and memory_rows.peaks_later(ledger, moment)
                else ""
            ]
            notes += [memory_rows.missing_facts(ledger, self.lang)]
        return printed, [note for note in notes if note]

    @cached_property
    def plan(self) -> dict[str, object] | None:
        """The plan: steps, diff, environment variables, and how far settings may be raised afterwards."""
        plan = self.diagnosis.outcome.plan
        if plan is None or not plan.steps:
            return None
        by_id = {remedy.id: remedy for remedy in self.diagnosis.outcome.remedies}
        diff = advice_text.patch(self.diagnosis)
        lines = page_templates.diff(visible(diff).rstrip("\n").split("\n"), "") if diff else []
        patched = {document.name for document in self.diagnosis.documents if document.form != "command"}
        alone = [edit for edit in plan.edits if not diff or edit.target not in patched]
        dated = advice_text.release_notes([edit for edit in plan.edits if edit not in alone], self.lang)
        return {
            "heading": advice_text.plan_heading(plan, self.diagnosis, memory_rows.main_ledger(self.diagnosis), self.lang),
            "steps": [(step, by_id.get(step)) for step in plan.steps],
            "diff": [("at" if line.startswith(("---", "+++", "@@")) else kind, line) for kind, line in lines],
            "changes": self.changes(alone),
            "variables": self.variables(plan.env),
            "remarks": [*dated, advice_text.plan_note(plan, self.lang), advice_text.ladder_line(plan, self.diagnosis, self.lang)],
        }

    @cached_property
    def first_step(self) -> str:
        """The first step in a line, for the first screen of a phone."""
        plan, by_id = self.plan, {remedy.id: remedy for remedy in self.diagnosis.outcome.remedies}
        steps = [by_id[step] for step in self.planned if step in by_id]
        return f"{word('first_step', self.lang)}{colon(self.lang)}{steps[0].title.to(self.lang)}" if plan is not None and steps else ""

    # -- why

    @cached_property
    def no_cause(self) -> str:
        """The sentence for a failure without a cause."""
        failed = self.diagnosis.verdict.status in ("oom", "suspected") and self.diagnosis.asked != "check"
        return failure_text.no_cause(self.diagnosis, self.lang, card_bar.largest_part(self.diagnosis, self.lang)) if failed else ""

    def evidence(self, cause: Ruling) -> list[tuple[Witness, str]]:
        """The lines that a cause cites."""
        witnesses = [witness for witness in dict.fromkeys(cause.evidence) if words.place(witness)]
        return [(witness, clip(one_line(witness.text or witness.key), 150)) for witness in witnesses]

    @cached_property
    def snapshot(self) -> list[tuple[str, list[str]]]:
        """The content of the memory snapshot, if there is one."""
        if self.diagnosis.snapshot is None:
            return []
        from diagnose.render.parts.snapshot_view import titled_lists  # few diagnoses have a snapshot

        return titled_lists(self.diagnosis, self.lang)

    @cached_property
    def flame(self) -> Flame | None:
        """The live memory of the snapshot, if there is one."""
        if self.diagnosis.snapshot is None:
            return None
        from diagnose.render.markup import flame_graph  # few diagnoses have a snapshot, and the browser has none of what reads them

        return flame_graph.draw(self.diagnosis, self.lang)

    @cached_property
    def curve(self) -> step_chart.Area | None:
        """The history of a snapshot, against the card."""
        taken, capacity = self.diagnosis.snapshot, card_bar.card_capacity(self.diagnosis)
        if taken is None or taken.history is None:
            return None
        return step_chart.history(taken.history.points, capacity.bytes if capacity is not None else 0)

    # -- each remedy on the scale of the plan's bars

    @cached_property
    def scale(self) -> tuple[int, int]:
        """The bytes that are the whole width, and what torch can use; zeros where the plan has no bars."""
        ledger, plan = memory_rows.main_ledger(self.diagnosis), self.diagnosis.outcome.plan
        if not self.sides or ledger is None or ledger.usable is None or plan is None or plan.before is None:
            return 0, 0
        peaks = [remedy.peak.bytes for remedy in self.others if remedy.peak is not None]
        return max([plan.before.total.bytes, ledger.usable.bytes, *peaks]), ledger.usable.bytes

    def reach(self, remedy: Remedy) -> float:
        """The peak after a remedy alone in per cent of the scale; 0 where it is not priced."""
        whole, _ = self.scale
        return 100 * remedy.peak.bytes / whole if whole and remedy.peak is not None and remedy.price.effort != "hardware" else 0.0

    @cached_property
    def limit(self) -> float:
        whole, usable = self.scale
        return 100 * usable / whole if whole else 0.0

    @cached_property
    def frontier(self) -> dict[str, object] | None:
        """How far each way of running the job reaches (`check`)."""
        head, *lines = outlook_view.table_cells(self.diagnosis, self.lang) or [[]]
        if not lines:
            return None
        return {
            "title": outlook_view.title(self.diagnosis, self.lang),
            "head": head,
            "lines": lines,
            "notes": outlook_view.notes(self.diagnosis, self.lang),
        }

    # -- what else

    def references(self, remedy: Remedy) -> list[str]:
        return [address for address in dict.fromkeys((*remedy.references, remedy.url)) if address.startswith(page_templates.SCHEMES)]

    @cached_property
    def unsettled(self) -> list[list[object]]:
        """Undecided causes, grouped by the fact that they lack."""
        rules = self.diagnosis.outcome.unsettled
        return [[rule for rule in rules if rule.fact == fact] for fact in dict.fromkeys(rule.fact for rule in rules)]

    def lead(self, notice: Notice) -> bool:
        """Whether a notice needs its place in front, because its message does not name it."""
        where = words.place(notice.witness) if notice.witness is not None else ""
        return bool(where) and where not in notice.message.to(self.lang)

    # -- what one opens to check

    def moments(self, ledger: Ledger) -> list[tuple[str, Moment]]:
        """The moments with their names, on the card and then on the host."""
        on_card = [(words.moment(moment.name, self.lang), moment) for moment in ledger.moments if moment.terms]
        return [*on_card, *details.host_moments(ledger, self.lang)]

    def failures(self) -> Iterator[tuple[str, list[str]]]:
        """All failures of the log with their innermost frames."""
        for number, event in enumerate(self.diagnosis.events):
            frames = [one_line(f"{frame.file}:{frame.line} {frame.function}") for frame in event.frames[-8:]]
            yield failure_text.failure_line(self.diagnosis, number, self.lang), frames

    def facts(self) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
        """Settings and facts with value and origin."""
        sections = dict(facts_view.sections(self.diagnosis, View()))
        for title in ("knobs", "facts"):
            rows = [(fact.name, words.value_text(fact.value, self.lang), facts_view.origin(fact, self.lang)) for fact in sections[title]]
            yield word(title, self.lang), rows
