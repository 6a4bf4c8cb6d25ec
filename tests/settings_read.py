"""Configs read by the adapters, and what they say of a knob."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from diagnose.adapters import config_reader
from diagnose.adapters.formats.settings import ConfigSource, Settings
from diagnose.facts import Fact, FactBook, Value, Witness, typed
from diagnose.parse.model.reading import Command, Reading
from diagnose.units import Version


def read(
    files: Mapping[str, str],
    versions: Mapping[str, str] | None = None,
    commands: Iterable[str] = (),
    known: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Settings:
    book = FactBook(Fact(f"version.{name}", Version(text), "log", Witness("log")) for name, text in (versions or {}).items())
    book.learn(Fact(name, typed(name, text), "log", Witness("log")) for name, text in (known or {}).items())
    reading = Reading(commands=tuple(Command(text, Witness("error.log", 7, 1, text)) for text in commands))
    return config_reader.read([ConfigSource(name, text.encode(), folder=folder) for name, text in files.items()], reading, book)


def value(told: Settings, name: str) -> Value:
    return FactBook(told.facts).value(name)


def place(told: Settings, name: str) -> tuple[str, int, str]:
    fact = FactBook(told.facts).fact(name)
    assert fact is not None
    return fact.witness.source, fact.witness.line, fact.witness.key


def origins(told: Settings, name: str) -> list[str]:
    return [fact.origin for fact in told.facts if fact.name == name]
