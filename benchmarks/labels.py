"""Labelled failures, for the benchmarks that count them (base_rates.py) and that hold the decision against them (judgement.py).

A folder holds jobs with their labels in one of two forms: a folder per job with expected.yaml as in corpus/, where `fix` and `harmful`
say what cures and what does not (else what is expected of the answer: `expect.remedies`, `first_remedy`, `rejected`), or a YAML file per
case beside the `render.py` that makes its log and configs (`truth.fix`, `truth.harmful`).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from diagnose import check, explain
from diagnose.diagnosis import Diagnosis


@dataclass
class Job:
    """A job and what its label says: the causes that an expert accepts, the remedies that cured it and those that are of no use. A cause
    that cannot be read off the input is no question (`asked`)."""

    name: str
    logs: list[Path]
    configs: list[Path]
    options: Mapping[str, Any]
    causes: tuple[str, ...]
    helped: frozenset[str]
    best: frozenset[str]
    harmful: frozenset[str]
    asked: bool = True

    def diagnose(self) -> Diagnosis:
        if self.logs:
            return explain(self.logs, configs=self.configs, **self.options)
        return check(self.configs, frontier=False, **self.options)


def jobs(folder: Path, place: Path) -> Iterator[Job]:
    """Every labelled job of a folder that names a cure; what has to be rendered is written below `place`."""
    renderer = next((where / "render.py" for where in (folder, folder.parent) if (where / "render.py").is_file()), None)
    if renderer is not None:
        yield from _rendered(folder, renderer, place)
    for file in sorted(folder.glob("*/expected.yaml")):
        label = yaml.load(file.read_text(encoding="utf-8"), yaml.CSafeLoader)
        inputs, expect = label.get("inputs", label), label.get("expect", label)
        files = label.get("files") or {"logs": [inputs.get("log", "error.log")], "configs": inputs.get("configs", [])}
        if "ledger" in label or not all((file.parent / log).is_file() for log in files["logs"]):
            continue
        options = {name: value for name, value in inputs.get("options", {}).items() if name != "snapshot"}
        job = Job(
            file.parent.name,
            [file.parent / log for log in files["logs"]],
            [file.parent / config for config in files.get("configs") or ()],
            options,
            tuple(filter(None, label.get("cause") or [expect.get("first_cause")])),
            _words(label.get("fix") or [expect.get("first_remedy"), *expect.get("remedies", ())]),
            _words([label.get("best") or expect.get("first_remedy")]),
            _words([*expect.get("rejected", ()), *(label.get("harmful") or ())]),
        )
        if job.helped:
            yield job


def _rendered(folder: Path, renderer: Path, place: Path) -> Iterator[Job]:
    spec = importlib.util.spec_from_file_location("render", renderer)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for file in sorted(folder.glob("*.yaml")):
        case = yaml.load(file.read_text(encoding="utf-8"), yaml.CSafeLoader)
        truth, derivable = case.get("truth") or {}, case.get("derivable") or {}
        if cures := _words(truth.get("fix") or ()):
            (place / file.stem).mkdir(parents=True, exist_ok=True)
            log, configs = module.render(case, place / file.stem)
            causes = () if truth.get("cause") in (None, "unknown") else (truth["cause"], *(truth.get("cause_also") or ()))
            yield Job(file.stem, [log], configs, {}, causes, cures, cures, _words(truth.get("harmful") or ()), bool(derivable.get("cause")))


def _words(names: Any) -> frozenset[str]:
    return frozenset(str(name) for name in names if name and not str(name).startswith("other"))
