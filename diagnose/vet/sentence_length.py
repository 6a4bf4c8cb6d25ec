"""The length of sentences that people read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from diagnose import rule_files

SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


def long_sentences(text: str) -> Iterator[tuple[str, int, int]]:
    """The sentences that have more words than rules/wording.yaml allows, with their number and that; a placeholder is one word."""
    most = int(rule_files.table("wording")["words"])
    for sentence in SENTENCE_END.split(text):
        if (count := len(sentence.split())) > most:
            yield sentence, count, most
