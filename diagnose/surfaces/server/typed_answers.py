"""What servers answer beside the report, declared as the report is: an article of the manual.

Annotations are evaluated here (no `from __future__ import annotations`), see `diagnose.render.data.part`.
"""

from diagnose.render.data.part import Part


class Rule(Part):
    """One rule of the rule base: `kind` is cause or remedy, `word` which."""

    id: str
    kind: str
    word: str
    title: str


class Article(Part):
    """What the manual says of a rule, or of every rule of a cause or remedy."""

    name: str
    text: str
    rules: list[Rule]
