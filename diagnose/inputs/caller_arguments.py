"""Convert a caller's arguments: logs and configs of any form to sources, options to facts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import TextIOBase
from pathlib import Path
from typing import BinaryIO, TypeAlias, TypeVar

from diagnose import catalogue
from diagnose.adapters.formats.settings import ConfigSource
from diagnose.errors import UserError, user_error
from diagnose.facts import MAX_TEXT, Fact, Notice, Value, Witness, quoted, require_declared, typed
from diagnose.phrases import Text
from diagnose.scan.source import Source

Item = TypeVar("Item")
Result = TypeVar("Result")

#: `str` and `bytes` are text; files only as a Path or an open file.
Material: TypeAlias = Path | str | bytes | BinaryIO | TextIOBase | Source


def options(model: str | Path | None, gpu: str | None, gpus: int | None, values: Mapping[str, str]) -> list[Fact]:
    """The options as facts of origin `given`. Raises UserError for an unknown name, a value of the wrong kind or an unknown model."""
    facts = [Fact(name, parse_setting(name, text), "given", Witness("given", text=f"--set {name}={text}")) for name, text in values.items()]
    if gpus is not None:
        if gpus < 1:
            raise user_error("gpus_positive")
        facts.append(Fact("parallel.world", gpus, "given", Witness("given", text=f"--gpus {gpus}")))
    if gpu is not None:
        if not catalogue.cards_named(gpu):
            import difflib  # only a mistake needs it

            names = catalogue.card_names()
            kinds = [name.partition("-")[0].upper() for name in names]
            near = difflib.get_close_matches(gpu.upper().partition("-")[0], kinds, 1, 0.7)
            alike = [name for name, kind in zip(names, kinds, strict=True) if kind in near]
            raise user_error("unknown_gpu", hint="near_gpus" if alike else "known_gpus", name=gpu, known=", ".join(alike or names))
        facts.append(Fact("hardware.gpu", gpu, "given", Witness("given", text=f"--gpu {gpu}")))
    if model is not None:
        facts += model_facts(model)
    return facts


def parse_setting(name: str, text: str) -> Value:
    """Parse the value of `--set name=text`. Raises UserError for a value of the wrong kind, a word that the fact cannot be, a text too
    long for one, and a number below zero."""
    if len(text) > MAX_TEXT:
        raise user_error("too_long", name=name, most=MAX_TEXT)
    words, value = require_declared(name).words, typed(name, text)
    if words and isinstance(value, str) and value not in words:
        raise user_error("wrong_word", hint="known_words", name=name, words=", ".join(words), text=quoted(text))
    if isinstance(value, (int, float)) and value < 0:
        raise user_error("negative", name=name, text=quoted(text))
    return value


def model_facts(model: str | Path) -> list[Fact]:
    """The model given as a catalogue id, a config.json, or the text of one. Raises UserError if it is unknown or unreadable."""
    witness = Witness("given", text=f"--model {model if isinstance(model, Path) or len(model) < 80 else 'config.json'}")
    if isinstance(model, str) and not model.lstrip().startswith("{"):
        shape = catalogue.model(model)
        if shape is None and catalogue.denoiser(model) is not None:  # of these the catalogue has parameters alone
            return [Fact("model.path", model, "given", witness)]
        if shape is None:
            raise user_error("unknown_model", hint="model_config", name=model)
        return [Fact("model.path", model, "given", witness), Fact("model.shape", shape, "given", witness)]
    where = str(model) if isinstance(model, Path) else "--model"
    try:
        text = ConfigSource.file(model).data.decode() if isinstance(model, Path) else model
        data = json.loads(text)
    except OSError as error:
        raise user_error("unreadable", where=where, why=error.strerror or str(error)) from error
    except (ValueError, RecursionError) as error:
        raise user_error("not_json", where=where, why=str(error)[:200]) from error
    if not isinstance(data, dict):
        raise user_error("not_json", where=where, why="not an object")
    shape = catalogue.model_of_config(data)
    return [Fact("model.path", shape.id, "given", witness), Fact("model.shape", shape, "given", witness)]


def as_list(material: Material | Sequence[Material]) -> list[Material]:
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
    """A config as the adapters read it. Files that it names are looked up in its folder."""
    if isinstance(material, ConfigSource):
        return material
    if isinstance(material, Path):
        return ConfigSource.file(material)
    text = material if isinstance(material, (str, bytes)) else material.read()
    return ConfigSource(
        material.name if isinstance(material, Source) else "config", text.encode(errors="replace") if isinstance(text, str) else text
    )


def convert_each(convert: Callable[[Item], Result], items: Iterable[Item]) -> tuple[list[Result], list[UserError]]:
    """Convert items; returns the results, and the errors of the items that failed."""
    results: list[Result] = []
    errors: list[UserError] = []
    for item in items:
        try:
            results.append(convert(item))
        except UserError as error:
            errors.append(error)
    return results, errors


def as_notice(error: UserError) -> Notice:
    """The notice about an input that was skipped because of an error."""
    return Notice("error", "unusable_input", Text(error.to("en"), error.to("zh")))
