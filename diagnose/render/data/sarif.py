"""The answer as SARIF 2.1.0 for code scanning and editors: causes and warnings as results at lines of the user's configs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import sha256
from pathlib import PurePath
from urllib.parse import quote

from diagnose.adapters.formats.config_value import Places
from diagnose.adapters.formats.settings import Document, Entry
from diagnose.decide.verdict import Verdict as Ruling
from diagnose.diagnosis import Diagnosis, Json
from diagnose.facts import Notice, Witness
from diagnose.phrases import Lang
from diagnose.plan.remedies.remedy import Edit, Plan
from diagnose.render.parts import advice_text, failure_text, memory_rows, words
from diagnose.render.parts.strings import escaped, harmless, map_texts
from diagnose.render.parts.view import PLAIN, View
from diagnose.render.parts.words import word
from diagnose.version import __version__

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"

#: The name under which results are compared between runs; a new way of making them gets a new number.
FINGERPRINT = "oomdoctorCause/v1"

#: So many places in one result.
MAX_PLACES = 10

Result = dict[str, Json]


def render(diagnosis: Diagnosis, lang: Lang = "en", _: View = PLAIN) -> str:
    """The SARIF log as JSON text."""
    return escaped(json.dumps(to_sarif(diagnosis, lang), ensure_ascii=False, indent=2))


def to_sarif(diagnosis: Diagnosis, lang: Lang = "en") -> dict[str, Json]:
    """The SARIF log: one run with its rules, results and inputs."""
    diagnosis = map_texts(diagnosis, harmless)
    rules: dict[str, Json] = {}
    results: list[Json] = []
    for result in (*memory_results(diagnosis, lang, rules), *notice_results(diagnosis, lang, rules)):
        result["ruleIndex"] = [*rules].index(str(result["ruleId"]))
        results.append(result)
    driver: dict[str, Json] = {"name": "oomdoctor", "version": __version__, "semanticVersion": __version__, "rules": [*rules.values()]}
    run: dict[str, Json] = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": True}],
        "language": "zh-CN" if lang == "zh" else "en-US",
        "columnKind": "unicodeCodePoints",
        "artifacts": [{"location": artifact(source.name), "length": source.bytes} for source in diagnosis.inputs],
        "results": results,
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


# -- results


def memory_results(diagnosis: Diagnosis, lang: Lang, rules: dict[str, Json]) -> list[Result]:
    """A result per cause; without causes, one for the verdict."""
    if diagnosis.asked == "explain" and diagnosis.verdict.status not in ("oom", "suspected"):
        return []
    if diagnosis.asked == "check" and diagnosis.exit_status == 0:
        return []
    leading = [cause for cause in diagnosis.judgement.causes if not cause.also_true] if diagnosis.asked == "explain" else []
    return [cause_result(cause, diagnosis, lang, rules, first=cause is leading[0]) for cause in leading] or [
        verdict_result(diagnosis, lang, rules)
    ]


def cause_result(cause: Ruling, diagnosis: Diagnosis, lang: Lang, rules: dict[str, Json], *, first: bool) -> Result:
    """Title and explanation of a cause, with the plan for the first; located in a config if possible, else in the log."""
    name = failure_text.name_of_cause(cause.cause, lang)
    add_rule(rules, f"oom/{cause.cause}", name, cause.title.to(lang), cause.url, word("sarif_help", lang, rule=cause.rule))
    plan = diagnosis.outcome.plan if first else None
    sentences = [
        words.sentence(cause.title.to(lang), lang),
        words.sentence(cause.explanation.to(lang), lang),
        *plan_sentence(plan, diagnosis, lang),
    ]
    witnesses = [place for place in cause.evidence if place.line]
    edited = edited_places(plan, diagnosis)
    in_config = [place for place in witnesses if place.key]
    places = [*in_config, *edited, *(place for place in witnesses if not place.key)]
    level = "error" if cause.outcome == "fires" else "warning"
    return result(f"oom/{cause.cause}", level, " ".join(filter(None, sentences)), places, (cause.cause,), fixes(plan, diagnosis, lang))


def verdict_result(diagnosis: Diagnosis, lang: Lang, rules: dict[str, Json]) -> Result:
    """The headline as a result: for a check before a run, or a failure without a known cause."""
    check = diagnosis.asked == "check"
    name = "oom/does-not-fit" if check and diagnosis.fits != "unknown" else "oom/cannot-tell" if check else "oom/failure"
    add_rule(rules, name, failure_text.banner(diagnosis, lang), failure_text.banner(diagnosis, lang))
    plan = diagnosis.outcome.plan
    sentences = [diagnosis.verdict.headline.to(lang), *plan_sentence(plan, diagnosis, lang)]
    evidence = diagnosis.root.evidence if diagnosis.root is not None else ()
    places = [*edited_places(plan, diagnosis), *(place for place in evidence if place.line)]
    places = places or [Witness(source.name, 1) for source in diagnosis.inputs if source.kind not in ("log", "unknown")][:1]
    level = {"no": "error", "unlikely": "warning", "unknown": "note"}.get(diagnosis.fits, "note") if check else "error"
    return result(name, level, " ".join(filter(None, sentences)), places, (name,), fixes(plan, diagnosis, lang))


def notice_results(diagnosis: Diagnosis, lang: Lang, rules: dict[str, Json]) -> list[Result]:
    """Results for ineffective keys and unreadable files."""
    results: list[Result] = []
    for notice in diagnosis.notices:
        if notice.level == "info" or notice.witness is None or not notice.code.startswith("config."):
            continue
        name = notice.code.replace(".", "/", 1).replace("_", "-")
        add_rule(rules, name, notice.code, notice.code)
        identity = (notice.code, notice.witness.key or notice.message.en)
        results.append(result(name, level_of(notice), words.sentence(notice.message.to(lang), lang), [notice.witness], identity))
    return results


def level_of(notice: Notice) -> str:
    """The SARIF level of a notice."""
    return "error" if notice.level == "error" else "warning"


def plan_sentence(plan: Plan | None, diagnosis: Diagnosis, lang: Lang) -> list[str]:
    """The plan in one sentence."""
    if plan is None or not plan.steps:
        return []
    titles = {remedy.id: remedy.title.to(lang) for remedy in diagnosis.outcome.remedies}
    steps = words.semicolon(lang).join(titles.get(step, step) for step in plan.steps)
    heading = advice_text.plan_heading(plan, diagnosis, memory_rows.main_ledger(diagnosis), lang)
    return [words.sentence(f"{heading}{words.colon(lang)}{steps}", lang)]


# -- the parts that SARIF is made of


def add_rule(rules: dict[str, Json], name: str, short: str, full: str, url: str = "", help_text: str = "") -> None:
    """Register a rule for results to refer to."""
    entry: dict[str, Json] = {
        "id": name,
        "name": name.replace("/", "-"),
        "shortDescription": {"text": short},
        "fullDescription": {"text": full},
    }
    if url.startswith("https://"):
        entry["helpUri"] = url
    if help_text:
        entry["help"] = {"text": help_text}
    rules.setdefault(name, entry)


def result(
    name: str, level: str, text: str, places: Iterable[Witness], identity: tuple[str, ...], fixed: list[Json] | None = None
) -> Result:
    """A result. Its fingerprint covers rule, file and key but no line number, so that it survives edits above."""
    distinct = [*{(place.source, place.line, place.key): place for place in reversed([*places])}.values()][::-1][:MAX_PLACES]
    first = distinct[0] if distinct else Witness("")
    fingerprint = "\0".join((*identity, PurePath(first.source).name, first.key))
    entry: Result = {
        "ruleId": name,
        "level": level,
        "message": {"text": text},
        "locations": [location(first)] if first.source else [],
        "partialFingerprints": {FINGERPRINT: sha256(fingerprint.encode(errors="replace")).hexdigest()[:32]},
    }
    if distinct[1:]:
        entry["relatedLocations"] = [{"id": number, **location(place)} for number, place in enumerate(distinct[1:], 1)]
    if fixed:
        entry["fixes"] = fixed
    return entry


def location(place: Witness) -> dict[str, Json]:
    """A line of a file with its text."""
    region: dict[str, Json] = {"startLine": max(place.line, 1)}
    if place.column:
        region["startColumn"] = place.column
    if place.text and not place.key:
        region["snippet"] = {"text": place.text[:500]}
    return {"physicalLocation": {"artifactLocation": artifact(place.source), "region": region}}


def artifact(name: str) -> dict[str, Json]:
    """The URI of a file, relative to the checkout if it was named that way."""
    path = name.replace("\\", "/")
    if path.startswith("/"):
        return {"uri": "file://" + quote(path, errors="replace")}
    return {"uri": quote(path.removeprefix("./"), errors="replace") or "input", "uriBaseId": "%SRCROOT%"}


def edited_places(plan: Plan | None, diagnosis: Diagnosis) -> list[Witness]:
    """The places of the plan's keys in the given files; for an added key the first line of the file's settings."""
    witnesses = []
    for edit in plan.edits if plan is not None else ():
        entry = edited_entry(edit, diagnosis) or next(iter(file_entries(edit, diagnosis)), None)
        if entry is not None and entry.line:
            witnesses.append(Witness(edit.target, entry.line, entry.column, key=edit.key))
    return witnesses


def files_of(edit: Edit, diagnosis: Diagnosis) -> list[Document]:
    """The documents of the file that an edit is about."""
    return [document for document in diagnosis.documents if document.name == edit.target and document.form not in ("command", "dump")]


def file_entries(edit: Edit, diagnosis: Diagnosis) -> list[Entry]:
    """The entries of the document that an edit targets."""
    return [entry for document in files_of(edit, diagnosis) for entry in document.entries]


def edited_entry(edit: Edit, diagnosis: Diagnosis) -> Entry | None:
    """The entry that an edit changes."""
    return next((entry for entry in file_entries(edit, diagnosis) if entry.key == edit.key), None)


def fixes(plan: Plan | None, diagnosis: Diagnosis, lang: Lang) -> list[Json]:
    """The plan as one SARIF fix; only if every edit replaces a value in a given file."""
    if plan is None or not plan.edits or plan.env:
        return []
    changes: dict[str, list[Json]] = {}
    for edit in plan.edits:
        entry = edited_entry(edit, diagnosis)
        if entry is None or edit.frm is None or edit.to is None or edit.renamed or entry.used or entry.written != edit.frm:
            return []
        document = next(file for file in files_of(edit, diagnosis) if entry in file.entries)
        text, start, end = document.outer or document.text, document.shift + entry.start, document.shift + entry.end
        if text[start:end] != edit.frm:  # what was masked before it has moved the text
            return []
        place = Places(text)  # SARIF counts lines as editors do, whatever the language of the file
        (line, column), (last, behind) = place(start), place(end)
        region: dict[str, Json] = {"startLine": line, "startColumn": column, "endLine": last, "endColumn": behind}
        changes.setdefault(edit.target, []).append({"deletedRegion": region, "insertedContent": {"text": edit.to}})
    return [
        {
            "description": {"text": word("do_this", lang)},
            "artifactChanges": [
                {"artifactLocation": artifact(name), "replacements": replacements} for name, replacements in changes.items()
            ],
        }
    ]
