"""Known-bad releases to rules: adding one is data (`rules/versions`), never code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from diagnose import vocabulary


def entries(table: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Every known-bad release of the table: an entry with a symptom. Files hold a list, or one entry per document."""
    for file in table.values():
        for entry in file if isinstance(file, list) else [file]:
            if isinstance(entry, Mapping) and "symptom" in entry:
                yield entry


def library_of(table: Mapping[str, Any], rule: str) -> str:
    """The library whose release a rule is about; empty for every other rule."""
    return next((str(entry["library"]) for entry in entries(table) if entry["id"] == rule), "")


def rules_of(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A cause rule, uncompiled, for every known-bad release."""
    return [rule_of_release(entry) for entry in entries(table)]


def ways_out(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """The remedies that lead out of a known-bad release: its cure, and the other direction where good releases lie on both sides."""
    words, cure = vocabulary.releases(), entry.get("cure", "upgrade")
    return (words[cure], *(words[way] for way in words if way != cure and "since" in entry and "until" in entry))


def rule_of_release(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The rule: the symptom is seen and the release is in the range.

    An entry names `library`, `since` (first bad release), `until` (first good one; absent: none yet), `symptom` (lines
    as in `when: all`), `cure` (upgrade, downgrade), title, evidence, `source`, and perhaps `assume`: the release to
    assume where the log names none, which makes the cause likely. It must be told apart by its symptom alone then.
    """
    fact = f"version.{entry['library']}"
    when = {key: list(entry[key]) for key in ("any", "none") if key in entry}
    bounds = [f"{fact} >= {entry['since']}"] if "since" in entry else []
    bounds += [f"{fact} < {entry['until']}"] if "until" in entry else []
    rule: dict[str, Any] = {
        "id": entry["id"],
        "cause": entry.get("cause", vocabulary.bad_release()),
        "status": entry.get("status", "stable"),
        "title": entry["title"],
        "when": {"all": [*entry["symptom"], *bounds], **when},
        "evidence": entry["evidence"],
        "remedies": [*ways_out(entry)[:1], *entry.get("remedies", ()), *ways_out(entry)[1:]],
        "references": [entry["source"]] if isinstance(entry["source"], str) else list(entry["source"]),
    }
    for key in ("accounts_for", "yields_to", "assuming", "given", "examples"):
        if key in entry:
            rule[key] = entry[key]
    presume = dict(entry.get("presume", {}))
    if "assume" in entry:
        presume[fact] = entry["assume"]
    return {**rule, "presume": presume} if presume else rule
