"""What the words for causes and remedies have in common (rules/vocabulary.yaml), so that no code names one of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from diagnose import rule_files


@cache
def having(attribute: str) -> frozenset[str]:
    """The causes or remedies that an entry of the vocabulary lists. Raises KeyError where there is no such entry."""
    return frozenset(rule_files.table("vocabulary")[attribute])


@cache
def regimes_of(remedy: str) -> frozenset[str] | None:
    """The regimes whose programs can have a remedy; None: all."""
    rows = rule_files.table("vocabulary")["only_in"]
    return next((frozenset(row["regimes"]) for row in rows if remedy in row["remedies"]), None)


@cache
def knobs_of(remedy: str) -> tuple[str, ...]:
    """The knobs that a remedy acts on and no rule turns."""
    return tuple(rule_files.table("vocabulary")["acts_on"].get(remedy, ()))


@cache
def phases_of(remedy: str) -> frozenset[str] | None:
    """The phases in which a remedy helps a program that trains; None: all."""
    rows = rule_files.table("vocabulary")["at_phase"]
    return next((frozenset(row["phases"]) for row in rows if remedy in row["remedies"]), None)


def any_sample() -> str:
    """The remedy that makes samples smaller, whatever they are: tokens, pixels or frames."""
    return str(rule_files.table("vocabulary")["any_sample"])


@cache
def kinds_of_samples() -> tuple[str, ...]:
    """The remedies that make samples of one kind smaller."""
    return tuple(rule_files.table("vocabulary")["kind_of_samples"])


def kind_of_samples(remedy: str) -> Mapping[str, Any] | None:
    """What shows that samples are of the kind which a remedy shortens or shrinks; None for one that does nothing to samples."""
    return rule_files.table("vocabulary")["kind_of_samples"].get(remedy)  # type: ignore[no-any-return]


@cache
def releases() -> Mapping[str, str]:
    """The remedy of a release known to be bad, by the way out of it: upgrade or downgrade."""
    return MappingProxyType(rule_files.table("vocabulary")["releases"])


def bad_release() -> str:
    """The cause that a release known to be bad is."""
    return str(rule_files.table("vocabulary")["bad_release"])
