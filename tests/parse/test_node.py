"""What `free` prints is the memory of the node, whatever unit it was asked for."""

from __future__ import annotations

import pytest
from collected import for_each

from diagnose.facts import FactBook
from diagnose.parse import log_reader
from diagnose.scan.log_scan import scan
from diagnose.scan.source import Source
from diagnose.units import Size

GIB = 2**30
HEAD = "               total        used        free      shared  buff/cache   available\n"


def ram(text: str) -> Size | None:
    log = f"train.sh: line 3: 4120 Killed                  python train.py\n{text}"
    return FactBook(log_reader.read_logs([scan(Source.text(log, "error.log"))]).facts).size("host.ram")


@for_each(
    "row, gib",
    [
        ("Mem:      2113431252    29112384  1426862688      555420   632218352  2047340052\nSwap:              0\n", 2015.53),
        ("Mem:            257598       12011      201877           2       43709      243100\n", 251.56),  # free -m
        ("Mem:            251          12         201           2          43         243\n", 251),  # free -g
        ("Mem:           2.0T         26G        1.7T        1.2G        292G        1.9T\n", 2048),  # free -h
        ("Mem:          503Gi        26Gi       177Gi       1.2Gi        29Gi       470Gi\n", 503),
    ],
)
def test_the_total_of_the_node(row: str, gib: float) -> None:
    found = ram(HEAD + row)
    assert found is not None and abs(found.bytes / GIB - gib) < 0.01


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "Swap:          2.0G          0B        2.0G\n",
        HEAD + "Mem:             3           1           2           0           0           2\n",  # of no node that trains
        "Mem:            257598       12011      201877           2       43709      243100\n",  # no table
    ],
)
def test_what_is_no_total_says_nothing(text: str) -> None:
    assert ram(text) is None


def test_what_the_failure_itself_prints_comes_first() -> None:
    log = (
        "Memory on the node (IP: 10.0.4.9, ID: 77c2e0) where the task (task ID: 16310a, name=main, pid=20811, memory used=9.62GB) was "
        "running was 478.61GB / 503.51GB (0.950547), which exceeds the memory usage threshold of 0.95.\n"
    )
    book = FactBook(
        log_reader.read_logs([scan(Source.text(f"{log}{HEAD}Mem:  1007Gi  26Gi  177Gi  1.2Gi  29Gi  470Gi\n", "error.log"))]).facts
    )
    assert str(book.size("host.ram")) == "503.51 GB"
