"""What a chat is told of a new group: one message within its platform's limit (rules/chats.yaml)."""

from __future__ import annotations

from diagnose.cluster.report import report_words as wording
from diagnose.cluster.report.failure_groups import Group
from diagnose.cluster.report.report_words import say
from diagnose.phrases import Lang
from diagnose.render.markup.chat_message import Dialect, Message, Platform, dialect
from diagnose.render.markup.markdown import diff
from diagnose.render.parts.strings import harmless, map_texts
from diagnose.render.parts.words import colon, semicolon, word

#: Variants of a plan, and lines of one variant.
VARIANTS, LINES = 2, 6


def group_message(group: Group, platform: Platform, lang: Lang = "en") -> Message:
    """What it is, what it cost, what to change, an example."""
    group = map_texts(group, harmless)
    rules = dialect(platform)
    cost = wording.hours(group.cost, lang) if group.cost.known else ""
    figures = semicolon(lang).join(filter(None, (wording.count(group.jobs, lang), cost, wording.period_text(group.period, lang))))
    head = f"{rules.strong(wording.title(group, 'fingerprint', lang))}\n{rules.escape(figures)}"
    where = [rules.escape(where)] if (where := wording.where(group, lang)) else []
    name, headline = rules.code_span(group.example.name), rules.escape(group.example.headline.to(lang))
    example = f"{rules.escape(say('example', lang))}{colon(lang)}{name}{colon(lang)}{headline}"
    return _fit_message(rules, [head, *where, *_change(rules, group, lang), example], lang)


def _change(platform: Dialect, group: Group, lang: Lang) -> list[str]:
    """The plan with the edits of the first variants, a part each."""
    if group.plan is None:
        return []
    summary = semicolon(lang).join((wording.steps(group, lang), wording.certainty_text(group, lang)))
    parts = [f"{platform.strong(say('change_this', lang))}{colon(lang)}{platform.escape(summary)}"]
    for variant in group.plan.variants[:VARIANTS]:
        lines = [*diff(variant.edits), *(f"+ {variable}" for variable in variant.env)][:LINES]
        if lines:
            parts.append(f"{platform.escape(wording.variant_title(variant, lang))}\n{platform.block(lines, platform.fence)}")
    return parts


def _fit_message(platform: Dialect, parts: list[str], lang: Lang) -> Message:
    """As many parts from the first on as the limit has room for; the last of them may be left out, never cut."""
    ending = platform.escape(word("chat_cut", lang))
    budget, fitting = platform.limit - platform.length(ending) - 2, list[str]()
    for part in parts:
        if platform.length(part) + 2 <= budget:
            fitting.append(part)
            budget -= platform.length(part) + 2
    cut = len(fitting) < len(parts)
    return Message("\n\n".join([*fitting, *([ending] if cut else [])]), cut=cut)
