"""One process among several of a launch: its number, and which of them answers."""

# pathlib takes as long to import as starting a command may
# ruff: noqa: PTH108, PTH116, PTH118

from __future__ import annotations

import os
from collections.abc import Mapping

#: Where launchers write a process's number and how many there are.
RANKS = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)

#: What all processes of one launch have in common.
LAUNCH = ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "SLURM_JOB_ID", "SLURM_STEP_ID", "PMIX_NAMESPACE", "MASTER_PORT")


def rank(environment: Mapping[str, str]) -> int | None:
    """The number of this process among several; None where it is alone or no launcher says."""
    for number, count in RANKS:
        told, of = environment.get(number, ""), environment.get(count, "")
        if told.isdecimal() and of.isdecimal() and int(of) > 1:
            return int(told)
    return None


def first_to_answer(folder: str, since: float, environment: Mapping[str, str]) -> bool:
    """Whether no other process of this launch has answered: a claim in the folder that they share, good for this launch only."""
    from zlib import crc32

    launch = "\0".join([str(os.getuid()), *(environment.get(name, "") for name in LAUNCH)])
    claim = os.path.join(folder, f".oomdoctor-answered-{crc32(launch.encode(errors='replace')):08x}")
    for _ in range(2):
        try:
            os.close(os.open(claim, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
            return True
        except FileExistsError:
            try:
                if os.stat(claim).st_mtime >= since:
                    return False
                os.unlink(claim)  # of an earlier launch
            except OSError:
                return True
        except OSError:
            return True
    return False
