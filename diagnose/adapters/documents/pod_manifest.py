"""What a Kubernetes manifest says of a job beside its command: limits of the container (host memory, cards), its replicas."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from diagnose.adapters.documents.started_programs import Started
from diagnose.adapters.formats.config_value import Leaf, Unreadable
from diagnose.facts import Fact, Witness
from diagnose.units import Size

_CONTAINERS = re.compile(r"((?:^|.*\.)(?:c|initC)ontainers\.\d+)\.resources\.limits\.(memory|nvidia\.com/gpu)$")
_QUANTITY = re.compile(r"(\d{1,15})(\.\d{1,6})?([kKMGTP]i?)?$")
_WORDS = re.compile(r"limits|ReplicaSpecs")
_KIND = re.compile(r"(spec\.pytorchReplicaSpecs\.(?:Master|Worker))$")
#: Quantities of Kubernetes: powers of 1024 with an i, of 1000 without.
_POWERS = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}


def limits(start: Started) -> Iterator[Fact]:
    """Facts of the container whose command starts the trainer; limits that hold for the whole container are what its processes share."""
    if not {"limits", "ReplicaSpecs"} & set(_WORDS.findall(start.text)) or "containers" not in start.text:
        return
    from diagnose.adapters.formats import yaml_file

    try:
        leaves = list(yaml_file.Reader(start.text).leaves())
    except (Unreadable, RecursionError):
        return
    yield from _replicas(start, leaves)
    spans = {leaf.key: leaf for leaf in leaves if leaf.shape == "map"}
    for leaf in leaves:
        match = _CONTAINERS.match(leaf.key)
        container = spans.get(match[1]) if match else None
        if match is None or container is None or not container.start <= start.launch.start < container.end:
            continue
        witness = Witness(start.name, leaf.line, leaf.column, key=f"resources.limits.{match[2]}")
        if match[2] == "memory" and (amount := _bytes(leaf)) is not None:
            yield Fact("host.ram", Size.exactly(amount), "config", witness)
        elif match[2] != "memory" and (leaf.text or "").isdecimal() and len(leaf.text or "") < 4 and int(leaf.text or "0"):
            yield Fact("run.cuda_devices", int(leaf.text or "0"), "config", witness)


def _replicas(start: Started, leaves: Sequence[Leaf]) -> Iterator[Fact]:
    """Masters and workers of a PyTorchJob are nodes, one of each kind where no number stands. Whether a command that says nothing of
    nodes starts one group of processes or one on each is for the operator's variables: the world is unknown then."""
    kinds = {match[1] for leaf in leaves if (match := _KIND.match(leaf.key))}
    counts = {leaf.key.rpartition(".")[0]: leaf for leaf in leaves if leaf.key.endswith(".replicas") and (leaf.text or "").isdecimal()}
    nodes = sum(int((counts[kind].text or "1")[:6]) if kind in counts else 1 for kind in kinds)
    if nodes < 2 or any(flag.name == "nnodes" for flag in start.launch.launcher_flags):
        return
    first = next((counts[kind] for kind in sorted(kinds, reverse=True) if kind in counts), None)
    witness = Witness(start.name, first.line if first else 1, first.column if first else 1, key="replicas")
    yield Fact("parallel.nodes", nodes, "config", witness)
    yield Fact("parallel.world", None, "config", witness)


def _bytes(leaf: Leaf) -> int | None:
    """A quantity in bytes; None for what is no quantity."""
    match = _QUANTITY.match(leaf.text or "")
    if match is None:
        return None
    unit = match[3] or ""
    amount = int(float(match[1] + (match[2] or "")) * (1024 if unit.endswith("i") else 1000) ** _POWERS[unit[:1]])
    return amount or None
