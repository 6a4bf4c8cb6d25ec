"""What the scheduler gives a job, as far as the script asks for it: processes of `srun`, nodes, host memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from diagnose.adapters.documents.started_programs import Started
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.shell import sbatch
from diagnose.facts import Fact, Witness
from diagnose.units import Size


def scheduled(begun: Sequence[Started]) -> Iterator[Fact]:
    """Facts of the first manifest that starts a trainer, and of the first script with `#SBATCH` lines."""
    written = [start for start in begun if start.trains and start.form == "shell"]
    manifest = next((start for start in written if "resources" in start.text or "ReplicaSpecs" in start.text), None)
    if manifest is not None:
        from diagnose.adapters.documents.pod_manifest import limits

        yield from limits(manifest)
    start = next((start for start in begun if start.form == "shell" and "#SBATCH" in start.text), None)
    if start is None:
        return
    said = sbatch.parse_options(start.text)
    limit = sbatch.node_memory(said)
    if limit is not None:
        mebibytes, at = limit
        yield Fact("host.ram", Size.exactly(mebibytes * 2**20), "config", _at(start, at, "#SBATCH --mem"))
    cards = sbatch.count(said, "gpus-per-node")
    if cards and not any("CUDA_VISIBLE_DEVICES" in one.launch.env for one in begun):
        at = said["gpus-per-node"][1]
        option = "gres" if "--gres" in start.text[start.text.rfind("\n", 0, at) + 1 : at] else "gpus-per-node"
        yield Fact("run.cuda_devices", cards, "config", _at(start, at, f"#SBATCH --{option}"))
    tasks = _tasks(said)
    trainer = next((one for one in begun if one.trains and one.name == start.name), None)
    if tasks is not None and trainer is not None and trainer.launch.spread and framework_tables.launcher(trainer.launch.launcher) is None:
        count, option = tasks
        yield Fact("parallel.world", count, "config", _at(start, said[option][1], f"#SBATCH --{option}"))
    nodes = sbatch.count(said, "nodes")
    if nodes is not None and trainer is not None and trainer.launch.spread:
        yield Fact("parallel.nodes", nodes, "config", _at(start, said["nodes"][1], "#SBATCH --nodes"))


def _tasks(said: sbatch.SbatchOptions) -> tuple[int, str] | None:
    """How many processes `srun` starts, and the option that says so."""
    whole, each = sbatch.count(said, "ntasks"), sbatch.count(said, "ntasks-per-node")
    if whole is not None:
        return whole, "ntasks"
    nodes = sbatch.count(said, "nodes") if "nodes" in said else 1
    return (each * nodes, "ntasks-per-node") if each is not None and nodes is not None else None


def _at(start: Started, offset: int, key: str) -> Witness:
    line, column = start.place(offset)
    return Witness(start.name, line, column, key=key)
