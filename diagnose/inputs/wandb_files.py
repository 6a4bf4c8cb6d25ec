"""What wandb wrote down about a run: its settings (files/config.yaml) and the machine (files/wandb-metadata.json)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from diagnose.adapters.formats import json_file, yaml_file
from diagnose.adapters.formats.config_value import Leaf, Unreadable
from diagnose.facts import Fact, Input, Witness
from diagnose.parse.model.reading import Dump
from diagnose.units import Size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from diagnose.adapters.formats.settings import ConfigSource

SHOWN = 500
WORDS = 512  # of a command line


def is_config(data: bytes) -> bool:
    """Whether a YAML file is wandb's: every setting under a key of its own, with a `value`."""
    return data.startswith((b"wandb_version:", b"_wandb:")) or b"\n_wandb:" in data or b"\nwandb_version:" in data


def apart(sources: Iterable[ConfigSource]) -> tuple[list[ConfigSource], list[Input], list[Dump]]:
    """Files as given, without those of wandb; what these are, and the settings in them."""
    rest: list[ConfigSource] = []
    inputs: list[Input] = []
    dumps: list[Dump] = []
    for one in sources:
        if not is_config(one.data):
            rest.append(one)
            continue
        about, dump = config(one.name, one.data)
        inputs.append(about)
        dumps += [dump] if dump is not None else []
    return rest, inputs, dumps


def config(name: str, data: bytes) -> tuple[Input, Dump | None]:
    """The settings of a run as they were in effect. No file of them is edited: it is a record."""
    text = data.decode("utf-8", "replace")
    about = Input(name, "wandb", len(data), _lines(text), "utf-8")
    try:
        leaves = yaml_file.Reader(text).leaves()
    except (Unreadable, RecursionError):
        return about, None
    rows: list[str] = []
    places: list[Witness] = []
    shown = text.split("\n")
    nested = {leaf.key for leaf in leaves if leaf.shape == "map"}
    for leaf in leaves:
        key, dot, rest = leaf.key.partition(".")
        if key in ("_wandb", "wandb_version") or not dot or rest.partition(".")[0] != "value" or leaf.key in nested:
            continue
        row = _row(f"{key}{rest.removeprefix('value')}", leaf)
        if row:
            rows.append(row)
            places.append(Witness(name, leaf.line, leaf.column, shown[leaf.line - 1][:SHOWN]))
    return about, Dump("yaml", "", "\n".join(rows), tuple(places)) if rows else None


def _row(key: str, leaf: Leaf) -> str:
    """A setting as YAML on one line; nothing for one that has no value."""
    if leaf.shape == "list":
        return f"{json.dumps(key)}: {json.dumps(leaf.items)}"
    return "" if leaf.text is None else f"{json.dumps(key)}: {json.dumps(leaf.text)}"


def metadata(name: str, data: bytes) -> tuple[Input, list[Fact], Dump | None]:
    """The cards and the host's memory of a run, and the arguments of its program. How many processes there were it does not say."""
    text = data.decode("utf-8", "replace")
    about = Input(name, "wandb", len(data), _lines(text), "utf-8")
    try:
        values = json.loads(text)
        leaves = {leaf.key: leaf for leaf in json_file.Reader(text).leaves()}
    except (ValueError, RecursionError, Unreadable):
        return about, [], None
    if not isinstance(values, dict):
        return about, [], None
    shown = text.split("\n")
    places = {key: Witness(name, leaf.line, leaf.column, shown[leaf.line - 1][:SHOWN], key) for key, leaf in leaves.items()}
    arguments = _arguments(name, values.get("args"), text, leaves["args"].start) if "args" in leaves else None
    return about, list(_facts(values, places)), arguments


def _facts(values: Mapping[str, object], places: Mapping[str, Witness]) -> Iterator[Fact]:
    cards = values.get("gpu_nvidia")
    gpu = values.get("gpu")
    first = cards[0] if isinstance(cards, list) and cards and isinstance(cards[0], dict) else {}
    name = gpu if isinstance(gpu, str) else first.get("name")
    place = places.get("gpu") or places.get("gpu_nvidia.0.name")
    if isinstance(name, str) and place is not None:
        yield Fact("hardware.gpu", name.strip("[]"), "log", place)
    count = _number(values.get("gpu_count"))
    if count and "gpu_count" in places:
        yield Fact("hardware.count", count, "log", places["gpu_count"])
    program = values.get("program") or values.get("codePath")
    if isinstance(program, str) and (place := places.get("program") or places.get("codePath")):
        yield Fact("train.entry", program, "log", place)
    memory = values.get("memory")
    total = memory.get("total") if isinstance(memory, dict) else None
    size = _host_memory(total)
    if size is not None and "memory.total" in places:
        yield Fact("host.ram", size, "log", places["memory.total"])


def _host_memory(total: object) -> Size | None:
    """Bytes as a text since 0.17; before, a number of GiB with decimals."""
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


def _arguments(name: str, words: object, text: str, at: int) -> Dump | None:
    """The options that the program was given, each with its place."""
    if not isinstance(words, list) or len(words) > WORDS or not all(isinstance(word, str) for word in words):
        return None
    rows: list[str] = []
    places: list[Witness] = []
    shown = text.split("\n")
    for number, word in enumerate(words):
        found = text.find(json.dumps(word), at)
        at = found if found >= 0 else at
        key, equals, value = word.lstrip("-+").partition("=")
        if not key or not (word.startswith("-") or equals):
            continue
        if not equals:
            after = words[number + 1] if number + 1 < len(words) else "-"
            value = "true" if after.startswith("--") or (after.startswith("-") and not after[1:2].isdigit()) else after
        line = text.count("\n", 0, at)
        rows.append(f"{json.dumps(key.replace('-', '_') if word.startswith('-') else key)}: {json.dumps(value)}")
        places.append(Witness(name, line + 1, at - text.rfind("\n", 0, at), shown[line][:SHOWN]))
    return Dump("yaml", "", "\n".join(rows), tuple(places)) if rows else None


def joined(dumps: Iterable[Dump]) -> tuple[Dump, ...]:
    """The records of one run as one, each setting once: those in effect before those that were asked for."""
    rows: dict[str, tuple[str, Witness]] = {}
    for dump in dumps:
        for row, place in zip(dump.text.split("\n"), dump.lines, strict=True):
            rows.setdefault(row.partition('": ')[0], (row, place))
    text = "\n".join(row for row, _ in rows.values())
    return (Dump("yaml", "", text, tuple(place for _, place in rows.values())),) if rows else ()


def _lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n") if text else 0)
