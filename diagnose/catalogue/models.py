"""Which entry of rules/models a model id or a path names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from diagnose import shipped

if TYPE_CHECKING:
    from diagnose.catalogue.shape import Model

#: Endings that name how the same dimensions are stored, then how they were tuned; taken off one at a time.
#: (Patterns are texts here: compiled when they are first needed.)
_STORED = r"-(?:unsloth|bnb|bnb-?[48]bit|[48]bit|gptq|int[48]|gptq-int[48]|awq|gguf|fp8|bf16|hf|ms)$"
_TUNED = r"-(?:instruct|chat|it|base)$"
#: Folders that say nothing of the model in them: its name is one level up.
_NONDESCRIPT = r"checkpoint-\d+|[0-9a-f]{40}|snapshots|main|master|hf|merged|final"


@lru_cache(maxsize=1024)
def model(path: str) -> Model | None:
    """The catalogue's entry for a model id or a path that ends in one; None where it knows none.

    Organisation, case, the marks of quantised copies and -Instruct and its like do not matter; the size always does.
    """
    where = _index()
    number = next((where["names"][name] for name in _spellings(path) if name in where["names"]), None)
    if number is None:
        return None
    from diagnose.catalogue.entries import shape_of

    return shape_of(*json.loads(where["entries"][number]))


def vocabularies(family: str) -> frozenset[int]:
    """The vocabulary sizes of all models of a family that we know."""
    return frozenset(_index()["vocabularies"].get(family, ()))


def _spellings(path: str) -> Iterator[str]:
    """What to look for, most literal first: the id as given, its last part, that part with endings taken off."""
    text = path.strip().strip("\"'").replace("\\", "/").rstrip("/").lower()
    yield text
    parts = [part for part in text.split("/") if part]
    hub = next((part for part in parts if part.startswith("models--")), None)
    if hub:  # the layout of the hub's cache: models--ORGANISATION--NAME/snapshots/REVISION
        yield from _bare(hub.split("--")[-1])
        return
    while parts and re.fullmatch(_NONDESCRIPT, parts[-1]):
        parts.pop()
    if parts:
        yield from _bare(parts[-1].replace("___", "."))  # a local copy by ModelScope writes a dot so


def _bare(name: str) -> Iterator[str]:
    yield name
    for ending in (_STORED, _TUNED):
        while (shorter := re.sub(ending, "", name)) != name:
            name = shorter
            yield name


@cache
def _index() -> Any:
    return shipped.kept("models.index", index, "models")


def index() -> dict[str, Any]:
    """`names`: every spelling that names exactly one entry -> its number in `entries`, each the JSON of the entry and of its
    family's traits (as texts, because one of them is wanted and the others need not be read). `vocabularies`: those of a family."""
    exact: dict[str, int] = {}
    loose: dict[str, int | None] = {}
    entries: list[str] = []
    for table in shipped.table("models").values():
        traits = {key: value for key, value in table.items() if key != "models"}
        for entry in table["models"]:
            number = len(entries)
            entries.append(json.dumps([entry, traits]))
            for alias in (entry["id"], *entry["aliases"]):
                exact.setdefault(alias.lower(), number)
                for name in _bare(alias.lower().rpartition("/")[2]):
                    loose[name] = number if loose.get(name, number) == number else None
    return {
        "names": {name: number for name, number in (loose | exact).items() if number is not None},
        "entries": entries,
        "vocabularies": {family: [entry["vocab_size"] for entry in table["models"]] for family, table in shipped.table("models").items()},
    }
