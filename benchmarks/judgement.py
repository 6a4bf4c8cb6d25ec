"""How good the decision is on labelled failures: `python benchmarks/judgement.py FOLDER ...`.

FOLDER holds labelled jobs (labels.py). Each is diagnosed with rules/cures.yaml counted anew without it, so that no answer rests on its
own label. Printed: the first cause and the first remedies against the label, harm, how good the words for sureness are, and what three
constant answers would reach. Sound use: compare two versions on the same folders.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

from base_rates import counted, counts
from labels import Job, jobs

from diagnose import rule_files
from diagnose.diagnosis import Diagnosis

CONSTANT = {
    "hint of PyTorch": ["expandable_segments"],
    "advice of forums": ["lower_micro_batch", "gradient_checkpointing", "lower_seq_len"],
    "less of everything": ["lower_micro_batch", "smaller_samples", "bigger_gpu"],
}


def answers(folders: list[Path], place: Path) -> Iterator[tuple[Job, Diagnosis]]:
    """Every job with its diagnosis, its own label left out of the counts."""
    labelled = [(job, counted(job)) for folder in folders for job in jobs(folder.resolve(), place)]
    table = rule_files.table("cures")
    for job, _ in labelled:
        without = counts(other for elsewhere, other in labelled if elsewhere.name != job.name)
        table.clear()
        table.update(without)
        yield job, job.diagnose()


def remedies(diagnosis: Diagnosis) -> list[str]:
    """The remedies as printed: the steps of the plan, then the rest."""
    plan = diagnosis.outcome.plan
    return list(dict.fromkeys([*(plan.steps if plan else ()), *(remedy.id for remedy in diagnosis.outcome.remedies)]))


def share(hits: list[bool]) -> str:
    return f"{sum(hits):>4}/{len(hits):<4} {sum(hits) / max(len(hits), 1):.1%}"


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("folders", nargs="+", type=Path)
    folders = asked.parse_args().folders
    causes: list[bool] = []
    words: dict[str, list[bool]] = {}
    firsts: list[bool] = []
    threes: list[bool] = []
    harms: list[bool] = []
    constant: dict[str, list[bool]] = {name: [] for name in CONSTANT}
    with tempfile.TemporaryDirectory() as place:
        for job, diagnosis in answers(folders, Path(place)):
            leading = [cause for cause in diagnosis.judgement.causes if not cause.also_true and cause.cause != "unknown"]
            if job.asked and job.causes:
                causes.append(bool(leading) and leading[0].cause in job.causes)
                if leading:
                    words.setdefault({"fires": "certain"}.get(leading[0].outcome, leading[0].outcome), []).append(causes[-1])
            listed = remedies(diagnosis)
            firsts.append(bool(job.helped.intersection(listed[:1])))
            threes.append(bool(job.helped.intersection(listed[:3])))
            harms.append(bool(job.harmful.intersection(listed[:3])))
            for name, advice in CONSTANT.items():
                constant[name].append(bool(job.helped.intersection(advice)))
    print(f"first cause right        {share(causes)}")
    for word, hits in sorted(words.items()):
        print(f"  called {word:<15} {share(hits)}")
    print(f"first remedy cures       {share(firsts)}\none of three cures       {share(threes)}\na harmful one of three   {share(harms)}")
    for name, hits in constant.items():
        print(f"constant: {name:<19}{share(hits)}")


if __name__ == "__main__":
    main()
