"""Which entry of rules/models a model id or a path names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from diagnose import rule_files

if TYPE_CHECKING:
    from diagnose.catalogue.shape import Model

#: Endings that name how the same dimensions are stored, then how they were tuned; taken off one at a time.
#: (Patterns are texts here: compiled when they are first needed.)
_STORED = r"-(?:unsloth|bnb|bnb-?[48]bit|[48]bit|gptq|int[48]|gptq-int[48]|awq|gguf|fp8|bf16|hf|ms)$"
_TUNED = r"-(?:instruct|chat|it|base)$"
#: Words that people hang on the name of what they have trained, with a number of their own.
_OWN = (
    r"-(?:(?:full-?|q?lora-?)?(?:sft|dpo|kto|orpo|ppo|grpo|rm|pt|ft)|q?lora|full|merged?|(?:fine-?)?tuned?|finetune|local|new|final)"
    r"(?:-?v?\d+(?:-\d+)?)?$"
)
#: Folders that say nothing of the model in them: its name is one level up.
_NONDESCRIPT = (
    r"checkpoint-\d+(?:-merged)?|v\d+-\d{8}-\d{6}|global_step_?\d+|epoch[-_]?\d+|[0-9a-f]{40}"
    r"|snapshots|main|master|hf|huggingface|original|actor|full|q?lora|sft|dpo|merged|final"
)


@lru_cache(maxsize=1024)
def model(path: str) -> Model | None:
    """The catalogue's entry for a model id or a path that ends in one; None where it knows none.

    Organisation, case, the marks of quantised copies and -Instruct and its like do not matter; the size always does.
    """
    where = _index()
    spelled = list(_spellings(path))
    number = next((where["names"][name] for name in spelled if name in where["names"]), None)
    if number is None:
        number = next((where["plain"][name] for text in spelled for name in _as_people_write(text) if name in where["plain"]), None)
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


def _as_people_write(name: str) -> Iterator[str]:
    """The name in one way of writing (`llama3_70b`, `llama-3-70b`: llama3-70b), then without what its owner has hung on it."""
    plain = _plain(name)
    while True:
        yield from map(_plain, _bare(plain))
        shorter = re.sub(_OWN, "", plain)
        if shorter == plain:
            return
        plain = shorter


def _plain(name: str) -> str:
    """A name with one kind of separator, and none between the family and its first number."""
    return re.sub(r"^([a-z]+)-(?=\d)", r"\1", re.sub(r"[-_. ]+", "-", name.removeprefix("meta-")))


@cache
def _index() -> Any:
    return rule_files.kept("models.index", index, "models")


def index() -> dict[str, Any]:
    """`names`: every spelling that names exactly one entry -> its number in `entries`, each the JSON of the entry and of its
    family's traits (as texts, because one of them is wanted and the others need not be read). `plain`: the same for names in one way of
    writing. `vocabularies`: those of a family."""
    exact: dict[str, int] = {}
    loose: dict[str, int | None] = {}
    plain: dict[str, int | None] = {}
    entries: list[str] = []
    for table in rule_files.table("models").values():
        traits = {key: value for key, value in table.items() if key != "models"}
        for entry in table["models"]:
            number = len(entries)
            entries.append(json.dumps([entry, traits]))
            for alias in (entry["id"], *entry["aliases"]):
                exact.setdefault(alias.lower(), number)
                for name in _bare(alias.lower().rpartition("/")[2]):
                    loose[name] = number if loose.get(name, number) == number else None
                    plain[_plain(name)] = number if plain.get(_plain(name), number) == number else None
    return {
        "names": {name: number for name, number in (loose | exact).items() if number is not None},
        "plain": {name: number for name, number in plain.items() if number is not None},
        "entries": entries,
        "vocabularies": {
            family: [entry["vocab_size"] for entry in table["models"]] for family, table in rule_files.table("models").items()
        },
    }
