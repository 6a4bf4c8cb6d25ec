"""Count what cured labelled failures: `python benchmarks/base_rates.py FOLDER ... [--write]`.

FOLDER holds jobs with their labels in one of three forms: a folder per job with expected.yaml as in corpus/ (`expect.remedies`,
`first_remedy`, `rejected`), the same with `fix` and `harmful` at its top, or a YAML file per case beside the `render.py` that makes its
log and configs (`truth.fix`, `truth.harmful`). Each job is diagnosed for its regime and phase. It adds one to `of`, to every remedy that
its label names as a cure (`helped`), and to every one that the label calls useless or harmful and the answer does not reject itself
(`harmed`). The counts are printed; with --write they become rules/cures.yaml, which nobody edits by hand.
"""

from __future__ import annotations

import argparse
import importlib.util
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from diagnose import check, explain
from diagnose.diagnosis import Diagnosis

RULES = Path(__file__).resolve().parent.parent / "rules"
HEAD = """\
# How often a remedy cured a failure, counted from {count} labelled failures by benchmarks/base_rates.py, never by hand.
# of: failures that were labelled; helped: those whose label names the remedy as a cure; harmed: those whose label calls it useless or
# harmful though nothing that is known of the job rules it out. `phases`: by the phase that failed, `host` where host memory ran out;
# `causes`: by the labelled cause.
"""


class Labelled(NamedTuple):
    """A job that was diagnosed, and what its label says."""

    diagnosis: Diagnosis
    causes: tuple[str, ...]
    helped: frozenset[str]
    harmed: frozenset[str]


def jobs(folder: Path) -> Iterator[Labelled]:
    """Every labelled job of a folder that names a cure."""
    renderer = next((place / "render.py" for place in (folder, folder.parent) if (place / "render.py").is_file()), None)
    if renderer is not None:
        yield from _rendered(folder, renderer)
    for file in sorted(folder.glob("*/expected.yaml")):
        label = yaml.safe_load(file.read_text(encoding="utf-8"))
        inputs = label.get("inputs", label)
        files = label.get("files") or {"logs": [inputs.get("log", "error.log")], "configs": inputs.get("configs", [])}
        expect = label.get("expect", label)
        cures = {expect.get("first_remedy"), *expect.get("remedies", ()), *(label.get("fix") or ())} if "ledger" not in label else set()
        harmful = expect.get("rejected", ()) if "expect" in label else label.get("harmful") or ()
        causes = label.get("cause") or [expect.get("first_cause")] if "ledger" not in label else []
        if not cures - {None} or not all((file.parent / log).is_file() for log in files["logs"]):
            continue
        configs = [file.parent / config for config in files.get("configs") or ()]
        options = {name: value for name, value in inputs.get("options", {}).items() if name != "snapshot"}
        logs = [file.parent / log for log in files["logs"]]
        yield Labelled(_diagnosed(logs, configs, options), tuple(filter(None, causes)), _words(cures), _words(harmful))


def _rendered(folder: Path, renderer: Path) -> Iterator[Labelled]:
    spec = importlib.util.spec_from_file_location("render", renderer)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with tempfile.TemporaryDirectory() as place:
        for file in sorted(folder.glob("*.yaml")):
            case = yaml.safe_load(file.read_text(encoding="utf-8"))
            truth = case.get("truth") or {}
            cures = _words(truth.get("fix") or ())
            if cures:
                log, configs = module.render(case, Path(place))
                causes = () if truth.get("cause") in (None, "unknown") else (truth["cause"], *(truth.get("cause_also") or ()))
                yield Labelled(_diagnosed([log], configs, {}), causes, cures, _words(truth.get("harmful") or ()))


def _diagnosed(logs: list[Path], configs: list[Path], options: Mapping[str, Any]) -> Diagnosis:
    return explain(logs, configs=configs, **options) if logs else check(configs, frontier=False, **options)


def _words(names: Any) -> frozenset[str]:
    return frozenset(str(name) for name in names if name and not str(name).startswith("other"))


def counts(labelled: list[Labelled]) -> dict[str, Any]:
    """Per regime: by phase and by cause how many failures there were, and how many of them each remedy cured or harmed."""
    table: dict[str, Any] = {}
    for job in labelled:
        regime = next((str(fact.value) for fact in job.diagnosis.facts if fact.name == "run.regime"), "unknown")
        row = table.setdefault(regime, {"phases": {}, "causes": {}})
        host = any(fact.name == "log.on_card" and fact.value is False for fact in job.diagnosis.facts)
        phase = "host" if host else job.diagnosis.verdict.phase or "unknown"
        entries = [row["phases"].setdefault(phase, {"of": 0, "helped": {}, "harmed": {}})]
        entries += [row["causes"].setdefault(cause, {"of": 0, "helped": {}, "harmed": {}}) for cause in job.causes]
        for entry in entries:
            entry["of"] += 1
            refused = {advice.id for advice in job.diagnosis.outcome.rejected}
            for kind, words in (("helped", job.helped), ("harmed", job.harmed - refused)):
                for word in words:
                    entry[kind][word] = entry[kind].get(word, 0) + 1
    return table


def written(table: Mapping[str, Any], count: int) -> str:
    """The table as YAML, one line for each phase or cause."""
    lines = [HEAD.format(count=count).rstrip("\n")]
    for regime in sorted(table):
        lines.append(f"{regime}:")
        for part in ("phases", "causes"):
            lines.append(f"  {part}:" if table[regime][part] else f"  {part}: {{}}")
            for name, entry in sorted(table[regime][part].items()):
                told = [f"{kind}: {{{_listed(entry[kind])}}}" for kind in ("helped", "harmed")]
                lines.append(f"    {name}: {{of: {entry['of']}, {', '.join(told)}}}")
    return "\n".join(lines) + "\n"


def _listed(counted: Mapping[str, int]) -> str:
    return ", ".join(f"{word}: {number}" for word, number in sorted(counted.items(), key=lambda pair: (-pair[1], pair[0])))


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("folders", nargs="+", type=Path)
    asked.add_argument("--write", action="store_true")
    options = asked.parse_args()
    labelled = [job for folder in options.folders for job in jobs(folder.resolve())]
    text = written(counts(labelled), len(labelled))
    (RULES / "cures.yaml").write_text(text, encoding="utf-8") if options.write else print(text)


if __name__ == "__main__":
    main()
