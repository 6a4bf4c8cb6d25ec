"""Logs too large to hold: searched without the compiled extra, answered at first glance, in memory that does not grow with them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from diagnose import explain
from diagnose.scan import log_scan, memory_words
from diagnose.scan.source import Source
from diagnose.surfaces.terminal import quick_preview
from diagnose.surfaces.terminal.answer_options import AnswerInputs, DisplayOptions

STEP = b"  3%|#         | 12/400 [00:31<16:20,  2.53s/it] loss 1.2345 grad_norm 0.42\n"
DEVICE = (
    b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. "
    b"GPU 3 has a total capacity of 79.15 GiB of which 1.07 GiB is free.\n"
)
ENGINE = b"ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`.\n"


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As where the compiled search is not installed."""
    rooms = (memory_words.anchors, memory_words.literals, memory_words.words_near_messages)
    monkeypatch.setattr(memory_words, "is_fast", lambda: False)
    for room in rooms:
        room.cache_clear()
    yield
    for room in rooms:
        room.cache_clear()


def long_log(folder: Path, middle: bytes, end: bytes = b"") -> Path:
    path = folder / "job.log"
    filler = STEP * ((18 << 20) // len(STEP))
    path.write_bytes(filler + middle + filler + end)
    return path


@pytest.mark.usefixtures("plain")
def test_without_the_extra_a_device_failure_in_the_middle_is_found(tmp_path: Path) -> None:
    """The families that people ask about most need no extra; what was not looked for is named."""
    report: dict[str, Any] = explain(long_log(tmp_path, DEVICE)).to_dict("en")
    assert report["verdict"]["family"] == "torch_cuda" and report["events"][0]["gpu"] == 3
    said = next(notice["message"] for notice in report["notices"] if notice["code"] == "reduced_search")
    assert "start-up checks of inference engines" in said and ".[fast]" in said


@pytest.mark.usefixtures("plain")
def test_without_the_extra_everything_is_looked_for_at_both_ends(tmp_path: Path) -> None:
    """How a job ended is read in full, whatever is installed."""
    assert explain(long_log(tmp_path, b"", ENGINE)).verdict.family == "vllm_kv"
    assert explain(long_log(tmp_path, ENGINE)).verdict.status == "none"


def test_the_first_glance_names_what_stands_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Someone who waits for a large log gets the answer of its end; the pieces before it are not read."""
    monkeypatch.setattr(quick_preview, "STEP", 1 << 16)
    path = long_log(tmp_path, ENGINE, DEVICE)
    assert "GPU 3" in quick_preview.preview_headline(path, AnswerInputs(), DisplayOptions())
    assert len(quick_preview.ends(path)) < log_scan.HEAD + 4 * quick_preview.STEP


def test_the_first_glance_is_silent_where_nothing_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick_preview, "FAR", 1 << 20)
    assert quick_preview.preview_headline(long_log(tmp_path, ENGINE), AnswerInputs(), DisplayOptions()) == ""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells a process's own peak")
def test_memory_does_not_grow_with_the_log(tmp_path: Path) -> None:
    """A file of 600 MiB, most of it a hole, costs what a small one does."""
    path = tmp_path / "job.log"
    with path.open("wb") as file:
        file.seek(600 << 20)
        file.write(STEP + DEVICE)
    code = "import sys; from pathlib import Path; from diagnose.scan import log_scan; from diagnose.scan.source import Source\n"
    code += "found = log_scan.scan(Source.file(Path(sys.argv[1])))\n"
    # not what the system says of a child: that counts its parent's memory too, and could hide any growth
    code += "print(*(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    peaks = {}
    for name in (path, Path(__file__)):
        out = subprocess.run([sys.executable, "-c", code, str(name)], capture_output=True, text=True, check=True, env=dict(os.environ))
        peaks[name] = int(out.stdout)
    assert peaks[path] - peaks[Path(__file__)] < 30 << 10
    assert [hit.line for hit in log_scan.scan(Source.file(path)).hits if hit.grammar == "device_oom"] == [2]
