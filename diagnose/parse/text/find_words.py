"""Words of rules in a text, where letters of a longer word are none."""

from __future__ import annotations


def find_word(text: bytes, word: bytes) -> int:
    """Where a word stands in a text, -1 for nowhere: letters of a longer word in capitals are none (PPO in UNSUPPORTED)."""
    at = text.find(word)
    while at > 0 and word.isalpha() and word.isupper() and text[at - 1 : at].isupper():
        at = text.find(word, at + 1)
    return at
