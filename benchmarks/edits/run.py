"""Judge the edits that are proposed for configs: does the framework take them, and do they do anything?

    python benchmarks/edits/run.py [--every] [--tries N] [--only FRAMEWORK] [--list] [FOLDER...]

Each config of corpus/configs (or of the folders) fails in some of eight ways on some of four cards (with --every in all); each remedy
and each whole plan is written, parsed and judged by what the published packages declare, at the release in use or the newest one.
"""

from __future__ import annotations

import argparse
import ast
import json
import pickle
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from edits.declared import Declared, Option
from edits.failures import CARDS, KINDS, log
from edits.judges import Column, Question, answers, question
from edits.judges import verdict as parsed_verdict
from edits.packages import FOLDER, ROOT, listed
from edits.tables import all_declared

from diagnose import explain
from diagnose.adapters.formats.config_value import name_of
from diagnose.adapters.formats.settings import Document
from diagnose.adapters.schema import declared_keys, framework_tables
from diagnose.diagnosis import Diagnosis
from diagnose.errors import UserError
from diagnose.facts import FactBook
from diagnose.plan.patch import patching
from diagnose.plan.remedies.remedy import Edit

CONFIGS = ROOT / "corpus" / "configs"


@cache
def packages() -> dict[str, dict[tuple[str, str], Declared]]:
    """What every release of every framework declares at every entry point, kept between runs."""
    store = FOLDER / "declared.pickle"
    if not store.is_file() or store.stat().st_mtime < max(path.stat().st_mtime for path in Path(__file__).parent.glob("[dp]*[.ey]*")):
        made = {name: {(release, entry): said for release, entry, said, _ in all_declared(name)} for name in listed()}
        store.write_bytes(pickle.dumps(made))  # our own, in our own folder
    loaded: dict[str, dict[tuple[str, str], Declared]] = pickle.loads(store.read_bytes())
    return loaded


def jobs(folders: Sequence[Path]) -> Iterator[tuple[str, list[Path]]]:
    """The files of each job: an expected.yaml beside a config names the others; in other folders every file is one, every folder one."""
    for folder in folders:
        for expected in sorted(folder.rglob("*.expected.yaml")):
            stem = expected.name.removesuffix(".expected.yaml")
            main = [path for path in sorted(expected.parent.glob(f"{stem}.*")) if path != expected]
            also = [expected.parent / name for name in (yaml.safe_load(expected.read_text()) or {}).get("also", [])]
            yield f"{expected.parent.name}/{stem}", [*main, *also]
        if not list(folder.rglob("*.expected.yaml")):
            yield from ((path.name, [path] if path.is_file() else sorted(path.iterdir())) for path in sorted(folder.iterdir()))


def in_use(document: Document, diagnosis: Diagnosis) -> list[Column]:
    """The releases, in their order, and entry points that may be in use of the document's framework, of those that are recorded."""
    book = FactBook(diagnosis.facts)
    for name in framework_tables.lineage(document.framework):
        record = declared_keys.record(name)
        if record is None:
            continue
        entries = [document.entry, *(str(fact.value) for fact in book.all("train.entry"))]
        at = declared_keys._at(record.columns, [declared_keys._words(entry) for entry in entries if entry])  # noqa: SLF001
        table, keys = framework_tables.table(name), [name_of(entry.key) for entry in document.entries]
        span = framework_tables.possible_releases(table, book.version(table.version), keys)
        at = declared_keys._consistent(record, declared_keys._released(at, span), keys)  # noqa: SLF001
        return [Column(name, one.release.text, one.entry) for one in sorted(at, key=lambda one: one.release)]
    return []


def columns(document: Document, diagnosis: Diagnosis) -> tuple[list[Declared], list[Declared]]:
    """What judges the edits of a document: all that may be in use, and the newest of each entry point."""
    every = in_use(document, diagnosis)
    newest = {column.entry: column for column in every}
    both = ([packages().get(one.framework, {}).get((one.release, one.entry)) for one in some] for some in (every, newest.values()))
    judges, last = ([said for said in some if said is not None] for some in both)
    return judges, last


def verdict(edit: Edit, document: Document, diagnosis: Diagnosis) -> str:
    """Why the framework refuses the edit or it does nothing; empty where it is good, `unjudged` where nothing was recorded."""
    if edit.to is None and not edit.renamed:
        return ""
    key = name_of(edit.renamed or edit.key)
    head = key.partition(".")[0]
    if (
        head[:1].isupper()
        or head in ("from_pretrained", "prepare_model_for_kbit_training", "get_peft_model", "model_init_kwargs")
        or key.isupper()
    ):
        return "unjudged"
    versions = {row.version for row in framework_tables.table(document.framework).named(key)}
    every, judges = columns(document, diagnosis)
    if declared_keys.record(document.framework) is None and versions == {f"version.{document.framework}"}:
        return "unjudged"  # a key of its own, which what it extends does not say
    if not judges:
        return "unjudged"
    if edit.key.startswith("+"):
        return ""
    found = [judge.find(key) for judge in judges]
    if not all(found) and edit.frm is None:
        return f"rejected: {key} is not declared"
    options = [option for option in found if option is not None]
    said = next((why for option in options if (why := fault(edit, option))), "")
    if said:
        return said
    text = str(edit.to).strip("\"'").lower() or "true"
    defaults = {str(option.default).lower() for judge in every for option in [judge.find(key)] if option is not None}
    return f"in vain: {key} is {text} already" if edit.frm is None and defaults == {text} else ""


def fault(edit: Edit, option: Option) -> str:
    word = str(edit.to).strip("\"'")
    if word.startswith(("$", "[", "{")) or "{" in word:
        return ""
    if option.choices and word not in option.choices and not (word.lower() in ("null", "none") and "None" in option.choices):
        if word.lower() in {choice.lower() for choice in option.choices}:
            return ""
        return f"rejected: {edit.key} takes {'|'.join(option.choices)}, not {word}"
    if option.kind == "flag" and word not in ("", "true", "false", "True", "False"):
        return f"rejected: {edit.key} is a switch, not {word}"
    if option.kind in ("int", "float") and word.lower() not in ("null", "none", "auto"):
        try:
            int(word.replace("_", "")) if option.kind == "int" else float(word)
        except ValueError:
            return f"rejected: {edit.key} is {option.kind}, not {word}"
    if option.kind == "bool" and word.lower() not in ("true", "false", "", "yes", "no", "1", "0", "null", "none"):
        return f"rejected: {edit.key} is a switch, not {word}"
    return ""


def parses(name: str, text: str) -> bool:
    """Whether a patched file is one of its language."""
    ending = name.rpartition(".")[2]
    try:
        if ending in ("yaml", "yml"):
            list(yaml.compose_all(text, yaml.CSafeLoader))
        elif ending in ("json", "ipynb"):
            json.loads(text)
        elif ending == "toml":
            tomllib.loads(text)
        elif ending == "py":
            ast.parse(text)
    except (ValueError, SyntaxError, yaml.YAMLError):
        return False
    return True


def judged(diagnosis: Diagnosis) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """(what, verdict, edit) of every edit of a diagnosis, and of its whole plan."""
    documents = {document.name: document for document in reversed(diagnosis.documents) if document.text}
    for remedy in diagnosis.outcome.remedies:
        for edit in remedy.edits:
            own = [one for one in diagnosis.documents if one.name == edit.target]
            entry = next((one for one in own if any(entry.key == edit.key for entry in one.entries)), own[0] if own else None)
            entry = entry if edit.frm is not None else closest(own, edit) or entry
            if entry is not None:
                yield remedy.id, verdict(edit, entry, diagnosis), (edit.target, edit.key, str(edit.frm), str(edit.to))
    plan = diagnosis.outcome.plan
    if plan is not None and plan.edits and documents:
        try:
            texts = patching.texts(diagnosis.documents, plan.edits)
        except UserError as error:
            yield "plan", f"rejected: {error}", ()
            return
        bad = [name for name, text in texts.items() if not parses(name, text) and parses(name, documents[name].text)]
        steps = [remedy.edits for remedy in diagnosis.outcome.remedies if remedy.id in plan.steps]
        beside = {edit for edits in steps if len(edits) > 1 for edit in edits}
        faults = [
            why
            for edit in plan.edits
            for own in [[one for one in diagnosis.documents if one.name == edit.target]]
            for document in [closest(own, edit) or (own[0] if own else None)]
            if document is not None and (why := verdict(edit, document, diagnosis)) not in ("", "unjudged")
            if why.startswith("rejected") or edit not in beside
        ]
        yield "plan", f"rejected: {bad[0]} does not parse" if bad else faults[0] if faults else "", ()


def questions(diagnosis: Diagnosis) -> Iterator[tuple[str, tuple[Edit, ...], list[Question | None]]]:
    """(what, its edits, what is to be asked of parsers) of every remedy and of the whole plan; one question for each part of a file."""
    remedies = [(remedy.id, remedy.edits) for remedy in diagnosis.outcome.remedies]
    plan = [("plan", diagnosis.outcome.plan.edits)] if diagnosis.outcome.plan is not None else []
    for name, edits in [*remedies, *plan]:
        try:
            texts = patching.texts(diagnosis.documents, edits) if edits else {}
        except UserError:
            texts = {}
        asked: list[Question | None] = []
        for file, after in texts.items():
            parts = [document for document in diagnosis.documents if document.name == file and document.form != "command"]
            for part, _ in patching._assign_edits(parts, [edit for edit in edits if edit.target == file]):  # noqa: SLF001
                before = "" if part.outer else part.text
                asked.append(question(part.form, part.entry, in_use(part, diagnosis), before, after) if before else None)
        if texts:
            yield name, edits, asked


def closest(documents: Sequence[Document], edit: Edit) -> Document | None:
    """The part of a file that an added key is for: the framework whose table has it."""
    name = name_of(edit.renamed or edit.key)
    return next((one for one in documents if any(key.key == name for key in framework_tables.table(one.framework).keys)), None)


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("folders", nargs="*", type=Path)
    asked.add_argument("--every", action="store_true")
    asked.add_argument("--only")
    asked.add_argument("--list", action="store_true")
    asked.add_argument("--tries", type=int, default=4, help="ways in which each config fails, of 32 (eight failures, four cards)")
    asked.add_argument("--write", type=Path, help="also write the table with the releases into this file")
    options = asked.parse_args()
    tally: dict[str, Counter[str]] = defaultdict(Counter)
    patches: list[tuple[str, str, tuple[Edit, ...], list[Question | None]]] = []
    seen: dict[tuple[str, ...], str] = {}
    number = 0
    for name, files in jobs(options.folders or [CONFIGS]):
        if options.only and not name.startswith(options.only):
            continue
        number += 1
        combinations = [(kind, card) for kind in KINDS for card in CARDS]
        chosen = (
            combinations if options.every else [combinations[(number * 5 + step * 9) % len(combinations)] for step in range(options.tries)]
        )
        for kind, card in chosen:
            diagnosis = explain(log(kind, card), configs=files, gpu=card if kind in ("host", "engine") else None)
            framework = FactBook(diagnosis.facts).word("train.framework") or next((one.framework for one in diagnosis.documents), "none")
            found = list(judged(diagnosis))
            _count(name, f"{kind}, {card}", found, tally[framework], seen, options.list)
            patches += [(f"{framework} {name}", *one) for one in questions(diagnosis)]
    remaining = [f"{name[0]} {name[2]}: {name[3]} to {name[4]}: {why}" for name, why in seen.items() if why not in ("", "unjudged")]
    heads = ("good", "rejected", "in vain", "unjudged", "plans", "bad plans")
    lines = ["| framework | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    for framework, counts in [*sorted(tally.items()), ("all", sum(tally.values(), Counter()))]:
        lines.append(f"| {framework} | " + " | ".join(str(counts[head]) for head in heads) + " |")
    print("\n".join(lines))
    parsed, refusals = by_parsers(patches)
    print("\n".join([*refusals, *parsed]))
    if options.write:
        options.write.write_text(document(number, lines, remaining, parsed, refusals))
    return 0


PARSED = ("accepted", "rejected", "no effect", "older", "not judged")


def by_parsers(asked: Sequence[tuple[str, str, tuple[Edit, ...], list[Question | None]]]) -> tuple[list[str], list[str]]:
    """The table of what the parsers themselves say to each distinct patch, and a line for each that is not accepted."""
    distinct = {(name, edits): (what, some) for name, what, edits, some in asked}
    said = answers([one for _, some in distinct.values() for one in some if one is not None])
    tally: dict[str, Counter[str]] = defaultdict(Counter)
    refusals: dict[str, None] = {}
    for (name, edits), (what, some) in distinct.items():
        framework, _, job = name.partition(" ")
        verdicts = ["not judged" if one is None else parsed_verdict(one, said) for one in some]
        groups = [one.partition(":")[0] for one in verdicts]
        group = next((one for one in ("rejected", "older", "accepted") if one in groups), "")
        group = group or ("no effect" if groups and set(groups) == {"no effect"} else "not judged")
        tally[framework][group] += 1
        if group in ("rejected", "older", "no effect"):
            why = next((one for one in verdicts if one.startswith(group)), group)
            changes = ", ".join(f"{edit.renamed or edit.key}: {edit.frm} to {edit.to}" for edit in edits)
            refusals[f"{job} {what} ({changes}): {why}"] = None
    lines = ["| framework | " + " | ".join(PARSED) + " |", "|---" * (len(PARSED) + 1) + "|"]
    for framework, counts in [*sorted(tally.items()), ("all", sum(tally.values(), Counter()))]:
        lines.append(f"| {framework} | " + " | ".join(str(counts[head]) for head in PARSED) + " |")
    return lines, list(refusals)


def _count(
    name: str,
    failure: str,
    found: Sequence[tuple[str, str, tuple[str, ...]]],
    counts: Counter[str],
    seen: dict[tuple[str, ...], str],
    every: bool,
) -> None:
    """Enter the verdicts of one diagnosis, each distinct edit of a job once, and print those that are bad."""
    for what, why, edit in found:
        if what == "plan":
            counts["plans"] += 1
            counts["bad plans"] += bool(why)
            if why:
                print(f"{name} [{failure}] plan: {why}", flush=True)
            continue
        if why.startswith("in vain") and sum(one[0] == what for one in found) > 1:
            why = ""  # beside other edits of the remedy
        if (name, *edit) in seen:
            continue
        seen[name, *edit] = why
        group = why.partition(":")[0] or "good"
        counts[group] += 1
        if every or group not in ("good", "unjudged"):
            print(f"{name} [{failure}] {what}: {edit[1]}: {edit[2]} -> {edit[3]} {why}", flush=True)


def document(jobs_read: int, table: Sequence[str], remaining: Sequence[str], parsed: Sequence[str], refusals: Sequence[str]) -> str:
    """The table of a run for docs, with the releases and what is left."""
    releases = (
        f"| {name} | {', '.join(map(str, entry['releases']))} | {', '.join(entry['entries'])} |" for name, entry in listed().items()
    )
    left = [f"- {line}" for line in remaining] or ["None."]
    refused = [f"- {line}" for line in refusals] or ["None."]
    return "\n".join(
        [
            "# Edits, judged by the frameworks",
            "",
            "Written by `make bench-edits` (`benchmarks/edits`), which fetches the published packages and reads what their entry points",
            "declare: dataclasses, pydantic models, argparse, Hydra's configurations (composed by Hydra itself). The same declarations,",
            "recorded in `rules/declared`, decide which keys an edit may add; `tests/plan/test_declared_keys.py` holds them.",
            "",
            f"{jobs_read} jobs fail in some of 32 ways (eight failures, four cards). An edit is *good* where the release in use, else the",
            "newest, declares its key at its entry point with this type and among its choices; *in vain* where every such release has",
            "the value by default; *unjudged* where no package was read. A whole plan is bad where one of its edits is, or where a file no",
            "longer parses. That settings fit together (what `needs` and `constraints` of rules/frameworks say) is not judged here.",
            "",
            *table,
            "",
            "What is left:",
            "",
            *left,
            "",
            "## By their own parsers",
            "",
            "Each distinct patch, a remedy's or a plan's, is written and the file given to the framework's own code before and after it:",
            "HfArgumentParser, pydantic models, Hydra, tyro, jsonargparse, argparse (`benchmarks/edits/drivers.py`; what trains is not",
            "imported). Scripts are expanded by bash. The newest release that takes the file as it is decides; *older*: an older one that",
            "takes the file refuses the patch; *no effect*: the parser makes the same of both; *not judged*: no driver, or no release",
            "takes the file by itself.",
            "",
            *parsed,
            "",
            "What is not accepted:",
            "",
            *refused,
            "",
            "| framework | releases | entry points |",
            "|---|---|---|",
            *releases,
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
