"""A variable for a container of a Kubernetes manifest that has none yet: a block `env` of its own, in the manner of its neighbours."""

from __future__ import annotations

import re

from diagnose.adapters.formats.config_value import Leaf, Unreadable
from diagnose.adapters.formats.settings import Document
from diagnose.plan.patch.patch_places import line_end, newline
from diagnose.plan.patch.splice import Splice

_CONTAINER = re.compile(r"(?:^|.*\.)containers\.\d+$")


def first_variable(document: Document, name: str, value: str) -> Splice | None:
    """After a line of the container whose command the document is; None where that is no manifest, or has variables already."""
    text = document.text
    start = next((entry.start for entry in document.entries), None)
    if start is None or "containers" not in text:
        return None
    from diagnose.adapters.formats import yaml_file

    try:
        leaves = list(yaml_file.Reader(text).leaves())
    except (Unreadable, RecursionError):
        return None
    around = next((leaf for leaf in leaves if leaf.shape == "map" and _CONTAINER.match(leaf.key) and leaf.start <= start < leaf.end), None)
    if around is None or any(leaf.key in (f"{around.key}.env", f"{around.key}.envFrom") for leaf in leaves):
        return None
    beside = next((leaf for leaf in leaves if leaf.key.rpartition(".")[0] == around.key and _ends_its_line(text, leaf)), None)
    if beside is None:
        return None
    lead = " " * (beside.column - 1)
    said = [f"{lead}env:", f"{lead}  - name: {name}", f'{lead}    value: "{value}"']
    end = line_end(text, beside.end)
    return Splice(end, end, "".join(newline(text) + line for line in said))


def _ends_its_line(text: str, leaf: Leaf) -> bool:
    """A key with its value alone on a line of a block, so that another key may follow on the next."""
    line = text.rfind("\n", 0, leaf.end) + 1
    rest = text[leaf.end : line_end(text, leaf.end)]
    return leaf.shape == "scalar" and not rest.partition("#")[0].strip() and re.match(r" *(?:- +)?[\w.-]+:[ \t]", text[line:]) is not None
