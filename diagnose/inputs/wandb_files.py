"""Files that wandb writes about a run: its settings (files/config.yaml) and the machine (files/wandb-metadata.json)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from diagnose.adapters.formats import json_file, yaml_file
from diagnose.adapters.formats.config_value import Leaf, Unreadable, split_lines
from diagnose.facts import Fact, Input, Witness
from diagnose.parse.model.reading import Dump
from diagnose.units import Size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from diagnose.adapters.formats.settings import ConfigSource

EXCERPT = 500
ARGUMENTS = 512  # of a command line


def is_settings_file(data: bytes) -> bool:
    """Whether a YAML file is wandb's config.yaml, which holds each setting as a key with a `value`."""
    return data.startswith((b"wandb_version:", b"_wandb:")) or b"\n_wandb:" in data or b"\nwandb_version:" in data


def split(sources: Iterable[ConfigSource]) -> tuple[list[ConfigSource], list[Input], list[Dump]]:
    """Split wandb's files from others: the others, the inputs that are wandb's, and the settings in them."""
    others: list[ConfigSource] = []
    inputs: list[Input] = []
    dumps: list[Dump] = []
    for source in sources:
        if not is_settings_file(source.data):
            others.append(source)
            continue
        description, dump = read_settings(source.name, source.data)
        inputs.append(description)
        dumps += [dump] if dump is not None else []
    return others, inputs, dumps


def read_settings(name: str, data: bytes) -> tuple[Input, Dump | None]:
    """Parse wandb's config.yaml: the settings in effect during a run. It is a record that no patch edits."""
    text = data.decode("utf-8", "replace")
    description = Input(name, "wandb", len(data), _count_lines(text), "utf-8")
    try:
        leaves = yaml_file.Reader(text).leaves()
    except (Unreadable, RecursionError):
        return description, None
    rows: list[str] = []
    witnesses: list[Witness] = []
    text_lines = split_lines(text, "yaml")
    nested = {leaf.key for leaf in leaves if leaf.shape == "map"}
    for leaf in leaves:
        key, dot, path = leaf.key.partition(".")
        if key in ("_wandb", "wandb_version") or not dot or path.partition(".")[0] != "value" or leaf.key in nested:
            continue
        row = _yaml_row(f"{key}{path.removeprefix('value')}", leaf)
        if row:
            rows.append(row)
            witnesses.append(Witness(name, leaf.line, leaf.column, text_lines[leaf.line - 1][:EXCERPT]))
    return description, Dump("yaml", "", "\n".join(rows), tuple(witnesses)) if rows else None


def _yaml_row(key: str, leaf: Leaf) -> str:
    """A setting as one line of YAML; empty if it has no value."""
    if leaf.shape == "list":
        return f"{json.dumps(key)}: {json.dumps(leaf.items)}"
    return "" if leaf.text is None else f"{json.dumps(key)}: {json.dumps(leaf.text)}"


def read_metadata(name: str, data: bytes) -> tuple[Input, list[Fact], Dump | None]:
    """Parse wandb-metadata.json: cards, host memory and program arguments. It does not record the number of processes."""
    text = data.decode("utf-8", "replace")
    description = Input(name, "wandb", len(data), _count_lines(text), "utf-8")
    try:
        values = json.loads(text)
        leaves = {leaf.key: leaf for leaf in json_file.Reader(text).leaves()}
    except (ValueError, RecursionError, Unreadable):
        return description, [], None
    if not isinstance(values, dict):
        return description, [], None
    text_lines = split_lines(text, "json")
    witnesses = {key: Witness(name, leaf.line, leaf.column, text_lines[leaf.line - 1][:EXCERPT], key) for key, leaf in leaves.items()}
    arguments = _arguments(name, values.get("args"), text, leaves["args"].start) if "args" in leaves else None
    return description, list(_facts(values, witnesses)), arguments


def _facts(values: Mapping[str, object], witnesses: Mapping[str, Witness]) -> Iterator[Fact]:
    cards = values.get("gpu_nvidia")
    gpu = values.get("gpu")
    first = cards[0] if isinstance(cards, list) and cards and isinstance(cards[0], dict) else {}
    name = gpu if isinstance(gpu, str) else first.get("name")
    witness = witnesses.get("gpu") or witnesses.get("gpu_nvidia.0.name")
    if isinstance(name, str) and witness is not None:
        yield Fact("hardware.gpu", name.strip("[]"), "log", witness)
    count = _number(values.get("gpu_count"))
    if count and "gpu_count" in witnesses:
        yield Fact("hardware.count", count, "log", witnesses["gpu_count"])
    program = values.get("program") or values.get("codePath")
    if isinstance(program, str) and (witness := witnesses.get("program") or witnesses.get("codePath")):
        yield Fact("train.entry", program, "log", witness)
    memory = values.get("memory")
    total = memory.get("total") if isinstance(memory, dict) else None
    size = _host_memory(total)
    if size is not None and "memory.total" in witnesses:
        yield Fact("host.ram", size, "log", witnesses["memory.total"])


def _host_memory(total: object) -> Size | None:
    """`memory.total`: since wandb 0.17 bytes as a text, before a decimal number of GiB."""
    number = _number(total)
    if isinstance(total, str) and number and number > 1 << 20:
        return Size.exactly(number)
    if isinstance(total, float) and 0 < total < 1 << 20:
        return Size.printed(repr(total), "GiB")
    return None


def _number(value: object) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 18:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _arguments(name: str, words: object, text: str, offset: int) -> Dump | None:
    """The program's command-line options as settings, each with its position."""
    if not isinstance(words, list) or len(words) > ARGUMENTS or not all(isinstance(word, str) for word in words):
        return None
    rows: list[str] = []
    witnesses: list[Witness] = []
    text_lines = text.split("\n")
    for index, word in enumerate(words):
        position = text.find(json.dumps(word), offset)
        offset = position if position >= 0 else offset
        key, equals, value = word.lstrip("-+").partition("=")
        if not key or not (word.startswith("-") or equals):
            continue
        if not equals:
            following = words[index + 1] if index + 1 < len(words) else "-"
            value = "true" if following.startswith("--") or (following.startswith("-") and not following[1:2].isdigit()) else following
        line = text.count("\n", 0, offset)
        rows.append(f"{json.dumps(key.replace('-', '_') if word.startswith('-') else key)}: {json.dumps(value)}")
        witnesses.append(Witness(name, line + 1, offset - text.rfind("\n", 0, offset), text_lines[line][:EXCERPT]))
    return Dump("yaml", "", "\n".join(rows), tuple(witnesses)) if rows else None


def merge_dumps(dumps: Iterable[Dump]) -> tuple[Dump, ...]:
    """Merge the records of one run; of a repeated setting the first record counts."""
    rows: dict[str, tuple[str, Witness]] = {}
    for dump in dumps:
        for row, witness in zip(dump.text.split("\n"), dump.lines, strict=True):
            rows.setdefault(row.partition('": ')[0], (row, witness))
    text = "\n".join(row for row, _ in rows.values())
    return (Dump("yaml", "", text, tuple(witness for _, witness in rows.values())),) if rows else ()


def _count_lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n") if text else 0)
