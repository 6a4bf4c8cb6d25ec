"""Checks the texts of a rule: both languages, the same placeholders in both, no filler, short sentences of the reader's words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from diagnose import rule_files
from diagnose.decide import expression
from diagnose.decide.verdict_wording import PLACEHOLDER
from diagnose.errors import UserError
from diagnose.vet.fault import Fault
from diagnose.vet.meaning import lines
from diagnose.vet.paper import Paper
from diagnose.vet.rule_form import texts
from diagnose.vet.sentence_length import long_sentences

#: The fields of a rule that people read.
SAID = ("title", "assuming", "evidence", "put_right", "background", "serving", "alone", "do", "command")
FILLER = re.compile(r"\b(TODO|TBD|FIXME|XXX|N/A)\b")
CHINESE = re.compile(r"[\u4e00-\u9fff]")


def check(paper: Paper) -> Iterator[Fault]:
    """Every text of one rule."""
    for at, data in said(paper):
        if not texts(data):
            if not (paper.room == "remedies" and at[0] == "command" and isinstance(data, str)):  # a command needs no translation
                yield paper.fault(at, "one_language", field=str(at[0]))
            continue
        yield from text(paper, at, data)
    yield from placeholders(paper)


def said(paper: Paper) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    yield from (((field,), paper.data[field]) for field in SAID if field in paper.data and not of_facts(paper.data[field]))
    yield from ((("assuming", fact), entry) for fact, entry in paper.data.get("assuming", {}).items() if of_facts(paper.data["assuming"]))
    if paper.room == "remedies":
        for field in ("not_when", "caveats"):
            for index, entry in enumerate(paper.data.get(field, ())):
                yield (field, index), entry
        for field in ("programs", "serving_in", "asks"):
            for name, entry in paper.data.get(field, {}).items():
                yield (field, name), entry


def of_facts(entry: Any) -> bool:
    """Whether an assumption is said fact by fact."""
    return isinstance(entry, Mapping) and bool(entry) and all(isinstance(text, Mapping) for text in entry.values())


def text(paper: Paper, at: tuple[str | int, ...], data: Mapping[str, str]) -> Iterator[Fault]:
    """Both languages have the same placeholders, and neither is empty or a copy."""
    if set(PLACEHOLDER.findall(data["en"])) != set(PLACEHOLDER.findall(data["zh"])):
        yield paper.fault(at, "placeholders_differ", field=str(at[0]))
    if at[0] != "command" and (not CHINESE.search(data["zh"]) or CHINESE.search(data["en"])):
        yield paper.fault(at, "wrong_language", field=str(at[0]))
    if FILLER.search(data["en"]) or FILLER.search(data["zh"]):
        yield paper.fault(at, "filler", field=str(at[0]))
    if at[0] != "command":
        yield from wording(paper, at, data)


def wording(paper: Paper, at: tuple[str | int, ...], data: Mapping[str, str]) -> Iterator[Fault]:
    """No English sentence is long, and no word is used that readers do not use (rules/wording.yaml)."""
    for sentence, count, most in long_sentences(data["en"]):
        yield paper.fault(at, "long_sentence", field=str(at[0]), count=count, most=most, sentence=sentence)
    said = PLACEHOLDER.sub("", data["en"]), PLACEHOLDER.sub("", data["zh"])
    for word in dict.fromkeys(match for one, pattern in zip(said, avoided(), strict=True) for match in pattern.findall(one)):
        yield paper.fault(at, "avoided_word", field=str(at[0]), word=word)


@cache
def avoided() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What finds the words that rules/wording.yaml lists, in English and in Chinese."""
    lists = rule_files.table("wording")["never"]
    english, chinese = ("|".join(map(re.escape, lists[lang])) for lang in ("en", "zh"))
    return re.compile(rf"\b(?:{english})\b", re.IGNORECASE), re.compile(chinese)


def placeholders(paper: Paper) -> Iterator[Fault]:
    """Placeholders are facts that the rule requires; others might be unknown when it fires."""
    if paper.room == "remedies":
        return
    try:
        fact_names = names(paper)
    except UserError:
        return  # the line that cannot be read is reported by its own check
    for field in ("evidence", "assuming", "put_right"):
        for name in PLACEHOLDER.findall(str(paper.data.get(field, ""))):
            if name not in fact_names:
                yield paper.fault((field,), "placeholder_not_read", name=name)


def names(paper: Paper) -> set[str]:
    """Every fact that a cause reads. Raises UserError for a condition that cannot be parsed."""
    fact_names = {name for _, line in lines(paper) for name in expression.names(expression.parse(line))} | set(
        paper.data.get("presume", {})
    )
    if "accounts_for" in paper.data:
        fact_names |= set(expression.names(expression.parse_sum(paper.data["accounts_for"])))
    if paper.room == "versions":
        fact_names.add(f"version.{paper.data['library']}")
    return fact_names
