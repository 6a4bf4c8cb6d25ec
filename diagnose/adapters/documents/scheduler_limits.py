"""Resources requested from Slurm, Kubernetes or compose: processes, nodes, visible GPUs, host memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from diagnose.adapters.formats import yaml_file
from diagnose.adapters.formats.config_value import Leaf, Unreadable
from diagnose.adapters.schema import framework_tables
from diagnose.adapters.shell import sbatch
from diagnose.facts import Fact, Witness
from diagnose.parse.text.lazy_re import lazy_compile
from diagnose.units import Size

if TYPE_CHECKING:
    from diagnose.adapters.documents.framework_of_command import StartedProgram

_CONTAINERS = lazy_compile(r"((?:^|.*\.)(?:c|initC)ontainers\.\d+)\.resources\.limits\.(memory|nvidia\.com/gpu)$")
_QUANTITY = lazy_compile(r"(\d{1,15})(\.\d{1,6})?([kKMGTP]i?)?$")
_SERVICES = lazy_compile(r"(services\.[\w-]+)\.deploy\.resources\.reservations\.devices\.\d+\.(count|device_ids)$")
_MANIFEST_WORDS = lazy_compile(r"limits|ReplicaSpecs|reservations|services")
_KIND = lazy_compile(r"(spec\.pytorchReplicaSpecs\.(?:Master|Worker))$")
#: Quantities of Kubernetes: powers of 1024 with an i, of 1000 without.
_POWERS = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}


def scheduler_facts(programs: Sequence[StartedProgram]) -> Iterator[Fact]:
    """Facts from the first manifest that starts a trainer or an engine and from the first script with a header for a scheduler."""
    scripts = [start for start in programs if (start.trains or start.is_server) and start.form == "shell"]
    manifest = next((start for start in scripts if "resources" in start.text or "ReplicaSpecs" in start.text), None)
    if manifest is not None:
        yield from _manifest_facts(manifest)
    requests = (start for start in programs if start.form == "shell" and any(header in start.text for header in sbatch.HEADERS))
    start = next(requests, None)
    if start is None:
        return
    header = next(header for header in sbatch.HEADERS if header in start.text)
    options = sbatch.parse_options(start.text)
    limit = sbatch.node_memory(options)
    if limit is not None:
        mebibytes, offset = limit
        yield Fact("host.ram", Size.exactly(mebibytes * 2**20), "config", _witness(start, offset, f"{header} {_spelled('mem', header)}"))
    option = "gpus-per-node"
    if option not in options and (sbatch.count(options, "gpus") == 1 or sbatch.count(options, "nodes") == 1):
        option = "gpus"  # those of the job are those of its one node
    cards = sbatch.count(options, option)
    if cards and not any("CUDA_VISIBLE_DEVICES" in program.launch.env for program in programs):
        offset = options[option][1]
        option = "gres" if "--gres" in start.text[start.text.rfind("\n", 0, offset) + 1 : offset] else option
        yield Fact("run.cuda_devices", cards, "config", _witness(start, offset, f"{header} {_spelled(option, header)}"))
    tasks = _task_count(options)
    trainer = next((program for program in programs if program.trains and program.name == start.name), None)
    if (
        tasks is not None
        and trainer is not None
        and trainer.launch.spread
        and framework_tables.launcher_table(trainer.launch.launcher) is None
    ):
        count, option = tasks
        yield Fact("parallel.world", count, "config", _witness(start, options[option][1], f"{header} {_spelled(option, header)}"))
    nodes = sbatch.count(options, "nodes")
    if nodes is not None and trainer is not None and trainer.launch.spread:
        yield Fact("parallel.nodes", nodes, "config", _witness(start, options["nodes"][1], f"{header} {_spelled('nodes', header)}"))


def _spelled(option: str, header: str) -> str:
    """An option as the scheduler of the header spells it: with dashes by Slurm alone."""
    return f"--{option}" if header == "#SBATCH" else option


def _task_count(options: sbatch.SbatchOptions) -> tuple[int, str] | None:
    """Number of processes that `srun` starts, and the option that sets it."""
    total, per_node = sbatch.count(options, "ntasks"), sbatch.count(options, "ntasks-per-node")
    if total is not None:
        return total, "ntasks"
    nodes = sbatch.count(options, "nodes") if "nodes" in options else 1
    return (per_node * nodes, "ntasks-per-node") if per_node is not None and nodes is not None else None


def _witness(start: StartedProgram, offset: int, key: str) -> Witness:
    line, column = start.place(offset)
    return Witness(start.name, line, column, key=key)


# -- Kubernetes, compose


def _manifest_facts(start: StartedProgram) -> Iterator[Fact]:
    """Memory and GPU limits of the container that starts the program; its processes share them."""
    words = set(_MANIFEST_WORDS.findall(start.text))
    if not ({"limits", "ReplicaSpecs"} & words and "containers" in start.text) and not {"reservations", "services"} <= words:
        return
    try:
        leaves = list(yaml_file.Reader(start.text).leaves())
    except (Unreadable, RecursionError):
        return
    yield from _replica_facts(start, leaves)
    spans = {leaf.key: leaf for leaf in leaves if leaf.shape == "map"}
    for leaf in leaves:
        match = _CONTAINERS.match(leaf.key) or _SERVICES.match(leaf.key)
        container = spans.get(match[1]) if match else None
        if match is None or container is None or not container.start <= start.launch.start < container.end:
            continue
        witness = Witness(start.name, leaf.line, leaf.column, key=leaf.key.removeprefix(f"{match[1]}."))
        if match[2] == "device_ids" and leaf.items:
            yield Fact("run.cuda_devices", len(leaf.items), "config", witness)
        elif match[2] == "memory" and (amount := _quantity_bytes(leaf)) is not None:
            yield Fact("host.ram", Size.exactly(amount), "config", witness)
        elif match[2] != "memory" and (leaf.text or "").isdecimal() and len(leaf.text or "") < 4 and int(leaf.text or "0"):
            yield Fact("run.cuda_devices", int(leaf.text or "0"), "config", witness)


def _replica_facts(start: StartedProgram, leaves: Sequence[Leaf]) -> Iterator[Fact]:
    """Nodes of a PyTorchJob: masters plus workers, one each by default. The world size is unknown unless the command sets nnodes,
    because the operator's variables decide it."""
    kinds = {match[1] for leaf in leaves if (match := _KIND.match(leaf.key))}
    counts = {leaf.key.rpartition(".")[0]: leaf for leaf in leaves if leaf.key.endswith(".replicas") and (leaf.text or "").isdecimal()}
    nodes = sum(int((counts[kind].text or "1")[:6]) if kind in counts else 1 for kind in kinds)
    if nodes < 2 or any(flag.name == "nnodes" for flag in start.launch.launcher_flags):
        return
    first = next((counts[kind] for kind in sorted(kinds, reverse=True) if kind in counts), None)
    witness = Witness(start.name, first.line if first else 1, first.column if first else 1, key="replicas")
    yield Fact("parallel.nodes", nodes, "config", witness)
    yield Fact("parallel.world", None, "config", witness)


def _quantity_bytes(leaf: Leaf) -> int | None:
    """A Kubernetes quantity in bytes; None if it is none."""
    match = _QUANTITY.match(leaf.text or "")
    if match is None:
        return None
    unit = match[3] or ""
    amount = int(float(match[1] + (match[2] or "")) * (1024 if unit.endswith("i") else 1000) ** _POWERS[unit[:1]])
    return amount or None
