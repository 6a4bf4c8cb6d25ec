"""How often the answer to a known failure is right: `python benchmarks/accuracy.py [FOLDER]`.

FOLDER holds cases as docs/corpus.md describes them, by default corpus/. A case counts where its expected.yaml says what is right:

  status     the failure is one of memory, is suspected to be one, or is none
  figures    the sizes of the message, as printed
  tensor     the tensor that was requested, to the byte
  cause@1    the cause named first
  fix@1, @3  a remedy that the case names comes first, is among the first three
  bad@3      a remedy that the case rejects is among the first three: the fewer the better

The cases of corpus/ were written or read by those who wrote the rules, and the tests hold the rules to them: what is printed of them says
that nothing was lost, and not how often a failure that nobody has looked at is understood. For that take a folder of your own.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from diagnose import explain

CORPUS = Path(__file__).resolve().parent.parent / "corpus"
MEASURES = ("status", "figures", "tensor", "cause@1", "fix@1", "fix@3", "bad@3")


def expectation(case: dict[str, Any]) -> dict[str, Any]:
    """What is right for a case, in the short form also where a reference failure says more."""
    if "ledger" not in case:
        expect: dict[str, Any] = case["expect"]
        return expect
    root = next(event for event in case["events"] if event["root"])
    sizes = ("requested", "capacity", "free", "process_in_use", "allocated", "reserved_unallocated")
    return {
        "status": case["verdict"]["status"],
        "figures": {name: root[name] for name in sizes if root.get(name)},
        "first_cause": case["causes"][0]["id"],
        "first_remedy": case["remedies"][0]["id"],
        "rejected": [advice["id"] for advice in case["rejected"]],
    }


def report_of(folder: Path, case: dict[str, Any]) -> dict[str, Any]:
    """The report on a case, diagnosed as its author would have it."""
    inputs = case.get("inputs", case)
    options = dict(inputs.get("options", {}))
    if "snapshot" in options:
        options["snapshot"] = folder / options["snapshot"]
    configs = [folder / config for config in inputs.get("configs", [])]
    return explain(folder / inputs.get("log", "error.log"), configs=configs, **options).to_dict("en")


def judged(expect: dict[str, Any], report: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    """Each measure that the case knows the right answer to, and whether the report has it."""
    verdict, remedies = report["verdict"], [remedy["id"] for remedy in report["remedies"]]
    event = report["events"][verdict["event"]] if verdict["event"] is not None else {}
    if "status" in expect:
        allowed = expect["status"] if isinstance(expect["status"], list) else [expect["status"]]
        yield "status", verdict["status"] in allowed
    for name, text in expect.get("figures", {}).items():
        yield "figures", (event.get(name) or {}).get("text") == text
    if "attribution" in expect:
        yield "tensor", [entry["bytes"] for entry in report["attributions"][:1]] == [expect["attribution"]]
    if "first_cause" in expect:
        yield "cause@1", [cause["id"] for cause in report["causes"][:1]] == [expect["first_cause"]]
    right = {expect.get("first_remedy"), *expect.get("remedies", [])} - {None}
    if right:
        yield "fix@1", bool(right & set(remedies[:1]))
        yield "fix@3", bool(right & set(remedies[:3]))
    if expect.get("rejected"):
        yield "bad@3", bool(set(expect["rejected"]) & set(remedies[:3]))


def table(cases: list[tuple[dict[str, Any], dict[str, Any]]]) -> str:
    """The measures over cases and their reports: how many are so, of how many that say what is right."""
    true, known = Counter[str](), Counter[str]()
    for expect, report in cases:
        for measure, holds in judged(expect, report):
            known[measure] += 1
            true[measure] += holds
    lines = [f"{len(cases)} failures"]
    lines += [
        f"{measure:<9}{true[measure]:>4} of {known[measure]:>3}  {true[measure] / known[measure]:>6.1%}"
        for measure in MEASURES
        if known[measure]
    ]
    return "\n".join(lines)


def main(folder: Path) -> None:
    cases = []
    for path in sorted(folder.glob("*/expected.yaml")):
        case = yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
        cases.append((expectation(case), report_of(path.parent, case)))
    print(table(cases))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else CORPUS)
