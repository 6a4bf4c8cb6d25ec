"""Whether triage's groups are the mistakes that were made: pairs of failed jobs, against the truth of a generator.

    python benchmarks/triage/agreement.py [--cases 80] [--times 5] [--jobs 600] [--seed 7] [--check]

The generator repeats failures of the corpus as a cluster does: other ranks, hosts, processes, times, users' folders and lines of code, in
a part of the jobs another free figure, in another part a request of another length, another learning rate and output folder in the config.
What a case of the corpus fails of is one mistake, whoever makes it, and every pair across two cases counts against the groups, but of
cases that say that they make the same one (`mistake`). A second
set is the tree of `tree.py`, where some dozen mistakes are made by hundreds of jobs with figures of their own.

Precision: of the pairs of jobs in one group that is called one mistake, the share that repeats one. Recall: of the pairs that repeat one
mistake, the share that stands in one group. `alike`: the precision of groups that are only said to look alike, where nothing is claimed.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import yaml

from diagnose.cluster.store import group_fingerprint
from diagnose.units import show, size_of

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from triage import tree

CORPUS = Path(__file__).resolve().parents[2] / "corpus"

#: What must be reached.
PRECISION, RECALL = 0.95, 0.85

RANK = re.compile(r"(\[rank|\brank[ =:]{1,2})(\d)\b")
LINE = re.compile(r'(File "(?!.{0,200}(?:site-packages|dist-packages))[^"]{1,200}", line )(\d+)')
CLOCK = re.compile(r"\b(\d\d):(\d\d):(\d\d)\b")
PROCESS = re.compile(r"\b(pid[=: ]{1,2})(\d{3,7})\b")
HOST = re.compile(r"\b(node|host|worker)-?(\d{1,3})\b")
HOME = re.compile(r"/(home|data|workspace|mnt)/(\w+)/")
FREE = re.compile(r"(of which |; )(\d+\.\d\d [GM]iB)( is free| free)")
ASKED = re.compile(r"(Tried to allocate )(\d+\.\d\d [GM]iB)")
RATE = re.compile(r"(learning_rate:? ?=?)(\s*)([\d.e-]+)")


class Agreement(NamedTuple):
    """Pairs of jobs: claimed as one mistake, and rightly; alike, and rightly; of one mistake, and found in one group."""

    claimed: int
    claimed_right: int
    alike: int
    alike_right: int
    true: int
    together: int

    @property
    def precision(self) -> float:
        return self.claimed_right / self.claimed if self.claimed else 1.0

    @property
    def recall(self) -> float:
        return self.together / self.true if self.true else 1.0


def agreement(rows: Iterable[tuple[object, str, bool]]) -> Agreement:
    """Of (mistake, group, whether the group is called one mistake) for each job; jobs without a group are alone."""
    groups: dict[str, list[object]] = defaultdict(list)
    claims: dict[str, bool] = {}
    mistakes: Counter[object] = Counter()
    for number, (mistake, group, claimed) in enumerate(rows):
        mistakes[mistake] += 1
        groups[group or f"alone {number}"].append(mistake)
        claims[group] = claimed
    pairs = {True: [0, 0], False: [0, 0]}
    for group, members in groups.items():
        counts = pairs[claims.get(group, False)]
        counts[0] += pairs_of(len(members))
        counts[1] += sum(map(pairs_of, Counter(members).values()))
    (called, rightly), (alike, alike_right) = pairs[True], pairs[False]
    return Agreement(called, rightly, alike, alike_right, sum(map(pairs_of, mistakes.values())), rightly + alike_right)


def pairs_of(count: int) -> int:
    return count * (count - 1) // 2


# -- the generator


def lay(folder: Path, cases: list[str], times: int, seed: int) -> dict[str, object]:
    """Each case so many times, as jobs in folders of their own; the mistake of each log."""
    made: dict[str, object] = {}
    for case in cases:
        given = yaml.load((CORPUS / case / "expected.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)
        mistake, given = given.get("mistake", case), given.get("inputs", given)
        for time in range(times):
            dice = random.Random(f"{seed} {case} {time}")
            job = folder / f"job-{len(made):05d}"
            job.mkdir(parents=True)
            (job / "train.log").write_text(repeated((CORPUS / case / "error.log").read_text(encoding="utf-8"), dice), encoding="utf-8")
            for name in given.get("configs", []):
                text = (CORPUS / case / name).read_text(encoding="utf-8")
                rate = dice.choice(("1e-5", "2e-5"))
                (job / Path(name).name).write_text(RATE.sub(rf"\g<1>\g<2>{rate}", text), encoding="utf-8")
            made[f"{job.name}/train.log"] = mistake
    return made


def repeated(log: str, dice: random.Random) -> str:
    """The log of another job that makes the same mistake."""
    shift, host, minutes, user = dice.randrange(8), dice.randrange(90), dice.randrange(60), f"user{dice.randrange(50)}"
    log = RANK.sub(lambda m: f"{m[1]}{(int(m[2]) + shift) % 8}", log)
    log = LINE.sub(lambda m: f"{m[1]}{int(m[2]) + dice.choice((0, 0, 3))}", log)
    log = CLOCK.sub(lambda m: f"{m[1]}:{(int(m[2]) + minutes) % 60:02d}:{m[3]}", log)
    log = PROCESS.sub(lambda m: f"{m[1]}{int(m[2]) + host}", log)
    log = HOST.sub(lambda m: f"{m[1]}-{int(m[2]) + host}" if "-" in m[0] else m[0], log)
    log = HOME.sub(lambda m: f"/{m[1]}/{user}/", log)
    kind = dice.random()
    if kind < 0.3:
        log = FREE.sub(lambda m: f"{m[1]}{other(m[2], 0.9 + dice.random() * 0.1)}{m[3]}", log)
    elif kind < 0.5:
        share = 1 + dice.random() * 0.02
        log = ASKED.sub(lambda m: f"{m[1]}{other(m[2], share)}", log)
    return log


def other(text: str, share: float) -> str:
    size = size_of(text)
    return text if size is None else show(round(size.bytes * share))


# -- what triage makes of it


def grown(folder: Path, jobs: int, seed: int) -> dict[str, object]:
    """The tree of `tree.py`: some with a config, half with other figures; the mistake of each log."""
    tree.tree(folder, jobs, jobs * 40_000, 0.4, seed)
    rows = map(json.loads, (folder / "truth.jsonl").read_text().splitlines())
    return {log: row["mistake"] for row in rows for log in row["logs"]}


def grouped(folder: Path, store: Path, truth: dict[str, object]) -> list[tuple[object, str, bool]]:
    """Each job whose failure triage found: its mistake, its group, and whether that is called one mistake."""
    import duckdb

    tool = str(Path(sys.executable).with_name("oomdoctor"))
    command = [tool, "triage", str(folder), "--store", str(store), "--jobs", "2"]
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    found = duckdb.connect(str(store), read_only=True).execute(
        """select j.logs, j.fingerprint, mode(parts order by parts) over (partition by j.fingerprint) from jobs j
        left join (select diagnosis, json_extract_string(digest, '$.parts') as parts from diagnoses) using (diagnosis)
        where j.status in ('oom', 'suspected')"""
    )
    rows: list[tuple[object, str, bool]] = []
    for logs, fingerprint, parts in found.fetchall():
        claimed = bool(parts) and group_fingerprint.is_one_mistake(group_fingerprint.read(parts))
        rows.append((truth[str(Path(logs[0]).relative_to(folder))], fingerprint or "", claimed))
    return rows


def confusions(rows: list[tuple[object, str, bool]]) -> list[str]:
    """The claimed groups that hold several mistakes, the largest first, and the mistakes that stand in several groups."""
    members: dict[str, Counter[object]] = defaultdict(Counter)
    homes: dict[object, Counter[str]] = defaultdict(Counter)
    for mistake, group, claimed in rows:
        homes[mistake][group] += 1
        if claimed:
            members[group][mistake] += 1
    mixed = [(group, counts) for group, counts in members.items() if len(counts) > 1]
    split = [(mistake, counts) for mistake, counts in homes.items() if len(counts) > 1]
    texts = [f"one group: {dict(counts)}" for _, counts in sorted(mixed, key=lambda pair: -pair[1].total())]
    return texts + [f"split: {mistake} {sorted(counts.values(), reverse=True)}" for mistake, counts in split]


def repeatable(count: int, seed: int) -> list[str]:
    """Cases of the corpus that are one log of a failure of memory, a sample."""
    cases = []
    for path in sorted(CORPUS.glob("*/expected.yaml")):
        expected = yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
        status = (expected.get("expect") or expected.get("verdict") or {}).get("status")
        if (path.parent / "error.log").is_file() and status in ("oom", "suspected") and "log" not in expected:
            cases.append(path.parent.name)
    return sorted(random.Random(seed).sample(cases, min(count, len(cases))))


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--cases", type=int, default=80)
    asked.add_argument("--times", type=int, default=5)
    asked.add_argument("--jobs", type=int, default=600, help="of the tree")
    asked.add_argument("--seed", type=int, default=7)
    asked.add_argument("--check", action="store_true", help="fail where a bar is missed")
    o = asked.parse_args()
    held = [report(kind, o) for kind in ("corpus", "tree")]
    return 1 if o.check and not all(held) else 0


def report(kind: str, o: argparse.Namespace) -> bool:
    """Print the agreement on one of the two sets of jobs; whether it reaches both bars."""
    with tempfile.TemporaryDirectory(prefix="agreement-") as name:
        folder = Path(name) / "jobs"
        truth = lay(folder, repeatable(o.cases, o.seed), o.times, o.seed) if kind == "corpus" else grown(folder, o.jobs, o.seed)
        rows = grouped(folder, Path(name) / "triage.duckdb", truth)
    of = agreement(rows)
    print(f"-- {kind}")
    print(f"{len(rows)} failures of {len({row[0] for row in rows})} mistakes in {len({row[1] for row in rows})} groups")
    print(f"precision {of.precision:6.1%}  of {of.claimed:,} pairs called one mistake (at least {PRECISION:.0%})")
    print(f"recall    {of.recall:6.1%}  of {of.true:,} pairs of one mistake (at least {RECALL:.0%})")
    print(f"alike     {of.alike_right / max(of.alike, 1):6.1%}  of {of.alike:,} pairs that only look alike")
    for text in confusions(rows)[:30]:
        print("  ", text)
    return of.precision >= PRECISION and of.recall >= RECALL


if __name__ == "__main__":
    sys.exit(main())
