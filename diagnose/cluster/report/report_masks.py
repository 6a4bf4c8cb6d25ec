"""Masks people and machines in the report on many jobs: secrets by rules/redactions.yaml, users and hosts by name, and the common
folders."""

from __future__ import annotations

import re
from dataclasses import replace

from diagnose.cluster.report.summary_types import Store, Summary
from diagnose.render.parts.redaction import Masker
from diagnose.render.parts.strings import map_texts

#: A name as it stands in a path, an address or a sentence; shorter ones, and those that every machine has, say nothing.
TOKEN = re.compile(r"[\w-]+(?:\.[\w-]+)*")
SHORTEST, COMMON = 3, frozenset({"root", "localhost", "unknown", "none", "user"})

#: Users and hosts that are looked for.
MAX_NAMES = 100_000

#: Texts in the memo: a report repeats most texts, but a year of jobs has too many to keep all.
CACHE_SIZE = 50_000


class Masks(Masker):
    """A masker that knows a cluster's users and hosts. Look-up time does not depend on their number."""

    def __init__(self, users: list[str], hosts: list[str], root: str = "") -> None:
        super().__init__()
        self._root = root if len(root) > 1 else ""
        self._kinds = {name: "host" for name in hosts if _is_distinctive(name)} | {name: "user" for name in users if _is_distinctive(name)}

    def __call__(self, text: str) -> str:
        if len(self._cache) > CACHE_SIZE:
            self._cache.clear()
        return super().__call__(text)

    def _without_secrets(self, text: str) -> str:
        if self._root and self._root in text:
            text = text.replace(self._root, f"{self._placeholder('path', self._root)}/")
        if self._kinds:
            text = TOKEN.sub(self._named, text)
        return super()._without_secrets(text)

    def _named(self, match: re.Match[str]) -> str:
        """The name in a text that is known, whole or by its first part: gpu17 in gpu17.cluster."""
        word = match[0]
        if word in self._kinds:
            return self._placeholder(self._kinds[word], word)
        first, dot, domain = word.partition(".")
        if dot and first in self._kinds and not domain.isdigit():
            return self._placeholder(self._kinds[first], first) + dot + domain
        return word


def _is_distinctive(name: str) -> bool:
    return len(name) >= SHORTEST and name.casefold() not in COMMON


def masks(store: Store, root: str) -> Masks:
    """The masker for a database."""
    users = store.query("""select distinct "user" from jobs where coalesce("user", '') <> '' order by 1 limit $1""", [MAX_NAMES])
    hosts = store.query("select distinct host from events where coalesce(host, '') <> '' order by 1 limit $1", [MAX_NAMES])
    return Masks([name for (name,) in users], [name for (name,) in hosts], root)


def summary(original: Summary, mask: Masks) -> Summary:
    """The summary with all input texts masked; texts of rules and fingerprint keys stay."""
    masked: Summary = map_texts(replace(original, by="", tool=""), mask)
    return replace(masked, by=original.by, tool=original.tool)
