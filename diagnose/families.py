"""The families of failure messages and what they have in common (rules/families.yaml)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType

from diagnose import rule_files
from diagnose.records import NamedTuple

#: The family of what has no family of its own.
OTHER = "other"


class Family(NamedTuple):
    """What is known of a family; the fields are those of its entry, which the table explains."""

    memory: str = ""
    place: str = "ram"
    allocator: str = ""
    shared: bool = False
    lacks: Sequence[str] = ()
    divides: bool = False
    reworded: bool = False
    maker: str | None = None
    variable: str = ""
    engine: str = ""
    kill: bool = False
    limited: bool = False
    own: bool = False
    container: bool = False
    loader: bool = False
    pinning: str = ""
    handles: bool = False
    collective: bool = False
    echo: bool = False
    retold: bool = False
    limit_only: str = ""


#: Of a failure without a family.
_NONE = Family()


@cache
def all_families() -> Mapping[str, Family]:
    """Every family by name."""
    return MappingProxyType({name: Family(**entry) for name, entry in rule_files.table("families")["families"].items()})


def of(name: str | None) -> Family:
    """A family by name; for an unknown one nothing is known."""
    return all_families().get(name or "", _NONE)


def maker_of(architecture: str) -> str:
    """Who makes cards of an architecture of the catalogue."""
    makers: Mapping[str, list[str]] = rule_files.table("families")["makers"]
    return next((maker for maker, prefixes in makers.items() if not prefixes or architecture.startswith(tuple(prefixes))), "")
