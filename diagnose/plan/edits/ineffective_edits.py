"""Edits that a framework would not heed: keys that do nothing beside what else its configuration says."""

from __future__ import annotations

import re
from collections.abc import Sequence

from diagnose.adapters.formats.config_value import Leaf
from diagnose.adapters.formats.settings import Document
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.schema.ignored_keys import find_ignored_keys
from diagnose.adapters.translate.translation import name_of
from diagnose.facts import FactBook
from diagnose.phrases import Text
from diagnose.plan.edits.value_spelling import flagged, now
from diagnose.plan.rules.remedy import Edit


def why_in_vain(documents: Sequence[Document], book: FactBook, edits: Sequence[Edit]) -> Text | None:
    """The framework's reason why one of the edited keys would do nothing there; None where all of them count. `documents`: those that
    win first."""
    for framework in dict.fromkeys(document.framework for document in documents):
        tab = framework_tables.table(framework)
        held = [document for document in documents if document.framework == framework]
        mine = [edit for edit in edits if any(edit.target == document.name for document in held)]
        if not tab.ignored or not mine:
            continue
        leaves = {name_of(entry.key): _leaf(entry.key, now(entry), flagged(entry)) for one in reversed(held) for entry in one.entries}
        for edit in mine:
            leaves.pop(name_of(edit.key), None)
            if edit.to is not None:
                key = edit.renamed or edit.key
                leaves[name_of(key)] = _leaf(key, edit.to, False)
        span = framework_tables.possible_releases(tab, book.version(tab.version), [name for name in leaves if name[:1] != "+"])
        written = {name_of(edit.renamed or edit.key) for edit in mine if edit.to is not None}
        for one in find_ignored_keys(tab, {tab.version: span}, leaves, leaves):
            if name_of(one.leaf.key) in written and one.rule.get("knobs") is None:
                return Text(one.rule["en"], one.rule["zh"])
    return None


def _leaf(key: str, written: str, flag: bool) -> Leaf:
    items = tuple(re.findall(r"[^\s,\[\]'\"-][^\s,\[\]'\"]*", written)) if written[:1] in ("[", "-") else ()
    return Leaf(key, written.strip("\"'"), written, 0, 0, 1, 1, "flag" if flag else "list" if items else "scalar", items)
