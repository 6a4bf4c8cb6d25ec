"""Headers for a scheduler (`#SBATCH`, `#PBS`, `#BSUB`): the nodes, tasks, cards and memory that a script requests, and the SLURM variables
that follow from them."""

from __future__ import annotations

import re

from diagnose.adapters.shell.shell_text import Chars, Definition
from diagnose.parse.text.lazy_re import lazy_compile

_LINE = lazy_compile(r"^#SBATCH[ \t]+(.*)$", re.MULTILINE)
_OPTION = lazy_compile(
    r"(?<!\S)(?:--([a-z][a-z-]{0,40})(?:[ \t]{0,40}=[ \t]{0,40}|[ \t]{1,40})|-([A-Za-z])(?:[ \t]{0,40}=)?[ \t]{0,40})"
    r"(\"[^\"\n]*\"|[^\s#-][^\s#]*)"
)
_SHORT = {"N": "nodes", "n": "ntasks", "c": "cpus-per-task", "G": "gpus"}
#: What PBS and LSF call the same, on their lines.
_OTHER_LINE = lazy_compile(r"^#(?:PBS[ \t]+-l|BSUB)[ \t]+(.*)$", re.MULTILINE)
_OTHER_OPTION = lazy_compile(r"\b(select|nodes|ngpus|gpus|num|mem)=(\d{1,9}(?:[kmgt]?b?)?)(?![\w.])", re.IGNORECASE)
_OTHER_NAMES = {"select": "nodes", "ngpus": "gpus-per-node", "gpus": "gpus-per-node", "num": "gpus-per-node"}
#: Begins of the lines of each scheduler.
HEADERS = ("#SBATCH", "#PBS", "#BSUB")
_GRES = lazy_compile(r"gpu(?::[A-Za-z][\w.-]*)?(?::(\d+))?(?![\w])")

#: Variables that SLURM sets for a job, and the option whose value each holds.
_SLURM_VARIABLES = {
    "SLURM_NNODES": "nodes",
    "SLURM_JOB_NUM_NODES": "nodes",
    "SLURM_NTASKS": "ntasks",
    "SLURM_NPROCS": "ntasks",
    "SLURM_NTASKS_PER_NODE": "ntasks-per-node",
    "SLURM_CPUS_PER_TASK": "cpus-per-task",
    "SLURM_GPUS_ON_NODE": "gpus-per-node",
    "SLURM_GPUS_PER_NODE": "gpus-per-node",
    "SLURM_GPUS": "gpus",
}

#: Values by option, with the offsets of each.
SbatchOptions = dict[str, tuple[str, int, int]]


def parse_options(text: str) -> SbatchOptions:
    """Every option with its value and the offsets of the value. `--gres=gpu:8` is read as `--gpus-per-node=8`, as is `ngpus=8` of PBS."""
    options: SbatchOptions = {}
    for line in _OTHER_LINE.finditer(text) if "#PBS" in text or "#BSUB" in text else ():
        for option in _OTHER_OPTION.finditer(line[1]):
            start, end = line.start(1) + option.start(2), line.start(1) + option.end(2)
            options[_OTHER_NAMES.get(option[1].lower(), option[1].lower())] = (option[2], start, end)
    if "#SBATCH" not in text:
        return options
    for line in _LINE.finditer(text):
        for option in _OPTION.finditer(line[1].partition(" #")[0]):
            name = option[1] or _SHORT.get(option[2], "")
            value, start = option[3].strip('"'), line.start(1) + option.start(3)
            if name == "gres" and (cards := _GRES.search(value)):
                name, start, value = "gpus-per-node", start + max(cards.start(1), 0), cards[1] or "1"
            elif name in ("gpus", "gpus-per-node", "gpus-per-task"):
                start += value.rfind(":") + 1
                value = value.rpartition(":")[2]
            options[name] = (value, start, start + len(value))
    return options


def slurm_variables(text: str) -> dict[str, Chars]:
    """The variables that SLURM sets for the job."""
    options = parse_options(text)
    variables = {}
    for name, option in _SLURM_VARIABLES.items():
        if option in options:
            value, start, end = options[option]
            chars = Chars()
            chars.literal(value, start)
            chars.definition = Definition(start, end, 2)  # as if used twice: no edit of a launch changes the request
            variables[name] = chars
    return variables


def count(options: SbatchOptions, option: str) -> int | None:
    """An option's value as a number; None where it is absent or no plain number, such as a range of nodes."""
    text = options.get(option, ("", 0, 0))[0]
    return int(text) if text.isdecimal() and len(text) < 7 else None


def node_memory(options: SbatchOptions) -> tuple[int, int] | None:
    """Host memory of a node in MiB, and the offset of its option; None where nothing or all of the node (0) is requested."""
    for option, factor in (("mem", 1), ("mem-per-gpu", count(options, "gpus-per-node")), ("mem-per-cpu", _cpus_per_node(options))):
        match = re.fullmatch(r"(\d{1,9})([KMGT]?)B?", options.get(option, ("", 0, 0))[0].upper())
        if match and int(match[1]) and factor:
            scale = {"K": 1 / 1024, "": 1, "M": 1, "G": 1024, "T": 1024**2}[match[2]]
            return int(int(match[1]) * scale * factor), options[option][1]
    return None


def _cpus_per_node(options: SbatchOptions) -> int | None:
    cpus, tasks = count(options, "cpus-per-task"), count(options, "ntasks-per-node")
    return cpus * (tasks or 1) if cpus is not None else None
