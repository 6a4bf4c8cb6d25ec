"""What `#SBATCH` lines ask of the scheduler: nodes, tasks, cards, memory; and the variables that it sets from them."""

from __future__ import annotations

import re

from diagnose.adapters.shell.shell_text import Chars, Home
from diagnose.parse.text.lazy_re import later

_LINE = later(r"^#SBATCH[ \t]+(.*)$", re.MULTILINE)
_OPTION = later(r"(?:--([a-z-]+)|-([A-Za-z]))(?:[ \t]*=[ \t]*|[ \t]+|)(\"[^\"\n]*\"|[^\s#-][^\s#]*)")
_SHORT = {"N": "nodes", "n": "ntasks", "c": "cpus-per-task", "G": "gpus"}
_GRES = later(r"gpu(?::[A-Za-z][\w.-]*)?(?::(\d+))?(?![\w])")

#: SLURM's variables and the option that each repeats.
_SET = {
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

Asked = dict[str, tuple[str, int, int]]


def asked(text: str) -> Asked:
    """Every option with its value and the value's place. `--gres=gpu:8` is so many cards of a node."""
    found: Asked = {}
    if "#SBATCH" not in text:
        return found
    for line in _LINE.finditer(text):
        for option in _OPTION.finditer(line[1].partition(" #")[0]):
            name = option[1] or _SHORT.get(option[2], "")
            value, start = option[3].strip('"'), line.start(1) + option.start(3)
            if name == "gres" and (cards := _GRES.search(value)):
                name, start, value = "gpus-per-node", start + max(cards.start(1), 0), cards[1] or "1"
            elif name in ("gpus", "gpus-per-node", "gpus-per-task"):
                start += value.rfind(":") + 1
                value = value.rpartition(":")[2]
            found[name] = (value, start, start + len(value))
    return found


def variables(text: str) -> dict[str, Chars]:
    """What the scheduler sets for the job."""
    said = asked(text)
    made = {}
    for name, option in _SET.items():
        if option in said:
            value, start, end = said[option]
            chars = Chars()
            chars.literal(value, start)
            chars.home = Home(start, end, 2)  # what the scheduler gives is not for an edit of one option
            made[name] = chars
    return made


def number(said: Asked, option: str) -> int | None:
    """A count of the options; a range of nodes is no count."""
    text = said.get(option, ("", 0, 0))[0]
    return int(text) if text.isdecimal() and len(text) < 7 else None


def memory(said: Asked) -> tuple[int, int] | None:
    """Host memory of a node in MiB, and where it is asked for; None for all of the node's (0), or nothing said."""
    for option, times in (("mem", 1), ("mem-per-gpu", number(said, "gpus-per-node")), ("mem-per-cpu", _cpus(said))):
        match = re.fullmatch(r"(\d{1,9})([KMGT]?)B?", said.get(option, ("", 0, 0))[0].upper())
        if match and int(match[1]) and times:
            scale = {"K": 1 / 1024, "": 1, "M": 1, "G": 1024, "T": 1024**2}[match[2]]
            return int(int(match[1]) * scale * times), said[option][1]
    return None


def _cpus(said: Asked) -> int | None:
    each, tasks = number(said, "cpus-per-task"), number(said, "ntasks-per-node")
    return each * (tasks or 1) if each is not None else None
