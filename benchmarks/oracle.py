"""Everything the program answers, frozen: the proof that a change of the code's shape changes no answer.

    python benchmarks/oracle.py OUT [--jobs FOLDER ...] [--against OLD] [--workers 2]

Runs every case of corpus/, every config of corpus/configs, a fixed set of generated logs and, with --jobs, every job below further
folders (`error.log` and what lies beside it, or the page `page.md`). OUT gets one file per job and format (text in both languages and
verbose, JSON in both, Markdown, HTML, SARIF, the patch, the exit status) and OUT/index.txt, sorted, with the SHA-256 of each.
With --against the two folders are compared: each difference is a line, and the exit status is 1 where there is any.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "corpus"
#: Files of a job that are no input of it.
NOT_GIVEN = ("expected.yaml", "page.md")


class Job(NamedTuple):
    """One run: its name in the index, the folder that it runs in, and the arguments of `explain` (no log: of `check`)."""

    name: str
    folder: str
    logs: tuple[str, ...]
    options: dict[str, Any]


def jobs(further: list[Path], generated: Path) -> list[Job]:
    """Every job of the oracle, by name."""
    found = [*corpus(), *configs(), *logs_made(generated), *(job for folder in further for job in beside(folder.resolve()))]
    return sorted(found, key=lambda job: job.name)


def corpus() -> Iterator[Job]:
    """The cases of corpus/ as their expected.yaml says that they are run."""
    for file in sorted([*CORPUS.glob("*/expected.yaml"), *CORPUS.glob("formats/*/expected.yaml")]):
        want = yaml.load(file.read_bytes(), yaml.CSafeLoader)
        given = want.get("inputs", want)
        options = {"configs": given.get("configs", []), **given.get("options", {})}
        logs = given.get("log", given.get("logs", "error.log"))
        name = f"corpus/{file.parent.relative_to(CORPUS)}"
        yield Job(name, str(file.parent), tuple(logs if isinstance(logs, list) else [logs]), options)


def configs() -> Iterator[Job]:
    """Each file of corpus/configs, checked alone."""
    for file in sorted((CORPUS / "configs").rglob("*")):
        if file.is_file() and not file.name.endswith(".expected.yaml"):
            name = f"configs/{file.relative_to(CORPUS / 'configs')}"
            yield Job(name, str(file.parent), (), {"configs": [file.name], "gpu": "A100-80GB", "gpus": 8})


def logs_made(folder: Path) -> Iterator[Job]:
    """Small logs of benchmarks/logs.py: sixty jobs of a tree, one that dies on every rank, one in the middle."""
    import logs

    logs.tree(folder / "tree", 60)
    for death in ("ranks", "middle", "none"):
        logs.single(folder / f"{death}.log", 1 << 20, death)
    for file in sorted(folder.rglob("*.log")):
        yield Job(f"generated/{file.relative_to(folder)}", str(file.parent), (file.name,), {})


def beside(top: Path) -> Iterator[Job]:
    """The jobs below a folder: each error.log with the files beside it as configs, each page.md alone."""
    for folder in sorted({path.parent for path in top.rglob("*") if path.is_file()}):
        files = [str(path.relative_to(folder)) for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in NOT_GIVEN]
        name = f"{top.name}/{folder.relative_to(top)}"
        if "error.log" in files:
            yield Job(name, str(folder), ("error.log",), {"configs": [file for file in files if file != "error.log"]})
        elif (folder / "page.md").is_file() and files:
            yield Job(name, str(folder), (), {"configs": files})
        if (folder / "page.md").is_file():
            yield Job(f"{name}/page", str(folder), ("page.md",), {})


def answered(job: Job, out: Path) -> list[tuple[str, str]]:
    """Run a job and write its answers; their names with a hash each."""
    from diagnose import check, explain
    from diagnose.plan.patch import patching
    from diagnose.render.formats import RENDERERS
    from diagnose.render.parts import redaction
    from diagnose.render.parts.view import View

    os.chdir(job.folder)
    options = {**job.options, "configs": [Path(config) for config in job.options.get("configs", ())]}
    if "snapshot" in options:
        options["snapshot"] = Path(options["snapshot"])
    texts: dict[str, str] = {}
    try:
        found = explain([Path(log) for log in job.logs], **options) if job.logs else check(options.pop("configs"), **options)
    except Exception as error:  # what a job raises is part of its answer
        texts["error"] = f"{type(error).__name__}: {error}"
    else:
        plan = found.outcome.plan
        masked = redaction.mask_diagnosis(found)
        texts["status"] = str(found.exit_status)
        texts["patch"] = patching.diff(found.documents, plan.edits if plan is not None else ())
        for lang in ("en", "zh"):
            texts[f"{lang}.txt"] = RENDERERS["text"](found, lang, View())
            texts[f"{lang}.verbose.txt"] = RENDERERS["text"](found, lang, View(verbose=True, budget=True, rules=True))
            texts[f"{lang}.json"] = RENDERERS["json"](found, lang, View())
            for format in ("markdown", "html", "sarif"):
                texts[f"{lang}.{format}"] = RENDERERS[format](masked, lang, View())
    rows = []
    for name, text in texts.items():
        place = out / job.name / name
        place.parent.mkdir(parents=True, exist_ok=True)
        data = text.encode("utf-8", "surrogateescape")
        place.write_bytes(data)
        rows.append((f"{job.name}/{name}", hashlib.sha256(data).hexdigest()))
    return rows


def marks(folder: Path) -> dict[str, str]:
    """The hash of each answer of an oracle, by name."""
    rows = (line.split("  ", 1) for line in (folder / "index.txt").read_text().splitlines())
    return {name: mark for mark, name in rows}


def differences(new: Path, old: Path) -> list[str]:
    """What differs between two oracles, a line each."""
    had, have = marks(old), marks(new)
    return [
        f"{'missing' if name not in have else 'new' if name not in had else 'differs'}  {name}"
        for name in sorted({*had, *have})
        if had.get(name) != have.get(name)
    ]


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("out", type=Path)
    asked.add_argument("--jobs", type=Path, nargs="+", default=[], metavar="FOLDER")
    asked.add_argument("--against", type=Path, metavar="OLD")
    asked.add_argument("--only", default="", metavar="PREFIX", help="jobs whose names begin so")
    asked.add_argument("--workers", type=int, default=2)
    options = asked.parse_args()
    out = options.out.resolve()
    against = options.against and options.against.resolve()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as generated, ProcessPoolExecutor(options.workers) as pool:
        todo = [job for job in jobs(options.jobs, Path(generated)) if job.name.startswith(options.only)]
        rows = sorted(row for found in pool.map(answered, todo, [out] * len(todo), chunksize=4) for row in found)
    (out / "index.txt").write_text("".join(f"{mark}  {name}\n" for name, mark in rows))
    whole = hashlib.sha256((out / "index.txt").read_bytes()).hexdigest()
    print(f"{len(todo)} jobs, {len(rows)} answers: {whole}")
    found = differences(out, against) if against else []
    print("\n".join(found[:200]) or "no difference") if against else None
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
