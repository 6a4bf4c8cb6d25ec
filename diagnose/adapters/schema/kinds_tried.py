"""What was tried to recognise a config by its keys, and what each kind missed."""

from __future__ import annotations

from collections.abc import Container, Sequence

from diagnose.adapters.formats.config_value import Leaf
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.schema.config_kinds import rivals
from diagnose.phrases import Text, phrase, same

#: Of so many kinds the missing keys are told; so many others are only named, and the rest counted.
NEAREST, NAMED = 3, 12


def sentence(leaves: Sequence[Leaf]) -> Text:
    """Who would take these keys alike; where nobody would, what was tried."""
    kinds = rivals(leaves)
    if kinds:
        return phrase("adapters.several_kinds", kinds=", ".join(kinds))
    return phrase("adapters.unknown_kind", tried=_kinds({leaf.key for leaf in leaves}))


def _kinds(keys: Container[str]) -> Text:
    """Every kind that keys can tell, those that miss least first and with the keys that their nearest sign lacks."""
    nearest = [
        (name, _nearest(signs, keys)) for name in framework_tables.names() if (signs := framework_tables.signs(name).get("keys", ()))
    ]
    ranked = sorted(nearest, key=lambda pair: (not pair[1][0], len(pair[1][1])))
    texts = [phrase("adapters.tried_kind", kind=name, missed=", ".join(missed)) for name, (_, missed) in ranked[:NEAREST]]
    texts += [same(name) for name, _ in ranked[NEAREST : NEAREST + NAMED]]
    if (remaining := len(ranked) - len(texts)) > 0:
        texts.append(phrase("adapters.more_kinds", count=str(remaining)))
    return Text(", ".join(text.en for text in texts), "、".join(text.zh for text in texts))


def _nearest(signs: Sequence[Sequence[str]], keys: Container[str]) -> tuple[int, list[str]]:
    """How many keys of a sign are there, and those that are not: of the sign that lacks fewest, the one that has most."""
    split = [(sum(key in keys for key in sign), [key for key in sign if key not in keys]) for sign in signs]
    return min(split, key=lambda pair: (not pair[0], len(pair[1])))
