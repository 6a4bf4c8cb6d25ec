"""Every sentence a person reads that belongs to no rule: rules/phrases/*.yaml, in English and Chinese."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Literal

from diagnose import rule_files
from diagnose.record import NamedTuple

Lang = Literal["en", "zh"]

#: {count:job|jobs}: the first word where the value is 1, else the second.
NUMBERED = re.compile(r"\{(\w+):([^{}|]*)\|([^{}|]*)\}")

#: Chinese characters and punctuation come after this one.
LATIN = "\u2fff"


class Text(NamedTuple):
    """One sentence in both languages."""

    en: str
    zh: str

    def to(self, lang: Lang) -> str:
        return self.zh if lang == "zh" else self.en

    def fill(self, **values: object) -> Text:
        """The sentence with its {placeholders} filled; a value that is a Text is filled in its own language, in Chinese without
        the space that Latin letters would want beside it. English has {count:job|jobs} for one and for more."""
        english = {name: value.en if isinstance(value, Text) else value for name, value in values.items()}
        chinese = {name: value.zh if isinstance(value, Text) else value for name, value in values.items()}
        template = self.zh
        for name, value in chinese.items():
            template = close(template, f"{{{name}}}", str(value))
        return Text(numbered(self.en, english).format(**english), template.format(**chinese))


def numbered(template: str, values: Mapping[str, object]) -> str:
    """An English template with the words for one or for more, by the values that they stand for."""
    if "|" not in template:
        return template
    return NUMBERED.sub(lambda found: found[2] if str(values[found[1]]) == "1" else found[3], template)


def close(template: str, placeholder: str, value: str) -> str:
    """A Chinese template without the spaces between its own Chinese and a value that is Chinese there too."""
    if value and value[0] > LATIN and f" {placeholder}" in template:
        before = template.partition(f" {placeholder}")[0]
        if not before or before[-1] > LATIN:
            template = template.replace(f" {placeholder}", placeholder)
    if value and value[-1] > LATIN and f"{placeholder} " in template:
        after = template.partition(f"{placeholder} ")[2]
        if after and (after[0] > LATIN or after[0] == "{"):  # what follows a Chinese name is Chinese, or begins a clause
            template = template.replace(f"{placeholder} ", placeholder)
    return template


def same(text: str) -> Text:
    """A text that needs no translation: a name, a key, a formula."""
    return Text(text, text)


def phrase(key: str, **values: object) -> Text:
    """The sentence ROOM.NAME of rules/phrases/ROOM.yaml, filled. Raises KeyError for a key that does not exist."""
    text = _unfilled(key)
    return text.fill(**values) if values else text


@cache
def _unfilled(key: str) -> Text:
    room, _, name = key.partition(".")
    entry = rule_files.table("phrases")[room][name]
    return Text(entry["en"], entry["zh"])
