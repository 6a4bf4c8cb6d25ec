"""A short run of benchmarks/load.py: nothing wrong and nothing lost while workers are killed."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from checkout import ROOT
from sweep import SWEEP


@pytest.mark.skipif(not SWEEP, reason="takes half a minute: a sweep")
def test_nothing_is_wrong_or_lost_under_load() -> None:
    """Memory is judged by longer runs: in a short one the servers are still growing to their size."""
    words = [sys.executable, "benchmarks/load.py", "--minutes", "0.33", "--every", "3"]
    done = subprocess.run(
        words, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=180, check=False
    )
    rows = re.findall(r"^(\w[\w ]*?) +(\d+) +(\d+) +(\d+) +\d+ +\d+  ", done.stdout, re.MULTILINE)
    assert len(rows) >= 8 and all((wrong, lost) == ("0", "0") for _, _, wrong, lost in rows), done.stdout + done.stderr
    assert done.stderr == ""
