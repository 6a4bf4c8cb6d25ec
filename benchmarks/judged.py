"""Count how remedies on offer were judged: `python benchmarks/judged.py FOLDER ... [--write]`.

FOLDER holds labelled jobs (labels.py). Each is diagnosed with the offers as the rules order them. For every remedy on offer it is counted
by the rule of the first cause how often it was offered, and how often the label accepts it, calls it the best, and calls it useless or
harmful. Printed is what the order by these counts is worth on jobs that they were not counted from, a tenth held
back at a time; with --write the counts become rules/judged.yaml, which nobody edits by hand.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from labels import Job, jobs

from diagnose import rule_files

RULES = Path(__file__).resolve().parent.parent / "rules"
#: Into how many parts the jobs are dealt.
PARTS = 10
HEAD = """\
# How remedies were judged that were on offer, counted from {count} labelled failures by benchmarks/judged.py, never by hand. By the rule of
# the first cause and by remedy: how often it was on offer, and of these how often the label accepts it, calls it the best, and calls it
# useless or harmful.
"""


class Shown(NamedTuple):
    """The answer to a job: the rule of its first cause, and its remedies in order."""

    rule: str
    remedies: tuple[str, ...]
    job: Job


def shown(job: Job) -> Shown:
    diagnosis = job.diagnose()
    causes, plan = diagnosis.judgement.causes, diagnosis.outcome.plan
    remedies = dict.fromkeys([*(plan.steps if plan else ()), *(remedy.id for remedy in diagnosis.outcome.remedies)])
    return Shown(causes[0].rule if causes else "", tuple(remedies), job)


def counts(answers: Iterable[Shown]) -> dict[str, dict[str, list[int]]]:
    table: dict[str, dict[str, list[int]]] = {}
    for answer in answers:
        label, entry = answer.job, table.setdefault(answer.rule, {})
        for word in answer.remedies:
            judged = (1, word in label.helped, word in label.best, word in label.harmful)
            entry[word] = [old + int(new) for old, new in zip(entry.get(word, (0, 0, 0, 0)), judged, strict=True)]
    return table


def use(table: Mapping[str, Mapping[str, Sequence[int]]]) -> None:
    kept = rule_files.table("judged")
    kept.clear()
    kept.update(table)


def held_back(answers: Sequence[Shown]) -> Iterator[Shown]:
    """The answer to every job with the counts of the parts that it is not in."""
    dealt = random.Random(0).sample(answers, len(answers))
    for part in range(PARTS):
        use(counts(answer for at, answer in enumerate(dealt) if at % PARTS != part))
        yield from (shown(answer.job) for answer in dealt[part::PARTS])


def tally(name: str, answers: Sequence[Shown]) -> str:
    best = [answer.job.best.intersection(answer.remedies[:1]) for answer in answers if answer.job.best]
    first = [answer.job.helped.intersection(answer.remedies[:1]) for answer in answers]
    harm = [answer.job.harmful.intersection(answer.remedies[:3]) for answer in answers]
    figures = (sum(map(bool, hits)) / max(len(hits), 1) for hits in (first, best, harm))
    return f"{name:<24}" + "".join(f"{figure:>10.1%}" for figure in figures)


def written(table: Mapping[str, Mapping[str, Sequence[int]]], count: int) -> str:
    """The table as YAML, one line for each rule."""
    return HEAD.format(count=count) + "".join(f"{rule}: {{{_listed(entry)}}}\n" for rule, entry in sorted(table.items()) if rule)


def _listed(entry: Mapping[str, Sequence[int]]) -> str:
    return ", ".join(f"{word}: [{', '.join(map(str, numbers))}]" for word, numbers in sorted(entry.items()))


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("folders", nargs="+", type=Path)
    asked.add_argument("--write", action="store_true")
    options = asked.parse_args()
    use({})  # without judgements the order of the rules stands
    with tempfile.TemporaryDirectory() as where:
        answers = [shown(job) for folder in options.folders for job in jobs(folder.resolve(), Path(where))]
        print(f"{len(answers)} answers{'':<13}first cures   is best   one of three useless")
        print(tally("in the order of the rules", answers))
        print(tally("by counts without them", list(held_back(answers))))
    if options.write:
        (RULES / "judged.yaml").write_text(written(counts(answers), len(answers)), encoding="utf-8")


if __name__ == "__main__":
    main()
