"""A week of a small cluster: failures of the corpus, some again and again, and a manifest that says whose they were and what they cost.

`python benchmarks/week.py FOLDER` lays it down; `oomdoctor triage FOLDER/jobs.jsonl --out FOLDER/report.html` is what one does on Monday.
"""

from __future__ import annotations

import argparse
import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

CORPUS = Path(__file__).resolve().parent.parent / "corpus"

#: A case, its configs, and how often it happened.
CASES = (
    ("checkpointing-switched-off", ("lora.yaml",), 31),
    ("adapters-do-not-shrink-activations", ("sft.yaml",), 11),
    ("llamafactory-6800", ("qwen2vl_dpo.yaml", "ds_z3_config.json"), 14),
    ("axolotl-2143", ("config.yaml",), 9),
    ("killed-while-offloading", ("ds_z3_offload_config.json",), 8),
    ("openrlhf-392", ("train_ppo.sh",), 6),
    ("trl-3172", ("grpo.py", "run.sh", "deepspeed_zero3.yaml"), 5),
    ("every-rank-on-card-0", (), 3),
)

#: Jobs that came to their end, and what each of them printed.
HEALTHY = 163
DONE = "{'loss': 1.1043, 'learning_rate': 1e-05, 'epoch': 0.98}\n{'train_runtime': 4012.8, 'train_loss': 0.9127, 'epoch': 1.0}\n"

#: Monday, 18 November 2024; who works there, and on what.
BEGIN = datetime(2024, 11, 18, 7, tzinfo=UTC)
USERS = ("amber", "bao", "chen", "dmitri", "esther")
PROJECTS = ("alignment", "pretraining", "vision")


def lay(folder: Path) -> Path:
    """The jobs, each in a folder of its own; the manifest that names them."""
    lines, number = [], 0
    whole = sum(times for _, _, times in CASES)
    for case, configs, times in CASES:
        for _ in range(times):
            place = (number * 37) % whole  # over the week, mixed
            job = folder / f"run-{place:03}"
            job.mkdir(parents=True)
            for name in ("error.log", *configs):
                shutil.copy(CORPUS / case / name, job)
            about = {"gpus": 8 * (1 + place % 4), "elapsed": 1800 + (place * 7907) % 50000} if place % 6 else {}
            ended = BEGIN + timedelta(minutes=place * 110)
            who = {"user": USERS[place % len(USERS)], "project": PROJECTS[place % len(PROJECTS)], "ended": ended.isoformat()}
            paths = {"log": f"{job.name}/error.log", "config": [f"{job.name}/{name}" for name in configs]}
            lines.append(json.dumps({"id": job.name, **paths, **who, **about, "state": "FAILED"}))
            number += 1
    for place in range(HEALTHY):
        job = folder / f"done-{place:03}"
        job.mkdir()
        (job / "train.log").write_text(DONE, encoding="utf-8")
        lines.append(json.dumps({"id": job.name, "log": f"{job.name}/train.log", "state": "COMPLETED"}))
    manifest = folder / "jobs.jsonl"
    manifest.write_text("\n".join(sorted(lines)) + "\n", encoding="utf-8")
    return manifest


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("folder", type=Path, metavar="FOLDER", help="a folder that is new or empty")
    print(lay(asked.parse_args().folder))
