"""What a chat is told of a new group: one message within its platform's limit (rules/chats.yaml)."""

from __future__ import annotations

from diagnose.cluster.report import report_words as told
from diagnose.cluster.report.failure_groups import Group
from diagnose.cluster.report.report_words import say
from diagnose.phrases import Lang
from diagnose.render.markup.chat_message import Dialect, Message, Platform, dialect
from diagnose.render.markup.markdown import diff
from diagnose.render.parts.strings import changed, harmless
from diagnose.render.parts.words import colon, semicolon, word

#: Variants of a plan, and lines of one variant.
VARIANTS, LINES = 2, 6


def of_group(group: Group, platform: Platform, lang: Lang = "en") -> Message:
    """What it is, what it cost, what to change, an example."""
    group = changed(group, harmless)
    platform_dialect = dialect(platform)
    cost = told.hours(group.cost, lang) if group.cost.known else ""
    figures = semicolon(lang).join(filter(None, (told.count(group.jobs, lang), cost, told.seen(group.period, lang))))
    head = f"{platform_dialect.strong(told.title(group, 'fingerprint', lang))}\n{platform_dialect.shown(figures)}"
    where = [platform_dialect.shown(where)] if (where := told.where(group, lang)) else []
    name, headline = platform_dialect.span(group.example.name), platform_dialect.shown(group.example.headline.to(lang))
    example = f"{platform_dialect.shown(say('example', lang))}{colon(lang)}{name}{colon(lang)}{headline}"
    return _within(platform_dialect, [head, *where, *_change(platform_dialect, group, lang), example], lang)


def _change(platform: Dialect, group: Group, lang: Lang) -> list[str]:
    """The plan with the edits of the first variants, a part each."""
    if group.plan is None:
        return []
    summary = semicolon(lang).join((told.steps(group, lang), told.sure(group, lang)))
    parts = [f"{platform.strong(say('change_this', lang))}{colon(lang)}{platform.shown(summary)}"]
    for variant in group.plan.variants[:VARIANTS]:
        lines = [*diff(variant.edits), *(f"+ {variable}" for variable in variant.env)][:LINES]
        if lines:
            parts.append(f"{platform.shown(told.of_variant(variant, lang))}\n{platform.block(lines, platform.fence)}")
    return parts


def _within(platform: Dialect, parts: list[str], lang: Lang) -> Message:
    """As many parts from the first on as the limit has room for; the last of them may be left out, never cut."""
    ending = platform.shown(word("chat_cut", lang))
    budget, fitting = platform.limit - platform.long(ending) - 2, list[str]()
    for part in parts:
        if platform.long(part) + 2 <= budget:
            fitting.append(part)
            budget -= platform.long(part) + 2
    cut = len(fitting) < len(parts)
    return Message("\n\n".join([*fitting, *([ending] if cut else [])]), cut=cut)
