"""Conditions, values and fact names of rules as text for readers of the manual."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from diagnose.decide.expression import Choices, Comparison, Figure, Name, Node, Product, Share, Sum, parse
from diagnose.decide.verdict_wording import PLACEHOLDER, fill
from diagnose.errors import UserError
from diagnose.facts import Value, declared, typed
from diagnose.manual.blocks import Block, Items, Paragraph, code, quoted
from diagnose.phrases import Lang, phrase

#: Values of a rule file that are keywords, not values of the fact.
_KEYWORDS = ("enabled", "disabled", "unknown", "as_estimated", "at_most")


#: The colon after which a meaning explains its words; a colon in brackets does not count.
_EXPLANATION = re.compile(r": (?![^()]*\))")


def tr(key: str, lang: Lang, /, **values: object) -> str:
    """A phrase of rules/phrases/manual.yaml; in Chinese without the spaces between Chinese characters that fillings leave."""
    return re.sub(r"(?<=[\u4e00-\u9fff]) (?=[\u4e00-\u9fff“])", "", phrase(f"manual.{key}", **values).to(lang))


def capitalize(text: str) -> str:
    """Capitalize a heading, unless it begins with an identifier (bf16, eval_accumulation_steps, torch.compile)."""
    return text[:1].upper() + text[1:] if text.partition(" ")[0].isalpha() else text


def join_words(words: Sequence[str], lang: Lang) -> str:
    return ("、" if lang == "zh" else ", ").join(words)


def phrase_or(room: str, key: str, default: str, lang: Lang) -> str:
    """A phrase, or the default where there is none: rule packs bring words of their own."""
    try:
        return phrase(f"{room}.{key}").to(lang)
    except KeyError:
        return default


def rule_text(entry: str | Mapping[str, str], lang: Lang) -> str:
    """A text of a rule file with each {fact} replaced by its title and name."""
    plain = entry if isinstance(entry, str) else entry[lang]
    parts = re.split(r"\{([\w.]+)\}", plain)
    return "".join(quoted(part) if index % 2 == 0 else placeholder_text(part, lang) for index, part in enumerate(parts))


def placeholder_text(name: str, lang: Lang) -> str:
    """*free on the card* (`log.free`); just the name of what only the planner fills in."""
    return code(name) if declared(name) is None else tr("placeholder", lang, name=code(name), meaning=emphasized_title(name, lang))


def fact_title(name: str, lang: Lang) -> str:
    """The title of a fact or knob: its meaning up to the colon after which its words are explained."""
    entry = declared(name)
    if entry is None:
        return code(name)
    return quoted(_EXPLANATION.split(entry.zh if lang == "zh" else entry.en)[0])


def emphasized_title(name: str, lang: Lang) -> str:
    """The title of a fact or knob, emphasized."""
    return f"“{fact_title(name, lang)}”" if lang == "zh" else f"*{fact_title(name, lang)}*"


def value_text(text: str, lang: Lang) -> str:
    """A value of a rule file as text."""
    if text in _KEYWORDS:
        return tr(f"value_{text}", lang)
    if text.endswith("%"):
        return tr("value_share", lang, share=text)
    return text if text.replace(".", "").isdigit() else code(text)


def fact_line(name: str, text: str, lang: Lang) -> str:
    """`log.free`: 1.20 GiB"""
    return tr("pair", lang, left=code(name), right=example_value(text, lang))


def example_value(text: str, lang: Lang) -> str:
    """The value of a fact in an example."""
    return tr(f"value_{text}", lang) if text in _KEYWORDS else quoted(text)


def explained_value(name: str, value: str, lang: Lang) -> str:
    """`log.free` (free on the card): value"""
    return tr("explained", lang, name=code(name), meaning=fact_title(name, lang), said=value)


# -- comparisons


def condition(line: str, lang: Lang) -> str:
    """A condition of a rule as code and in words."""
    return tr("as_written", lang, line=code(line), words=comparison_text(parse(line), lang))


def conditions(lines: Sequence[str], intro: str, lang: Lang) -> list[Block]:
    return [Paragraph(tr(intro, lang)), Items(tuple(condition(line, lang) for line in lines))] if lines else []


def comparison_text(comparison: Comparison, lang: Lang) -> str:
    """`log.requested > log.free` as "*the request that failed* is more than *free on the card*"."""
    left, right = comparison.left, comparison.right
    if isinstance(left, Name) and isinstance(right, Figure) and right.text in ("enabled", "disabled") and _is_switch(left.name):
        yes = (right.text == "enabled") is (comparison.operator == "==")
        return tr("is_switch", lang, left=emphasized_title(left.name, lang), right=tr("value_yes" if yes else "value_no", lang))
    return tr(f"is_{_SIGNS[comparison.operator]}", lang, left=expression_text(left, lang), right=expression_text(right, lang))


_SIGNS = {"==": "same", "!=": "other", ">": "more", ">=": "least", "<": "less", "<=": "most", "in": "one_of"}


def _is_switch(name: str) -> bool:
    entry = declared(name)
    return entry is not None and entry.kind == "switch"


def expression_text(node: Node, lang: Lang) -> str:
    """An expression in words: facts by title, numbers as written."""
    if isinstance(node, Name):
        return emphasized_title(node.name, lang)
    if isinstance(node, Figure):
        return code(node.text) if node.kind == "word" else node.text
    if isinstance(node, Share):
        whole = expression_text(node.whole, lang)
        return tr("share_of", lang, share=node.percent, whole=f"({whole})" if isinstance(node.whole, (Sum, Product)) else whole)
    if isinstance(node, Choices):
        *others, last = (expression_text(part, lang) for part in node.parts)
        return tr("either", lang, others=join_words(others, lang), last=last)
    if isinstance(node, Product):
        return " × ".join(expression_text(part, lang) for part in node.parts)
    return expression_text(node.first, lang) + "".join(
        f" {'+' if sign == '+' else '−'} {expression_text(part, lang)}" for sign, part in node.rest
    )


# -- the figures of an example


def fill_example(sentence: Mapping[str, str], facts: Mapping[str, str], lang: Lang) -> str:
    """A sentence filled with the facts of an example; facts that the example leaves out are shown by name."""
    template = PLACEHOLDER.sub(lambda match: match[0] if _example_value(facts, match[1]) is not None else f"`{match[1]}`", sentence[lang])
    return quoted(fill(template, lambda name: _example_value(facts, name), lang))


def _example_value(facts: Mapping[str, str], name: str) -> Value:
    try:
        return typed(name, facts[name])
    except (KeyError, UserError):
        return None
