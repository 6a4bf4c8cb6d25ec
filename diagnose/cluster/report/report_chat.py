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
    way = dialect(platform)
    paid = told.hours(group.cost, lang) if group.cost.known else ""
    counted = semicolon(lang).join(filter(None, (told.count(group.jobs, lang), paid, told.seen(group.period, lang))))
    head = f"{way.strong(told.title(group, 'fingerprint', lang))}\n{way.shown(counted)}"
    where = [way.shown(where)] if (where := told.where(group, lang)) else []
    named, said = way.span(group.example.name), way.shown(group.example.headline.to(lang))
    example = f"{way.shown(say('example', lang))}{colon(lang)}{named}{colon(lang)}{said}"
    return _within(way, [head, *where, *_change(way, group, lang), example], lang)


def _change(way: Dialect, group: Group, lang: Lang) -> list[str]:
    """The plan with the edits of the first variants, a part each."""
    if group.plan is None:
        return []
    said = semicolon(lang).join((told.steps(group, lang), told.sure(group, lang)))
    parts = [f"{way.strong(say('change_this', lang))}{colon(lang)}{way.shown(said)}"]
    for variant in group.plan.variants[:VARIANTS]:
        lines = [*diff(variant.edits), *(f"+ {each}" for each in variant.env)][:LINES]
        if lines:
            parts.append(f"{way.shown(told.of_variant(variant, lang))}\n{way.block(lines, way.fence)}")
    return parts


def _within(way: Dialect, parts: list[str], lang: Lang) -> Message:
    """As many parts from the first on as the limit has room for; the last of them may be left out, never cut."""
    more = way.shown(word("chat_cut", lang))
    left, kept = way.limit - way.long(more) - 2, list[str]()
    for part in parts:
        if way.long(part) + 2 <= left:
            kept.append(part)
            left -= way.long(part) + 2
    cut = len(kept) < len(parts)
    return Message("\n\n".join([*kept, *([more] if cut else [])]), cut=cut)
