"""The answer as one chat message; rules/chats.yaml describes the markup and message limit of each platform."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Literal

from diagnose import rule_files
from diagnose.diagnosis import Diagnosis
from diagnose.facts import Notice
from diagnose.phrases import Lang
from diagnose.plan.remedies.remedy import Edit, Remedy
from diagnose.render.markup import markdown
from diagnose.render.parts import advice_text, card_bar, failure_text, memory_rows, outlook_view, redaction, words
from diagnose.render.parts.strings import harmless, one_line, visible
from diagnose.render.parts.words import colon, word
from diagnose.render.parts.wrapping import clip
from diagnose.render.text import character_bar

Platform = Literal["github", "slack", "discord", "feishu"]

#: So many steps, other remedies, edits of one remedy and notes; an edit is cut at so many characters.
STEPS, OTHERS, EDITS, NOTES, WIDEST = 6, 2, 4, 2, 200

#: A headline may take so much of a message.
SHARE = 0.4

CODE = re.compile(r"`([^`\n]+)`")
EDGE = re.compile(r"(?<!\w)_|_(?!\w)")


@dataclass(slots=True)
class Message:
    """A message for a bot to send: `text` in the platform's markup and within its limit; `patch` the plan as a plain diff (sent as a
    file or snippet), empty without edits; `cut` whether something was left out."""

    text: str
    patch: str = ""
    cut: bool = False


@dataclass(slots=True)
class Dialect:
    """The markup of a platform, as in rules/chats.yaml."""

    limit: int
    unit: str
    width: int
    bold: str
    fence: str
    prose: dict[str, str]
    code: dict[str, str]
    under: str

    def length(self, text: str) -> int:
        """The length of a text as the platform counts it."""
        return len(text.encode(errors="replace")) if self.unit == "bytes" else len(text.encode("utf-16-le", "replace")) // 2

    def strong(self, text: str) -> str:
        return self.bold.format(self.escape(text))

    def code_span(self, text: str) -> str:
        """A code span that its content cannot terminate."""
        flat = clip(one_line(text).replace("`", "'"), WIDEST)
        return f"`{_inert(_replace(flat, self.code))}`" if flat else ""

    def block(self, lines: list[str], fence: str = "```") -> str:
        """A code block of lines no longer than a screen is wide."""
        return self.verbatim("\n".join(map(block_line, lines)), fence)

    def verbatim(self, text: str, fence: str = "```") -> str:
        """A code block that its content cannot terminate."""
        inside = _inert(_replace(visible(text), self.code)).replace("```", "'''")
        return f"{fence}\n{inside}\n```"

    def escape(self, text: str) -> str:
        """Escape a text, except for its code spans."""
        flat, out, at = one_line(text), "", 0
        for match in CODE.finditer(flat):
            out += self._plain(flat[at : match.start()]) + self.code_span(match[1])
            at = match.end()
        return out + self._plain(flat[at:])

    def _plain(self, text: str) -> str:
        return _inert(_replace(EDGE.sub("\0", text), self.prose).replace("\0", self.under))


def _replace(text: str, table: dict[str, str]) -> str:
    return "".join(table.get(sign, sign) for sign in text)


def _inert(text: str) -> str:
    return text.replace("@", "@\u200b").replace("://", ":\u200b//")


def block_line(line: str) -> str:
    """A line for a code block: control characters removed, blanks kept, cut to the width of a screen."""
    return clip(harmless(line).replace("\n", " "), WIDEST)


@cache
def dialect(platform: str) -> Dialect:
    """The markup of a platform. Raises KeyError for a platform that is not in rules/chats.yaml."""
    return Dialect(**rule_files.table("chats")[platform])


def chat(diagnosis: Diagnosis, platform: Platform, lang: Lang = "en", *, redact: bool = True) -> Message:
    """The answer as a message, masked unless `redact` is False. No text of the input can mention users, link or format."""
    if redact:
        diagnosis = redaction.mask_diagnosis(diagnosis)
    patch = advice_text.patch(diagnosis)
    if platform == "github":
        return Message(markdown.render(diagnosis, lang), patch)
    diagnosis = advice_text.to_show(diagnosis)
    return assemble(_MessageParts(diagnosis, dialect(platform), lang), patch)


def assemble(content: _MessageParts, patch: str) -> Message:
    """Select parts by importance up to the limit and return them in reading order."""
    platform = content.dialect
    ending = platform.escape(word("chat_cut", content.lang))
    head = content.head()
    parts = [
        part
        for part in (content.why(), content.bar(), content.plan(), content.others(), content.refused(), content.question(), content.notes())
        if part
    ]
    by_weight = [
        part
        for part in (content.plan(), content.bar(), content.why(), content.others(), content.notes(), content.question(), content.refused())
        if part
    ]
    budget = platform.limit - platform.length(head) - platform.length(ending) - 2
    fitting = []
    for part in by_weight:
        if platform.length(part) + 2 <= budget:
            fitting.append(part)
            budget -= platform.length(part) + 2
    cut = len(fitting) < len(parts)
    text = "\n\n".join([head, *(part for part in parts if part in fitting), *([ending] if cut else [])])
    return Message(text, patch, cut)


class _MessageParts:
    """Writes the parts of a message about one diagnosis."""

    def __init__(self, diagnosis: Diagnosis, platform: Dialect, lang: Lang) -> None:
        self.diagnosis, self.dialect, self.lang = diagnosis, platform, lang
        plan = diagnosis.outcome.plan
        self.steps = plan.steps if plan is not None else ()

    def head(self) -> str:
        """Verdict and headline; a very long headline is cut."""
        headline = self.diagnosis.verdict.headline.to(self.lang)
        limit = int(self.dialect.limit * SHARE)
        while self.dialect.length(self.dialect.escape(headline)) > limit:
            headline = headline[: len(headline) * 9 // 10].rstrip("… ") + "…"
        rooms = [self.dialect.escape(line) for line in outlook_view.room_lines(self.diagnosis, self.lang)[:2]]
        lines = [
            f"{self.dialect.strong(failure_text.banner(self.diagnosis, self.lang))}{colon(self.lang)}{self.dialect.escape(headline)}",
            *rooms,
            *(self.note(notice) for notice in failure_text.leading_notices(self.diagnosis)[:NOTES]),
        ]
        return "\n".join(lines)

    def bar(self) -> str:
        """The bar of the card as a code block."""
        memory = card_bar.build_card(self.diagnosis, self.lang)
        if memory is None:
            return ""
        lines = [
            memory.title,
            character_bar.line(memory, self.dialect.width),
            *character_bar.legend(memory, self.dialect.width, self.lang),
        ]
        return self.dialect.block(lines)

    def plan(self) -> str:
        """The plan's steps with their edits; without a plan the first remedies."""
        plan = self.diagnosis.outcome.plan
        by_id = {remedy.id: remedy for remedy in self.diagnosis.outcome.remedies}
        if plan is None or not plan.steps:
            first = self.diagnosis.outcome.remedies[: OTHERS + 1]
            lines = [line for remedy in first for line in self.remedy(remedy, "• ", alone=True)]
            return "\n".join([self.dialect.strong(word("remedies_only", self.lang)), *lines]) if lines else ""
        lines = [self.dialect.strong(advice_text.plan_heading(plan, self.diagnosis, memory_rows.main_ledger(self.diagnosis), self.lang))]
        for number, step in enumerate(plan.steps[:STEPS], 1):
            if step in by_id:
                lines += self.remedy(by_id[step], f"{number}. ", alone=False)
            else:
                lines.append(f"{number}. {self.dialect.escape(words.name_of('remedy', step, self.lang))}")
        return "\n".join(lines)

    def remedy(self, remedy: Remedy, lead: str, *, alone: bool) -> list[str]:
        """A remedy: title, saving and price, then its edits as code or its instruction."""
        worth = self.dialect.escape(advice_text.saving_and_price(remedy, self.lang, alone=alone))
        lines = [f"{lead}{self.dialect.escape(remedy.title.to(self.lang))}{colon(self.lang)}{worth}"]
        lines += [f"    {self.edit(change)}" for change in remedy.edits[:EDITS]]
        if further := advice_text.further_edits(remedy.edits, EDITS, self.lang):
            lines.append("    " + self.dialect.escape(further))
        lines += [f"    {self.dialect.code_span(line)}" for line in advice_text.shell_lines(remedy.env, self.diagnosis)]
        if remedy.command is not None:
            plain = remedy.command.en == remedy.command.zh
            lines.append(
                "    " + (self.dialect.code_span(remedy.command.en) if plain else self.dialect.escape(remedy.command.to(self.lang)))
            )
        if instruction := advice_text.instruction(remedy, self.diagnosis, self.lang):
            lines.append("    " + self.dialect.escape(instruction))
        return lines

    def edit(self, change: Edit) -> str:
        place = self.dialect.escape(advice_text.target(change, self.diagnosis))
        dated = self.dialect.escape(advice_text.release(change, self.lang))
        return f"{place}{colon(self.lang)}{self.dialect.code_span(advice_text.edit(change, self.lang))}{dated}"

    def why(self) -> str:
        """The causes with their certainty, what that takes for granted, and that it would fail later too."""
        more = failure_text.assumption(self.diagnosis, self.lang), memory_rows.later_failure(self.diagnosis, self.lang)
        return "\n".join(filter(None, (self.causes(), *map(self.dialect.escape, more))))

    def causes(self) -> str:
        causes = failure_text.listed_causes(self.diagnosis, 3)
        if any(not cause.also_true for cause in self.diagnosis.judgement.causes):
            text = failure_text.brief_causes(
                causes,
                card_bar.figures_of_causes(self.diagnosis, self.lang),
                self.lang,
                [words.places(cause.evidence, 2) for cause in causes],
            )
            title = self.dialect.strong(failure_text.why_title(causes, self.lang))
            return f"{title}{colon(self.lang)}{self.dialect.escape(words.sentence(text, self.lang))}" if text else ""
        failed = self.diagnosis.verdict.status in ("oom", "suspected") and self.diagnosis.asked != "check"
        return (
            self.dialect.escape(failure_text.no_cause(self.diagnosis, self.lang, card_bar.largest_part(self.diagnosis, self.lang)))
            if failed
            else ""
        )

    def others(self) -> str:
        if not self.steps:
            return ""
        others = [remedy for remedy in self.diagnosis.outcome.remedies if remedy.id not in self.steps][:OTHERS]
        lines = [line for remedy in others for line in self.remedy(remedy, "• ", alone=True)]
        lines += [f"• {self.dialect.escape(line)}" for line in advice_text.little_gains(self.diagnosis, self.lang)]
        return "\n".join([self.dialect.strong(word("remedies", self.lang)), *lines]) if lines else ""

    def refused(self) -> str:
        """Advice that would not help here, with the reasons."""
        rejections = advice_text.rejection_lines(advice_text.without_idle(self.diagnosis.outcome.rejected), self.lang)[:OTHERS]
        lines = [f"• {self.dialect.escape(rejection)}" for rejection in rejections]
        return "\n".join([self.dialect.strong(word("not_here", self.lang)), *lines]) if lines else ""

    def question(self) -> str:
        if not self.diagnosis.outcome.questions:
            return ""
        first = self.diagnosis.outcome.questions[0]
        text = self.dialect.escape(words.question(first.why.to(self.lang), first.how.to(self.lang), self.lang))
        return f"{self.dialect.strong(word('question', self.lang))}{colon(self.lang)}{text} {self.dialect.code_span(first.set)}"

    def notes(self) -> str:
        leading = failure_text.leading_notices(self.diagnosis)
        others = [entry for entry in self.diagnosis.notices if entry.level != "info" and entry not in leading]
        return "\n".join(map(self.note, others[:NOTES]))

    def note(self, notice: Notice) -> str:
        return self.dialect.escape(words.notice_with_level(notice, self.lang))
