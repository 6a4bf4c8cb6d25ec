"""A key of a table and a document: whether it may stand there, which line of the table it is, how it is spelled there."""

from __future__ import annotations

from collections.abc import Sequence

from diagnose.adapters.formats.settings import Document, Entry
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.schema.spellings import Key, Table
from diagnose.adapters.schema.value_meaning import NOTHING, meaning
from diagnose.adapters.translate.translation import name_of
from diagnose.facts import Value
from diagnose.plan.edits.value_spelling import flagged
from diagnose.word_conditions import UNSET, hold


def holds(entry: Entry, others: Sequence[Entry]) -> bool:
    """Is it a block, whose text is that of its keys?"""
    return any(other.key.startswith(f"{entry.key}.") for other in others)


def stands(document: Document, key: Key) -> bool:
    """Do the keys that it asks for have one of their values in the document, or get it by the edit itself (`needs`)?"""
    brought = {need.key for need in key.needs}
    held = {name_of(entry.key): "true" if flagged(entry) else entry.written.strip("\"'") for entry in document.entries}
    wanted = {name: words for name, words in (key.where or {}).items() if name not in brought}
    return hold(wanted, lambda name: (held[name],) if name in held else UNSET) is True


def key_of(document: Document, tab: Table, knob: str, entry: Entry) -> Key:
    """The line of the table by which an entry turns a knob."""
    spelled_so = [key for key in tab.of(knob) if key.key == name_of(entry.key)]
    return next((key for key in spelled_so if stands(document, key)), spelled_so[0])


def means(key: Key, entry: Entry) -> Value | object:
    from diagnose.adapters.formats.config_value import Leaf

    shape = "flag" if flagged(entry) else "scalar"
    leaf = Leaf(entry.key, entry.written.strip("\"'"), entry.written, entry.start, entry.end, entry.line, entry.column, shape)  # type: ignore[arg-type]
    try:
        return meaning(key, leaf)
    except ValueError:
        return NOTHING


def same_word(value: Value, word: str) -> bool:
    if isinstance(value, bool):
        return word in (("enabled", "true") if value else ("disabled", "false"))
    return str(value) == word


#: Blocks that are one word of JSON on a command line: an option inside them does not exist there.
_ONE_WORD = ("fsdp_config", "accelerator_config", "gradient_checkpointing_kwargs")


def fits_form(document: Document, key: Key) -> bool:
    """Keyword arguments of a call exist only in scripts that make the call; bare keys of a script need a call to stand in."""
    call, dot, _ = key.key.partition(".")
    is_call = bool(dot) and (call in ("from_pretrained", "Trainer", "model_init_kwargs") or call[:1].isupper())
    if document.form != "python":
        return not is_call and not key.code and not (document.form in ("shell", "command") and dot and call in _ONE_WORD)
    if key.cli:
        return False
    if call == "model_init_kwargs" and any(entry.key.startswith("from_pretrained.") for entry in document.entries):
        return False  # the script loads the model itself
    stands_there = any(entry.key == call or entry.key.startswith(f"{call}.") for entry in document.entries)
    if is_call and call != "model_init_kwargs":
        return stands_there
    tab = framework_tables.table(document.framework)
    if dot and not tab.trainer and not tab.variables and not stands_there:
        return False  # a block of a launcher's file: the script's own call (Accelerator) does not take it
    return any(entry.key.endswith("()") for entry in document.entries) or tab.variables


def spelled_key(document: Document, key: str) -> str:
    """An option gets the dashes that its neighbours have; an override of what OmegaConf reads has none, whatever stands beside it."""
    tab = framework_tables.table(document.framework)
    if document.form not in ("shell", "command") or tab.variables or tab.interpolates:
        return key
    others = [entry.key for entry in document.entries]
    if others and not any(other.startswith("-") for other in others):
        return key
    options = [name.lstrip("-") for name in others if name.startswith("-")]
    joined, parted = sum("_" in name for name in options), sum("-" in name for name in options)
    dashes = parted > joined or (not joined and tab.serves)  # engines' own parsers take nothing else
    return f"--{key.replace('_', '-') if dashes else key}"
