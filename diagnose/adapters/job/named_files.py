"""Files that a config or a command names: looked up beside it where that is allowed, linked where they were given, missed where not."""

from __future__ import annotations

import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from diagnose.adapters.documents.open_config import Opened, opened
from diagnose.adapters.documents.started_programs import Started
from diagnose.adapters.formats.config_value import MAX_BYTES
from diagnose.adapters.formats.settings import ConfigSource
from diagnose.adapters.job import config_bases, config_layers
from diagnose.adapters.translate.translation import Part, name_of
from diagnose.facts import Notice, Witness
from diagnose.phrases import phrase
from diagnose.record import field, record

if TYPE_CHECKING:
    from diagnose.adapters.shell.shell_text import Word

_CONFIG = (".yaml", ".yml", ".json", ".jsonc", ".toml")
_MOST = 8


@record(frozen=False)
class Missing:
    """What was named and not given: DeepSpeed files, the trainer's own file, the launcher's."""

    deepspeed: list[str] = field(default_factory=list)
    trainer: bool = False
    launcher: list[tuple[str, Witness]] = field(default_factory=list)
    unknown: set[str] = field(default_factory=set)
    notices: list[Notice] = field(default_factory=list)


def base(path: str) -> str:
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2]


def looked_up(documents: Sequence[Opened]) -> list[Opened]:
    """Files beside a given one that it names and that nobody gave: regular files of its folder only, a few, none of them large."""
    result: list[Opened] = []
    names = {base(document.source.called or document.source.name) for document in documents}
    pending = [*documents]
    for document in pending:  # what is found may name more in its turn
        folder = document.source.folder
        for path in _names(document) if folder is not None else ():
            if base(path) in names or len(result) >= _MOST or folder is None:
                continue
            data = _bytes(folder, path)
            if data is not None:
                names.add(base(path))
                result.append(opened(ConfigSource(str(Path(document.source.name).parent / path), data, folder=(folder / path).parent)))
                pending.append(result[-1])
    return result


def _names(document: Opened) -> list[str]:
    """Every config that a file names by a key or on a command line."""
    names = [leaf.text or "" for part in config_layers.of_file(document) for leaf in config_layers.named_files(part)]
    names += [
        name if name.endswith(_CONFIG) else f"{name}.yaml"
        for part in config_layers.of_file(document)
        for name, _ in config_bases.bases(part)
    ]
    for launch in document.launches:
        names += [word.text for word in launch.files if word.text.endswith(_CONFIG)]
        names += [
            flag.value
            for flag in (*launch.flags, *launch.launcher_flags)
            if (flag.value and flag.value.endswith(_CONFIG) and "config" in flag.name) or (flag.name == "deepspeed" and flag.value)
        ]
        names += [word.text for word in launch.env.values() if word.sure and word.text.endswith(_CONFIG)]
        names += [launch.program] if launch.program.endswith(".py") else []
    return [name for name in names if name]


def _bytes(folder: Path, path: str) -> bytes | None:
    """The file under the folder; None for a path that leads out of it, for anything but a regular file, or a large one."""
    try:
        target = (folder / path).resolve()
        if not target.is_relative_to(folder.resolve()):
            return None
        state = target.stat()
        if not stat.S_ISREG(state.st_mode) or state.st_size > MAX_BYTES:
            return None
        return target.read_bytes()
    except (OSError, ValueError, RuntimeError):
        return None


def missing(parts: Iterable[Part], programs: Iterable[Started], documents: Iterable[Opened]) -> Missing:
    """What is named and was not given, and whether the defaults can be trusted without it."""
    result = Missing()
    names = {base(document.source.called or document.source.name) for document in documents}
    stems = {file.rpartition(".")[0] for file in names}
    for part in parts:
        for leaf in config_layers.named_files(part):
            file = base(leaf.text or "")
            is_config_key = name_of(leaf.key) in part.table.config_keys  # it may name one that the framework ships, without an ending
            if file in part.table.stock and not file.endswith(_CONFIG):  # a word for a file that the framework ships
                _deepspeed(result, file, part)
                continue
            if file in names or (is_config_key and file in stems | _shipped(part, file)) or not (is_config_key or file.endswith(_CONFIG)):
                continue
            if is_config_key:
                result.trainer = True
            elif name_of(leaf.key) == "config_file":
                result.launcher.append((file, part.witness_of(leaf)))
            elif name_of(leaf.key) == "config":
                result.trainer = True
            else:
                _deepspeed(result, file, part)
            _say(result, leaf.text or "", part.witness_of(leaf))
        _bases(result, part, stems)
    for start in programs:
        files = [word.text for word in (*start.launch.files, *_variables(start)) if word.text.endswith(_CONFIG)]
        if start.table is not None and start.trains and any(base(file) not in names for file in files):
            result.trainer = result.trainer or not any(base(file) in names for file in files)
            if start.origin != "log":
                line, column = start.place(start.launch.program_at)
                _say(result, files[0], Witness(start.name, line, column))
        elif start.table is not None and _is_script(start) and not any(base(file) in names for file in files):
            result.trainer = True  # it takes a configuration whatever is said
    return result


def _shipped(part: Part, file: str) -> set[str]:
    """The file itself, where the table's defaults are what it says."""
    return {file} if config_bases.stem(file) in part.table.shipped else set()


def _bases(result: Missing, part: Part, stems: set[str]) -> None:
    """What a file builds on and nobody gave; the framework's own defaults are known."""
    for name, leaf in config_bases.bases(part):
        if config_bases.stem(name) not in stems | part.table.shipped:
            result.trainer = True
            _say(result, name, part.witness_of(leaf))


def _is_script(start: Started) -> bool:
    return start.table is not None and base(start.launch.program) in start.table.detect.get("scripts", {})


def _variables(start: Started) -> list[Word]:
    """What the variables that a framework's own script reads hold."""
    variables = {name for names in start.table.detect.get("scripts", {}).values() for name in names} if start.table else set()
    return [word for name, word in start.launch.env.items() if name in variables and word.sure]


def _deepspeed(result: Missing, file: str, part: Part) -> None:
    if file not in result.deepspeed:
        result.deepspeed.append(file)
    if file not in part.table.stock:
        result.unknown.add("zero.stage")


def _say(result: Missing, file: str, witness: Witness) -> None:
    message = phrase("adapters.not_given", file=file.replace("{", "(").replace("}", ")"))
    if all(notice.message != message for notice in result.notices):
        result.notices.append(Notice("info", "config.not_given", message, witness))
