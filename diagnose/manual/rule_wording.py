"""Conditions, values and names in the words of a reader."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from diagnose.decide.expression import Comparison, Figure, Name, Node, Product, Share, Sum, parse
from diagnose.decide.verdict_wording import PLACEHOLDER, fill
from diagnose.errors import UserError
from diagnose.facts import Value, declared, typed
from diagnose.manual.blocks import Block, Items, Paragraph, code, quoted
from diagnose.phrases import Lang, phrase

#: Values of a rule file that are words of the handbook and not of the fact.
_SPECIAL = ("enabled", "disabled", "unknown", "as_estimated", "at_most")


#: The colon behind which a meaning explains its words; one in brackets is part of it.
_EXPLAINS = re.compile(r": (?![^()]*\))")


def say(key: str, lang: Lang, /, **values: object) -> str:
    """A phrase of rules/phrases/manual.yaml. Chinese parts close up: the blank of a phrase is for a figure or a name in it."""
    return re.sub(r"(?<=[\u4e00-\u9fff]) (?=[\u4e00-\u9fff“])", "", phrase(f"manual.{key}", **values).to(lang))


def title(text: str) -> str:
    """A few words as a heading: a name (bf16, eval_accumulation_steps, torch.compile) keeps its spelling."""
    return text[:1].upper() + text[1:] if text.partition(" ")[0].isalpha() else text


def listed(words: Sequence[str], lang: Lang) -> str:
    return ("、" if lang == "zh" else ", ").join(words)


def known_as(room: str, key: str, otherwise: str, lang: Lang) -> str:
    """A phrase that may not exist: a rule pack brings words of its own."""
    try:
        return phrase(f"{room}.{key}").to(lang)
    except KeyError:
        return otherwise


def text_of(entry: str | Mapping[str, str], lang: Lang) -> str:
    """A text of a rule file, its {facts} shown by what they are called, with their names."""
    plain = entry if isinstance(entry, str) else entry[lang]
    parts = re.split(r"\{([\w.]+)\}", plain)
    return "".join(quoted(part) if index % 2 == 0 else placeholder(part, lang) for index, part in enumerate(parts))


def placeholder(name: str, lang: Lang) -> str:
    """*free on the card* (`log.free`); what only the planner fills in, by its name."""
    return code(name) if declared(name) is None else say("placeholder", lang, name=code(name), meaning=named(name, lang))


def called(name: str, lang: Lang) -> str:
    """What a fact or knob is called: its meaning as far as a colon, behind which its words are explained."""
    entry = declared(name)
    if entry is None:
        return code(name)
    return quoted(_EXPLAINS.split(entry.zh if lang == "zh" else entry.en)[0])


def named(name: str, lang: Lang) -> str:
    """What a fact or knob is called, set apart from the words round it."""
    return f"“{called(name, lang)}”" if lang == "zh" else f"*{called(name, lang)}*"


def value_words(text: str, lang: Lang) -> str:
    """A value of a rule file."""
    if text in _SPECIAL:
        return say(f"value_{text}", lang)
    if text.endswith("%"):
        return say("value_share", lang, share=text)
    return text if text.replace(".", "").isdigit() else code(text)


def fact_is(name: str, text: str, lang: Lang) -> str:
    """`log.free`: 1.20 GiB"""
    return say("pair", lang, left=code(name), right=fact_value(text, lang))


def fact_value(text: str, lang: Lang) -> str:
    """The value of a fact in an example."""
    return say(f"value_{text}", lang) if text in _SPECIAL else quoted(text)


def explained(name: str, said: str, lang: Lang) -> str:
    """`log.free` (free on the card): said"""
    return say("explained", lang, name=code(name), meaning=called(name, lang), said=said)


# -- comparisons


def condition(line: str, lang: Lang) -> str:
    """A line of a rule: as it is written, and in words."""
    return say("as_written", lang, line=code(line), words=in_words(parse(line), lang))


def conditions(lines: Sequence[str], intro: str, lang: Lang) -> list[Block]:
    return [Paragraph(say(intro, lang)), Items(tuple(condition(line, lang) for line in lines))] if lines else []


def in_words(comparison: Comparison, lang: Lang) -> str:
    """`log.requested > log.free` as "*the request that failed* is more than *free on the card*"."""
    left, right = comparison.left, comparison.right
    if isinstance(left, Name) and isinstance(right, Figure) and right.text in ("enabled", "disabled") and _is_switch(left.name):
        yes = (right.text == "enabled") is (comparison.operator == "==")
        return say("is_switch", lang, left=named(left.name, lang), right=say("value_yes" if yes else "value_no", lang))
    return say(f"is_{_SIGNS[comparison.operator]}", lang, left=node_words(left, lang), right=node_words(right, lang))


_SIGNS = {"==": "same", "!=": "other", ">": "more", ">=": "least", "<": "less", "<=": "most"}


def _is_switch(name: str) -> bool:
    entry = declared(name)
    return entry is not None and entry.kind == "switch"


def node_words(node: Node, lang: Lang) -> str:
    """An expression: facts by what they are called, figures as written."""
    if isinstance(node, Name):
        return named(node.name, lang)
    if isinstance(node, Figure):
        return code(node.text) if node.kind == "word" else node.text
    if isinstance(node, Share):
        whole = node_words(node.whole, lang)
        return say("share_of", lang, share=node.percent, whole=f"({whole})" if isinstance(node.whole, (Sum, Product)) else whole)
    if isinstance(node, Product):
        return " × ".join(node_words(part, lang) for part in node.parts)
    return node_words(node.first, lang) + "".join(f" {'+' if sign == '+' else '−'} {node_words(part, lang)}" for sign, part in node.rest)


# -- the figures of an example


def filled(sentence: Mapping[str, str], facts: Mapping[str, str], lang: Lang) -> str:
    """The sentence with the figures of an example; a fact that the example leaves open is shown by its name."""
    said = PLACEHOLDER.sub(lambda match: match[0] if _value(facts, match[1]) is not None else f"`{match[1]}`", sentence[lang])
    return quoted(fill(said, lambda name: _value(facts, name), lang))


def _value(facts: Mapping[str, str], name: str) -> Value:
    try:
        return typed(name, facts[name])
    except (KeyError, UserError):
        return None
