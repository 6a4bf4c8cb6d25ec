"""Count what labelled failures were and what cured them: `python benchmarks/base_rates.py FOLDER ... [--write]`.

FOLDER holds labelled jobs (labels.py). Each is diagnosed for its regime and phase. It adds one to every cause that its label accepts
(`priors`), and for those to `of`, to every remedy that the label names as a cure (`helped`), and to every one that it calls useless or
harmful and the answer does not reject itself (`harmed`). The counts are printed; with --write they become rules/cures.yaml, which nobody
edits by hand.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from labels import Job, jobs

from diagnose import vocabulary

RULES = Path(__file__).resolve().parent.parent / "rules"
#: What a remedy counts that a label accepts beside the one it calls best.
ALSO = 0.5
#: What makes samples smaller whose kind is known.
SHORTER = frozenset(("lower_seq_len", "lower_image_resolution", "drop_long_samples"))
HEAD = """\
# What labelled failures were and what cured them, counted from {count} of them by benchmarks/base_rates.py, never by hand.
# By regime, phase (`host` where host memory ran out) and cause: how many there were (of), of how many the label names the remedy as a cure
# (helped; a half where it calls another one best), and of how many it calls it useless or harmful though nothing that is known of the job
# rules it out (harmed). A failure of which a label accepts several causes counts for each.
"""


class Counted(NamedTuple):
    """What one job adds to the counts."""

    regime: str
    phase: str
    causes: tuple[str, ...]
    helped: frozenset[str]
    best: frozenset[str]
    harmed: frozenset[str]


def counted(job: Job) -> Counted:
    diagnosis = job.diagnose()
    regime = next((str(fact.value) for fact in diagnosis.facts if fact.name == "run.regime"), "unknown")
    host = any(fact.name == "log.on_card" and fact.value is False for fact in diagnosis.facts)
    refused = {advice.id for advice in diagnosis.outcome.rejected}
    helped = job.helped
    if helped & SHORTER and vocabulary.any_sample() not in job.best:  # two words for one act: the one that says what is made smaller
        helped -= {vocabulary.any_sample()}
    return Counted(regime, "host" if host else diagnosis.verdict.phase or "unknown", job.causes, helped, job.best, job.harmful - refused)


def counts(labelled: Iterable[Counted]) -> dict[str, Any]:
    """By regime, phase and cause how many failures there were, and how often each remedy cured or harmed them."""
    table: dict[str, dict[str, dict[str, Any]]] = {}
    for job in labelled:
        for cause in job.causes:
            of_phase = table.setdefault(job.regime, {}).setdefault(job.phase, {})
            entry = of_phase.setdefault(cause, {"of": 0, "helped": {}, "harmed": {}})
            entry["of"] += 1
            for kind, words, weight in (("helped", job.best, 1), ("helped", job.helped - job.best, ALSO), ("harmed", job.harmed, 1)):
                for word in words:
                    entry[kind][word] = entry[kind].get(word, 0) + weight
    return table


def written(table: Mapping[str, Any], count: int) -> str:
    """The table as YAML, one line for each cause."""
    lines = [HEAD.format(count=count).rstrip("\n")]
    for regime, phases in sorted(table.items()):
        lines.append(f"{regime}:")
        for phase, causes in sorted(phases.items()):
            lines.append(f"  {phase}:")
            for cause, entry in sorted(causes.items()):
                told = [f"{kind}: {{{_listed(entry[kind])}}}" for kind in ("helped", "harmed")]
                lines.append(f"    {cause}: {{of: {entry['of']}, {', '.join(told)}}}")
    return "\n".join(lines) + "\n"


def _listed(counted: Mapping[str, int]) -> str:
    return ", ".join(f"{word}: {number}" for word, number in sorted(counted.items(), key=lambda pair: (-pair[1], pair[0])))


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("folders", nargs="+", type=Path)
    asked.add_argument("--write", action="store_true")
    options = asked.parse_args()
    with tempfile.TemporaryDirectory() as place:
        labelled = [counted(job) for folder in options.folders for job in jobs(folder.resolve(), Path(place))]
    text = written(counts(labelled), len(labelled))
    (RULES / "cures.yaml").write_text(text, encoding="utf-8") if options.write else print(text)


if __name__ == "__main__":
    main()
