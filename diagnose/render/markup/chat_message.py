"""The answer as one message of a chat: rules/chats.yaml says how each platform writes and how much a message holds."""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

from diagnose import rule_files
from diagnose.diagnosis import Diagnosis
from diagnose.phrases import Lang
from diagnose.plan.rules.remedy import Edit, Remedy
from diagnose.record import record
from diagnose.render.parts import advice_text, card, failure_text, memory_rows, outlook_view, variables, words
from diagnose.render.parts.layout import clip
from diagnose.render.parts.strings import changed, harmless, one_line
from diagnose.render.parts.words import colon, word
from diagnose.render.text import bar

Platform = Literal["github", "slack", "discord", "feishu"]

#: So many steps, other remedies, edits of one remedy and notes; an edit is cut at so many characters.
STEPS, OTHERS, EDITS, NOTES, WIDEST = 6, 2, 4, 2, 200

#: A headline may take so much of a message.
SHARE = 0.4

CODE = re.compile(r"`([^`\n]+)`")
EDGE = re.compile(r"(?<!\w)_|_(?!\w)")


@record
class Message:
    """What a bot sends: `text` within the platform's limit, already written for it; `patch` the plan as a diff, plain (a bot sends it as a
    file or a snippet), empty where there is none; `cut` whether something was left out."""

    text: str
    patch: str = ""
    cut: bool = False


@record
class Dialect:
    """A platform, as rules/chats.yaml describes it."""

    limit: int
    unit: str
    width: int
    bold: str
    fence: str
    prose: dict[str, str]
    code: dict[str, str]
    under: str

    def long(self, text: str) -> int:
        """How much of the limit a text takes."""
        return len(text.encode(errors="replace")) if self.unit == "bytes" else len(text.encode("utf-16-le", "replace")) // 2

    def strong(self, text: str) -> str:
        return self.bold.format(self.shown(text))

    def span(self, text: str) -> str:
        """A code span that nothing in the text can end."""
        flat = clip(one_line(text).replace("`", "'"), WIDEST)
        return f"`{_inert(_mapped(flat, self.code))}`" if flat else ""

    def block(self, lines: list[str], fence: str = "```") -> str:
        """A code block that nothing in it can end."""
        inside = "\n".join(_inert(_mapped(one_line_kept(line), self.code)) for line in lines).replace("```", "'''")
        return f"{fence}\n{inside}\n```"

    def shown(self, text: str) -> str:
        """A text that is shown as it is; code spans in it stay code."""
        flat, out, at = one_line(text), "", 0
        for match in CODE.finditer(flat):
            out += self._plain(flat[at : match.start()]) + self.span(match[1])
            at = match.end()
        return out + self._plain(flat[at:])

    def _plain(self, text: str) -> str:
        return _inert(_mapped(EDGE.sub("\0", text), self.prose).replace("\0", self.under))


def _mapped(text: str, table: dict[str, str]) -> str:
    return "".join(table.get(sign, sign) for sign in text)


def _inert(text: str) -> str:
    return text.replace("@", "@\u200b").replace("://", ":\u200b//")


def one_line_kept(line: str) -> str:
    """A line of a block: harmless, its blanks kept, and no longer than a screen is wide."""
    return clip(harmless(line).replace("\n", " "), WIDEST)


@cache
def dialect(platform: str) -> Dialect:
    """Raises KeyError for a platform that rules/chats.yaml does not know."""
    return Dialect(**rule_files.table("chats")[platform])


def chat(diagnosis: Diagnosis, platform: Platform, lang: Lang = "en", *, redact: bool = True) -> Message:
    """The answer as a message of a platform; masked unless `redact` is False. Nothing in it calls, links or formats by itself."""
    if redact:
        from diagnose.render.parts import redaction as masks

        diagnosis = masks.diagnosis(diagnosis)
    patch = advice_text.patch(diagnosis)
    if platform == "github":
        from diagnose.render.markup import markdown

        return Message(markdown.render(diagnosis, lang), patch)
    diagnosis = changed(diagnosis, harmless)
    return folded(_Talk(diagnosis, dialect(platform), lang), patch)


def folded(content: _Talk, patch: str) -> Message:
    """As many parts as the limit has room for, the weightiest first, in the order in which they are read."""
    platform = content.way
    ending = platform.shown(word("chat_cut", content.lang))
    head = content.head()
    parts = [
        part
        for part in (content.bar(), content.plan(), content.why(), content.others(), content.refused(), content.question(), content.notes())
        if part
    ]
    by_weight = [
        part
        for part in (content.plan(), content.bar(), content.why(), content.others(), content.notes(), content.question(), content.refused())
        if part
    ]
    budget = platform.limit - platform.long(head) - platform.long(ending) - 2
    fitting = []
    for part in by_weight:
        if platform.long(part) + 2 <= budget:
            fitting.append(part)
            budget -= platform.long(part) + 2
    cut = len(fitting) < len(parts)
    text = "\n\n".join([head, *(part for part in parts if part in fitting), *([ending] if cut else [])])
    return Message(text, patch, cut)


class _Talk:
    """The parts of one diagnosis in one dialect."""

    def __init__(self, diagnosis: Diagnosis, platform: Dialect, lang: Lang) -> None:
        self.of, self.way, self.lang = diagnosis, platform, lang
        plan = diagnosis.outcome.plan
        self.steps = plan.steps if plan is not None else ()

    def head(self) -> str:
        """Banner and headline; of a very long one its beginning."""
        headline = self.of.verdict.headline.to(self.lang)
        limit = int(self.way.limit * SHARE)
        while self.way.long(self.way.shown(headline)) > limit:
            headline = headline[: len(headline) * 9 // 10].rstrip("… ") + "…"
        rooms = [self.way.shown(line) for line in outlook_view.room(self.of, self.lang)[:2]]
        lines = [f"{self.way.strong(failure_text.banner(self.of, self.lang))}{colon(self.lang)}{self.way.shown(headline)}", *rooms]
        return "\n".join(lines)

    def bar(self) -> str:
        """The card as a block of signs."""
        memory = card.of(self.of, self.lang)
        if memory is None:
            return ""
        lines = [card.heading(memory, self.lang), bar.line(memory, self.way.width), *bar.legend(memory, self.way.width, self.lang)]
        return self.way.block(lines)

    def plan(self) -> str:
        """The steps with their edits; without a plan the first remedies."""
        plan = self.of.outcome.plan
        by_id = {remedy.id: remedy for remedy in self.of.outcome.remedies}
        if plan is None or not plan.steps:
            first = self.of.outcome.remedies[: OTHERS + 1]
            lines = [line for remedy in first for line in self.remedy(remedy, "• ", alone=True)]
            return "\n".join([self.way.strong(word("remedies_only", self.lang)), *lines]) if lines else ""
        lines = [self.way.strong(advice_text.heading_of(plan, self.of, memory_rows.leading(self.of), self.lang))]
        for number, step in enumerate(plan.steps[:STEPS], 1):
            if step in by_id:
                lines += self.remedy(by_id[step], f"{number}. ", alone=False)
            else:
                lines.append(f"{number}. {self.way.shown(words.name_of('remedy', step, self.lang))}")
        return "\n".join(lines)

    def remedy(self, remedy: Remedy, lead: str, *, alone: bool) -> list[str]:
        """Title, what it saves and costs; below it the edits as code, or what is to be done by hand."""
        worth = self.way.shown(advice_text.worth(remedy, self.lang, alone=alone))
        lines = [f"{lead}{self.way.shown(remedy.title.to(self.lang))}{colon(self.lang)}{worth}"]
        lines += [f"    {self.edit(change)}" for change in remedy.edits[:EDITS]]
        if len(remedy.edits) > EDITS:
            lines.append("    " + self.way.shown(word("chat_more_edits", self.lang, count=len(remedy.edits) - EDITS)))
        lines += [f"    {self.way.span(line)}" for line in variables.lines(remedy.env, self.of)]
        if remedy.command is not None:
            plain = remedy.command.en == remedy.command.zh
            lines.append("    " + (self.way.span(remedy.command.en) if plain else self.way.shown(remedy.command.to(self.lang))))
        if instruction := advice_text.instruction(remedy, self.of, self.lang):
            lines.append("    " + self.way.shown(instruction))
        return lines

    def edit(self, change: Edit) -> str:
        return (
            f"{self.way.shown(advice_text.target(change, self.of))}{colon(self.lang)}{self.way.span(advice_text.edit(change, self.lang))}"
        )

    def why(self) -> str:
        causes = [cause for cause in self.of.judgement.causes if not cause.also_true][:3]
        if causes:
            text = failure_text.in_short(causes, self.lang, [words.places(cause.evidence, 2) for cause in causes])
            return f"{self.way.strong(word('why', self.lang))}{colon(self.lang)}{self.way.shown(words.sentence(text, self.lang))}"
        failed = self.of.verdict.status in ("oom", "suspected") and self.of.asked != "check"
        return self.way.shown(failure_text.no_cause(self.of, self.lang)) if failed else ""

    def others(self) -> str:
        if not self.steps:
            return ""
        others = [remedy for remedy in self.of.outcome.remedies if remedy.id not in self.steps][:OTHERS]
        lines = [line for remedy in others for line in self.remedy(remedy, "• ", alone=True)]
        return "\n".join([self.way.strong(word("remedies", self.lang)), *lines]) if lines else ""

    def refused(self) -> str:
        """What would not help here, with its reason."""
        rejections = advice_text.refusals(advice_text.telling(self.of.outcome.rejected), self.lang)[:OTHERS]
        lines = [f"• {self.way.shown(rejection)}" for rejection in rejections]
        return "\n".join([self.way.strong(word("not_here", self.lang)), *lines]) if lines else ""

    def question(self) -> str:
        if not self.of.outcome.questions:
            return ""
        first = self.of.outcome.questions[0]
        text = self.way.shown(words.question(first.why.to(self.lang), first.how.to(self.lang), self.lang))
        return f"{self.way.strong(word('question', self.lang))}{colon(self.lang)}{text} {self.way.span(first.set)}"

    def notes(self) -> str:
        notices = [entry for entry in self.of.notices if entry.level != "info"][:NOTES]
        return "\n".join(self.way.shown(words.told_notice(entry, self.lang)) for entry in notices)
