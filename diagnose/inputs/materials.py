"""What the caller hands over: logs and configs in any form, and options as facts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import TextIOBase
from pathlib import Path
from typing import BinaryIO, TypeAlias, TypeVar

from diagnose import catalogue
from diagnose.adapters.formats.settings import ConfigSource
from diagnose.errors import UserError, user_error
from diagnose.facts import Fact, Notice, Value, Witness, typed
from diagnose.phrases import Text
from diagnose.scan.source import Source

Item = TypeVar("Item")
Result = TypeVar("Result")

#: `str` and `bytes` are text; files only as a Path or an open file.
Material: TypeAlias = Path | str | bytes | BinaryIO | TextIOBase | Source


def options(model: str | Path | None, gpu: str | None, gpus: int | None, values: Mapping[str, str]) -> list[Fact]:
    """What the user says, as facts. Raises UserError for a name, kind or model that cannot be."""
    facts = [Fact(name, set_to(name, text), "given", Witness("given", text=f"--set {name}={text}")) for name, text in values.items()]
    if gpus is not None:
        if gpus < 1:
            raise user_error("gpus_positive")
        facts.append(Fact("parallel.world", gpus, "given", Witness("given", text=f"--gpus {gpus}")))
    if gpu is not None:
        if not catalogue.cards_named(gpu):
            raise user_error("unknown_gpu", hint="known_gpus", name=gpu, known=", ".join(catalogue.card_names()))
        facts.append(Fact("hardware.gpu", gpu, "given", Witness("given", text=f"--gpu {gpu}")))
    if model is not None:
        facts += model_facts(model)
    return facts


def set_to(name: str, text: str) -> Value:
    """The value that `--set` gives a fact. Raises UserError for one that the fact cannot have; nothing has less than none."""
    value = typed(name, text)
    if isinstance(value, (int, float)) and value < 0:
        raise user_error("negative", name=name, text=repr(text))
    return value


def model_facts(asked: str | Path) -> list[Fact]:
    """The model that an option names: a catalogue id, a config.json, or the text of one."""
    witness = Witness("given", text=f"--model {asked if isinstance(asked, Path) or len(asked) < 80 else 'config.json'}")
    if isinstance(asked, str) and not asked.lstrip().startswith("{"):
        known = catalogue.model(asked)
        if known is None:
            raise user_error("unknown_model", hint="model_config", name=asked)
        return [Fact("model.path", asked, "given", witness), Fact("model.shape", known, "given", witness)]
    where = str(asked) if isinstance(asked, Path) else "--model"
    try:
        text = asked.read_text(encoding="utf-8") if isinstance(asked, Path) else asked
        data = json.loads(text)
    except OSError as error:
        raise user_error("unreadable", where=where, why=error.strerror or str(error)) from error
    except (ValueError, RecursionError) as error:
        raise user_error("not_json", where=where, why=str(error)[:200]) from error
    if not isinstance(data, dict):
        raise user_error("not_json", where=where, why="not an object")
    shape = catalogue.model_of_config(data)
    return [Fact("model.path", shape.id, "given", witness), Fact("model.shape", shape, "given", witness)]


def listed(material: Material | Sequence[Material]) -> list[Material]:
    if isinstance(material, (str, bytes, Path, Source)) or hasattr(material, "read"):
        return [material]  # type: ignore[list-item]
    return list(material)


def as_log(material: Material, index: int) -> Source:
    if isinstance(material, Source):
        return material
    if isinstance(material, Path):
        return Source.file(material)
    if isinstance(material, TextIOBase):
        return Source.text(material.read(), name=str(getattr(material, "name", "text")))
    if isinstance(material, (str, bytes)):
        return Source.text(material, name="text" if index == 0 else f"text-{index + 1}")
    return Source.stream(material)


def as_config(material: Material | ConfigSource) -> ConfigSource:
    """A config as the adapters read it; a file's folder is where the files that it names are looked up."""
    if isinstance(material, ConfigSource):
        return material
    if isinstance(material, Path):
        return ConfigSource.file(material)
    text = material if isinstance(material, (str, bytes)) else material.read()
    return ConfigSource(material.name if isinstance(material, Source) else "config", text.encode() if isinstance(text, str) else text)


def each(step: Callable[[Item], Result], items: Iterable[Item]) -> tuple[list[Result], list[UserError]]:
    """The results of a step over items, and the complaints of those that failed."""
    done: list[Result] = []
    failed: list[UserError] = []
    for item in items:
        try:
            done.append(step(item))
        except UserError as trouble:
            failed.append(trouble)
    return done, failed


def as_notice(trouble: UserError) -> Notice:
    """A file that could not be used beside others that could."""
    return Notice("error", "unusable_input", Text(trouble.to("en"), trouble.to("zh")))
