"""Sentences for people that belong to no rule (rules/phrases/*.yaml), in English and Chinese."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Literal

from diagnose import rule_files
from diagnose.records import NamedTuple

Lang = Literal["en", "zh"]

#: {count:job|jobs}: the singular if the value is 1, else the plural.
NUMBERED = re.compile(r"\{(\w+):([^{}|]*)\|([^{}|]*)\}")

#: Chinese characters and punctuation have higher code points.
LATIN = "\u2fff"


class Text(NamedTuple):
    """One sentence in both languages."""

    en: str
    zh: str

    def to(self, lang: Lang) -> str:
        return self.zh if lang == "zh" else self.en

    def fill(self, **values: object) -> Text:
        """Fill the {placeholders}; a Text fills each language with its own, in Chinese without the spaces that surround Latin words.
        English templates choose between singular and plural by {count:job|jobs}."""
        english = {name: value.en if isinstance(value, Text) else value for name, value in values.items()}
        chinese = {name: value.zh if isinstance(value, Text) else value for name, value in values.items()}
        template = self.zh
        for name, value in chinese.items():
            template = close(template, f"{{{name}}}", str(value))
        return Text(numbered(self.en, english).format(**english), template.format(**chinese))


def numbered(template: str, values: Mapping[str, object]) -> str:
    """Resolve the {count:job|jobs} of an English template."""
    if "|" not in template:
        return template
    return NUMBERED.sub(lambda match: match[2] if str(values[match[1]]) == "1" else match[3], template)


def close(template: str, placeholder: str, value: str) -> str:
    """Remove the spaces of a Chinese template between Chinese text and a value that is Chinese as well."""
    if value and value[0] > LATIN and f" {placeholder}" in template:
        preceding = template.partition(f" {placeholder}")[0]
        if not preceding or preceding[-1] > LATIN:
            template = template.replace(f" {placeholder}", placeholder)
    if value and value[-1] > LATIN and f"{placeholder} " in template:
        following = template.partition(f"{placeholder} ")[2]
        if following and (following[0] > LATIN or following[0] == "{"):  # a placeholder is taken for Chinese
            template = template.replace(f"{placeholder} ", placeholder)
    return template


def same(text: str) -> Text:
    """A text that needs no translation: a name, a key, a formula."""
    return Text(text, text)


def phrase(key: str, **values: object) -> Text:
    """The sentence FILE.NAME of rules/phrases/FILE.yaml, filled. Raises KeyError for an unknown key."""
    text = _unfilled(key)
    return text.fill(**values) if values else text


@cache
def _unfilled(key: str) -> Text:
    file, _, name = key.partition(".")
    if not file.isidentifier():  # a text of a stranger is looked up too, and names no file
        raise KeyError(key)
    try:
        entry = rule_files.table(f"phrases/{file}")[name]  # file by file: an answer needs half of them
    except FileNotFoundError:
        raise KeyError(key) from None
    return Text(entry["en"], entry["zh"])
