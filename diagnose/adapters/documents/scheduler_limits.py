"""What the scheduler gives a job, as far as the script asks for it: processes of `srun`, nodes, host memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from diagnose.adapters.documents.started_programs import Started
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.shell import sbatch
from diagnose.facts import Fact, Witness
from diagnose.units import Size


def scheduled(programs: Sequence[Started]) -> Iterator[Fact]:
    """Facts of the first manifest that starts a trainer, and of the first script with `#SBATCH` lines."""
    scripts = [start for start in programs if start.trains and start.form == "shell"]
    manifest = next((start for start in scripts if "resources" in start.text or "ReplicaSpecs" in start.text), None)
    if manifest is not None:
        from diagnose.adapters.documents.pod_manifest import limits

        yield from limits(manifest)
    start = next((start for start in programs if start.form == "shell" and "#SBATCH" in start.text), None)
    if start is None:
        return
    options = sbatch.parse_options(start.text)
    limit = sbatch.node_memory(options)
    if limit is not None:
        mebibytes, offset = limit
        yield Fact("host.ram", Size.exactly(mebibytes * 2**20), "config", _at(start, offset, "#SBATCH --mem"))
    cards = sbatch.count(options, "gpus-per-node")
    if cards and not any("CUDA_VISIBLE_DEVICES" in program.launch.env for program in programs):
        offset = options["gpus-per-node"][1]
        option = "gres" if "--gres" in start.text[start.text.rfind("\n", 0, offset) + 1 : offset] else "gpus-per-node"
        yield Fact("run.cuda_devices", cards, "config", _at(start, offset, f"#SBATCH --{option}"))
    tasks = _tasks(options)
    trainer = next((program for program in programs if program.trains and program.name == start.name), None)
    if tasks is not None and trainer is not None and trainer.launch.spread and framework_tables.launcher(trainer.launch.launcher) is None:
        count, option = tasks
        yield Fact("parallel.world", count, "config", _at(start, options[option][1], f"#SBATCH --{option}"))
    nodes = sbatch.count(options, "nodes")
    if nodes is not None and trainer is not None and trainer.launch.spread:
        yield Fact("parallel.nodes", nodes, "config", _at(start, options["nodes"][1], "#SBATCH --nodes"))


def _tasks(options: sbatch.SbatchOptions) -> tuple[int, str] | None:
    """How many processes `srun` starts, and the option that says so."""
    total, per_node = sbatch.count(options, "ntasks"), sbatch.count(options, "ntasks-per-node")
    if total is not None:
        return total, "ntasks"
    nodes = sbatch.count(options, "nodes") if "nodes" in options else 1
    return (per_node * nodes, "ntasks-per-node") if per_node is not None and nodes is not None else None


def _at(start: Started, offset: int, key: str) -> Witness:
    line, column = start.place(offset)
    return Witness(start.name, line, column, key=key)
