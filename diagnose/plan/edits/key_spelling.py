"""A key of a framework table in a document: whether it may stand there, which row of the table an entry is, how the key is spelled."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from diagnose.adapters.formats.config_value import Leaf
from diagnose.adapters.formats.settings import Document, Entry
from diagnose.adapters.schema import declared_keys, framework_tables
from diagnose.adapters.schema.table_types import Key, Table
from diagnose.adapters.schema.value_meaning import NOTHING, meaning
from diagnose.adapters.translate.translation import name_of
from diagnose.facts import Value
from diagnose.word_conditions import UNSET, hold


def is_usable(document: Document, key: Key) -> bool:
    """Whether the document, or the edit itself (`needs`), gives the keys that this one requires (`where`) one of the required values."""
    if not key.where:
        return True
    set_by_edit = {need.key for need in key.needs}
    words = document.index.words
    required = {name: words for name, words in key.where.items() if name not in set_by_edit}
    return hold(required, lambda name: (words[name],) if name in words else UNSET) is True


def is_declared(document: Document, key: str) -> bool:
    """Whether the script that the document starts declares the option, as far as it is at hand."""
    return document.takes is None or key in document.takes


#: Settings that make a file of Hydra a program's own configuration, which names every key that it has; others only override some.
_WHOLE = 80


def parses_options(document: Document) -> bool:
    """Whether the program of a command or a file surely takes the keys of its framework: a script of the user's own that was not given may
    have borrowed the few that it shows, and one of another project may have the name of the framework's script."""
    table = framework_tables.table(document.framework)
    is_script = document.entry.endswith(".py")
    if any(fnmatchcase(document.entry, pattern) for pattern in table.foreign):
        return document.takes is not None
    if document.form in ("yaml", "json"):
        return not (_is_foreign(document) or (table.interpolates and len(document.entries) >= _WHOLE))
    if table.interpolates and is_script and not any(word in document.entry for word in table.detect.get("commands", ())):
        return False  # it has a configuration of its own
    if document.form not in ("shell", "command") or document.takes is not None or not (table.borrowed or is_script):
        return True
    found = declared_keys.record(table.name)
    names = {name_of(entry.key) for entry in document.entries}
    own = names & (found.names.keys() if found is not None else table.known)
    if is_script and len(names - own) > len(own):
        return False
    return not table.borrowed or found is None or any(name in found.names for name in names - table.borrowed)


def has_foreign_options(document: Document) -> bool:
    """Whether a command has options, or changes keys, that no recorded release of its framework declares: a fork's or an older release's
    program."""
    found, table = declared_keys.record(document.framework), framework_tables.table(document.framework)
    if found is None or document.form not in ("shell", "command") or document.takes is not None:
        return False
    if table.interpolates:
        names = {name_of(entry.key) for entry in document.entries if not entry.key.startswith(("-", "+", "~", "hydra."))}
        has_own_file = any(
            name_of(entry.key).removeprefix("--") in ("config-name", "config_name", "config_path", "config-path")
            for entry in document.entries
        )
        return (
            not has_own_file and bool(found.names) and any(name not in table.known for name in names if name.isidentifier() or "." in name)
        )
    return not table.borrowed and any(
        name_of(entry.key) not in found.names and "." not in entry.key for entry in document.entries if entry.key.startswith("-")
    )


def _is_foreign(document: Document) -> bool:
    """Whether the framework lacks more than a quarter of a file's keys, so that another program reads them."""
    known = framework_tables.known(document.framework)
    names = {name_of(entry.key) for entry in document.entries if entry.key not in document.index.blocks}
    lacking = {name for name in names if name not in known and name.partition(".")[0] not in known}
    return framework_tables.table(document.framework).trainer and 4 * len(lacking) > len(names) > len(lacking)


def names_unseen_file(document: Document, documents: Sequence[Document]) -> bool:
    """Whether the options of a launcher stand beside a file of its settings that was not given, which may exclude new ones: FSDP's
    options beside a file that chooses DeepSpeed."""
    table = framework_tables.table(document.framework)
    if not table.launches or not any(name_of(entry.key) == "config_file" for entry in document.entries):
        return False
    return not any(other.framework == table.launches for other in documents)


def table_key(document: Document, table: Table, knob: str, entry: Entry) -> Key:
    """The row of the table by which the entry sets the knob."""
    candidates = table.rows(knob, name_of(entry.key))
    return next((key for key in candidates if is_usable(document, key)), candidates[0])


def current_value(key: Key, entry: Entry) -> Value | object:
    """The knob's value that the entry means; NOTHING where it means none."""
    shape = "flag" if entry.is_bare_flag else "scalar"
    leaf = Leaf(entry.key, entry.written.strip("\"'"), entry.written, entry.start, entry.end, entry.line, entry.column, shape)  # type: ignore[arg-type]
    try:
        return meaning(key, leaf)
    except ValueError:
        return NOTHING


def same_word(value: Value, word: str) -> bool:
    """Whether a knob's value is the one that a table writes as `word`."""
    if isinstance(value, bool):
        return word in (("enabled", "true") if value else ("disabled", "false"))
    return str(value) == word


def fits_form(document: Document, key: Key) -> bool:
    """Whether the key exists in documents of this form: a keyword argument needs a script with its call, a bare key any call."""
    call, is_dotted, _ = key.key.partition(".")
    is_call = bool(is_dotted) and (call in ("from_pretrained", "Trainer", "model_init_kwargs") or call[:1].isupper())
    table = framework_tables.table(document.framework)
    if document.form != "python":
        is_json = bool(is_dotted) and call in table.json_blocks
        is_own = table.overrides and not is_dotted and key.key != table.file_key and not table.switch(key.key)  # a name in a module
        return not is_call and not key.code and not (document.form in ("shell", "command") and (is_json or is_own))
    if key.cli:
        return False
    if call == "model_init_kwargs" and any(entry.key.startswith("from_pretrained.") for entry in document.entries):
        return False  # the script loads the model itself, so the trainer does not
    is_present = any(entry.key == call or entry.key.startswith(f"{call}.") for entry in document.entries)
    if is_call and call != "model_init_kwargs":
        return is_present
    if is_dotted and table.detect.get("modules") and key.key.rpartition(".")[0] in document.index.blocks:
        return True
    if is_dotted and not table.trainer and not table.variables and not is_present:
        return False  # a block of a launcher's file, which the script's own call does not take
    return any(entry.key.endswith("()") for entry in document.entries) or table.variables


def spelled_key(document: Document, key: str) -> str:
    """The key as the document spells options: with leading dashes and inner dashes as its other options; Hydra overrides have none."""
    table = framework_tables.table(document.framework)
    if document.form not in ("shell", "command") or table.variables or table.interpolates or (table.overrides and "." in key):
        return key
    keys = [entry.key for entry in document.entries]
    are_names = not table.serves and not table.overrides  # of such programs these are arguments without an option
    if keys and are_names and not any(option.startswith("-") for option in keys):
        return key
    wants_dashes = declared_keys.wants_dashes(document.framework, key)
    if wants_dashes is not None:
        return f"--{key.replace('_', '-') if wants_dashes else key}"
    options = [name.lstrip("-") for name in keys if name.startswith("-")]
    underscored, dashed = sum("_" in name for name in options), sum("-" in name for name in options)
    is_dashed = key.replace("_", "-") in table.known  # its program prints that spelling itself
    uses_dashes = dashed > underscored or (table.serves and (is_dashed or not underscored))  # inference engines take only dashes
    return f"--{key.replace('_', '-') if uses_dashes else key}"


def written_addition(document: Document, key: str, text: str) -> str:
    """How a key is added to a configuration in Python, or behind the option by which a command overrides one; empty for any other."""
    table = framework_tables.table(document.framework)
    if "." not in key or not table.detect.get("modules"):
        return ""
    return f"{key} = {text}" if document.form == "python" else f"{table.overrides} {key}={text}" if table.overrides else ""
