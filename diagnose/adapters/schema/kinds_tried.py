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
    alike = rivals(leaves)
    if alike:
        return phrase("adapters.several_kinds", kinds=", ".join(alike))
    return phrase("adapters.unknown_kind", tried=_kinds({leaf.key for leaf in leaves}))


def _kinds(there: Container[str]) -> Text:
    """Every kind that keys can tell, those that miss least first and with the keys that their nearest sign lacks."""
    nearest = [
        (name, _nearest(signs, there)) for name in framework_tables.names() if (signs := framework_tables.signs(name).get("keys", ()))
    ]
    told = sorted(nearest, key=lambda pair: (not pair[1][0], len(pair[1][1])))
    said = [phrase("adapters.tried_kind", kind=name, missed=", ".join(missed)) for name, (_, missed) in told[:NEAREST]]
    said += [same(name) for name, _ in told[NEAREST : NEAREST + NAMED]]
    if (left := len(told) - len(said)) > 0:
        said.append(phrase("adapters.more_kinds", count=str(left)))
    return Text(", ".join(one.en for one in said), "、".join(one.zh for one in said))


def _nearest(signs: Sequence[Sequence[str]], there: Container[str]) -> tuple[int, list[str]]:
    """How many keys of a sign are there, and those that are not: of the sign that lacks fewest, the one that has most."""
    split = [(sum(key in there for key in sign), [key for key in sign if key not in there]) for sign in signs]
    return min(split, key=lambda one: (not one[0], len(one[1])))
