"""The sentences of a verdict: its figures filled in, what it presumes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from diagnose.decide.comparison import Lookup
from diagnose.facts import Value, declared
from diagnose.phrases import Lang, Text, close, phrase
from diagnose.units import Size, size_text

if TYPE_CHECKING:
    from diagnose.decide.rule_loader import Rule

#: A fact in braces. str.format would read the dots as attributes.
PLACEHOLDER = re.compile(r"\{([a-z]\w*(?:\.[a-z]\w*)+)\}")


def assumption(rule: Rule, lookup: Lookup, presumed: Mapping[str, Value]) -> Text | None:
    """What a verdict presumes, as its rule says it or in general words; None where it presumes nothing, or nothing worth saying."""
    if not presumed:
        return None
    if not rule.assuming:
        return _assumptions(presumed)
    said = [filled(text, lookup) for fact, text in rule.assuming.items() if not fact or fact in presumed]
    english, chinese = phrase("judge.and")
    return Text(english.join(text.en for text in said), chinese.join(text.zh for text in said)) if said else None


def _assumptions(presumed: Mapping[str, Value]) -> Text:
    clauses = []
    for name, value in presumed.items():
        entry = declared(name)
        name_text = Text(entry.en, entry.zh) if entry else Text(name, name)
        clauses.append(phrase("judge.assumption", what=name_text, value=Text(shown(value, "en"), shown(value, "zh"))))
    english, chinese = phrase("judge.comma")
    return Text(english.join(clause.en for clause in clauses), chinese.join(clause.zh for clause in clauses))


def filled(text: Text, lookup: Lookup) -> Text:
    """Both languages of a sentence with every {fact} as a person writes it."""
    return Text(fill(text.en, lookup, "en"), fill(text.zh, lookup, "zh"))


def fill(sentence: str, lookup: Lookup, lang: Lang) -> str:
    """The sentence with every {fact} as a person writes it."""
    if lang == "zh":
        for name in PLACEHOLDER.findall(sentence):
            sentence = close(sentence, f"{{{name}}}", _worded(name, lookup(name), lang))
    return PLACEHOLDER.sub(lambda match: _worded(match[1], lookup(match[1]), lang), sentence)


def _worded(name: str, value: Value, lang: Lang) -> str:
    """A phase and a setting as people call them, a card without a name as the card, anything else as it is."""
    if name == "log.phase" and value is not None:
        return phrase(f"phase.{value}").to(lang)
    if name == "hardware.gpu" and value is None:
        return phrase("judge.card").to(lang)
    named = declared(value) if isinstance(value, str) and "." in value else None
    if named is not None:  # a fact whose value is the name of a setting
        return Text(named.en, named.zh).to(lang)
    return shown(value, lang)


def shown(value: Value, lang: Lang) -> str:
    """A fact's value in a sentence: sizes as printed, switches as words, large counts grouped."""
    if value is None:
        return phrase("judge.unknown").to(lang)
    if isinstance(value, bool):
        value = "enabled" if value else "disabled"
    if value in ("enabled", "disabled", "unset"):
        return phrase(f"judge.{value}").to(lang)
    if isinstance(value, Size):
        return size_text(value)
    if isinstance(value, Text):
        return value.to(lang)
    return f"{value:,}" if isinstance(value, int) else str(value)
