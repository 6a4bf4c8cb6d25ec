"""The rank of this process in its launch, and the choice of the one process that reports."""

# pathlib takes as long to import as starting a command may
# ruff: noqa: PTH108, PTH116, PTH118

from __future__ import annotations

import os
from collections.abc import Mapping

#: Environment variables of launchers with the rank and the number of processes.
RANKS = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)

#: Environment variables that all processes of one launch share.
LAUNCH = ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "SLURM_JOB_ID", "SLURM_STEP_ID", "PMIX_NAMESPACE", "MASTER_PORT")


def rank(environment: Mapping[str, str]) -> int | None:
    """The rank of this process; None if it is the only one or no launcher tells."""
    for rank_name, size_name in RANKS:
        rank_text, size_text = environment.get(rank_name, ""), environment.get(size_name, "")
        if rank_text.isdecimal() and size_text.isdecimal() and int(size_text) > 1:
            return int(rank_text)
    return None


def first_to_answer(folder: str, since: float, environment: Mapping[str, str]) -> bool:
    """Claim the report for this process: true for the first process of a launch that asks.

    The claim is a file in the shared folder; one from before `since` belongs to an earlier launch.
    """
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
