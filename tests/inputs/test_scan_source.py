"""Reading an input once: its places are true, its size does not matter, what cannot be read is said."""

from __future__ import annotations

import io
import os
import threading
from pathlib import Path

import pytest
from collected import for_each
from hypothesis import given, settings
from hypothesis import strategies as st

from diagnose.errors import UserError
from diagnose.scan import excerpts, log_scan
from diagnose.scan.source import BUFFER, Source

MESSAGE = b"RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n"


@for_each("lines_before", [0, 1, 4000, 120_000])
def test_places_are_true_however_long_the_log(lines_before: int) -> None:
    """Hits and excerpts carry the line that an editor shows, in the first buffer and in later ones."""
    raw = b"".join(b"step %d loss 1.0\n" % i for i in range(lines_before)) + MESSAGE + b"bye"
    scanned = log_scan.scan(Source.text(raw, "job.log"))
    lines = raw.split(b"\n")
    hit = next(hit for hit in scanned.hits if hit.grammar == "device_oom")
    assert lines[hit.line - 1] + b"\n" == MESSAGE
    assert raw[hit.line_start :].startswith(MESSAGE)
    assert (scanned.input.bytes, scanned.input.lines) == (len(raw), len(lines))
    for excerpt in scanned.excerpts:
        assert raw[excerpt.offset :].startswith(excerpt.raw)
        assert excerpt.raw.startswith(lines[excerpt.line - 1])


@settings(max_examples=30, deadline=None)
@given(st.integers(-60, 60))
def test_a_literal_across_two_buffers_is_found_once(shift: int) -> None:
    """The border of a buffer neither hides nor doubles a message."""
    raw = b"x" * (BUFFER + shift) + b"\n" + MESSAGE
    assert [(hit.line, hit.offset) for hit in log_scan.scan(Source.text(raw)).hits] == [(2, raw.index(b"CUDA out"))]


def test_many_messages_keep_the_first_and_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure that is caught on every step costs bounded memory, and the report can say how much was left out."""
    monkeypatch.setattr(log_scan, "MESSAGES", 200_000)
    scanned = log_scan.scan(Source.text(MESSAGE * 200_000))
    lines = [hit.line for hit in scanned.hits]
    assert lines == [*range(1, log_scan.FIRST + 1), *range(200_001 - log_scan.LATEST, 200_001)]
    assert len(scanned.hits) + scanned.dropped == 200_000
    assert sum(len(excerpt.raw) for excerpt in scanned.excerpts) < 2 * (excerpts.KEPT + log_scan.LONGEST) + log_scan.HEAD


def test_a_line_of_five_megabytes_is_cut_round_its_message() -> None:
    """One endless line is neither decoded whole nor given a wrong column."""
    raw = b"y" * 5_000_000 + MESSAGE.strip()
    scanned = log_scan.scan(Source.text(raw))
    assert sum(len(excerpt.raw) for excerpt in scanned.excerpts) < 400_000
    assert scanned.input.lines == 1
    assert any(excerpt.into == excerpt.offset for excerpt in scanned.excerpts if excerpt.offset)


@for_each(
    "raw, note, encoding",
    [
        (b"", "empty", "utf-8"),
        (b"\0" * 200_000, "nul-filled", "utf-8"),
        (bytes(range(256)) * 900, "binary", "unknown"),
        ("显存不足\n".encode(), "", "utf-8"),
        ("显存不足\n".encode("gb18030") * 9, "", "unknown"),
        ("a\n".encode("utf-16"), "", "utf-16"),
        (MESSAGE.decode().encode("utf-16-le"), "", "utf-16-le"),
    ],
)
def test_what_kind_of_bytes_is_said(raw: bytes, note: str, encoding: str) -> None:
    """Empty, binary and NUL-filled files are named as such; UTF-16 of PowerShell is read."""
    scanned = log_scan.scan(Source.text(raw))
    assert (scanned.input.notes[:1], scanned.input.encoding) == ((note,) if note else (), encoding)
    assert bool(scanned.hits) == (b"C\0U\0D\0A" in raw)


def test_a_pipe_is_read_like_a_file(tmp_path: Path) -> None:
    """Standard input cannot be rewound; its answer is the same."""
    raw = b"step\n" * 50_000 + MESSAGE
    (tmp_path / "job.log").write_bytes(raw)
    reader, writer = os.pipe()

    def write() -> None:
        with os.fdopen(writer, "wb") as out:
            out.write(raw)

    thread = threading.Thread(target=write)
    thread.start()
    with os.fdopen(reader, "rb") as pipe:
        piped = log_scan.scan(Source.stream(pipe, "job.log"))
    thread.join()
    assert piped == log_scan.scan(Source.file(tmp_path / "job.log", "job.log"))


@pytest.mark.parametrize(("name", "says"), [("missing.log", "no such file"), ("", "folder"), ("nul\0.log", "cannot be read")])
def test_what_cannot_be_read_is_a_complaint(tmp_path: Path, name: str, says: str) -> None:
    """One sentence that names the file, in both languages, instead of a traceback."""
    with pytest.raises(UserError, match=says) as caught:
        log_scan.scan(Source.file(tmp_path / name if name else tmp_path, "job.log"))
    assert caught.value.to("zh").startswith("job.log：")


def test_a_closed_stream_is_a_complaint() -> None:
    """A stream that someone closed is the user's trouble, not ours."""
    stream = io.BytesIO(b"x")
    stream.close()
    with pytest.raises(UserError, match="cannot be read"):
        log_scan.scan(Source.stream(stream))


def test_a_file_that_cannot_be_opened_is_a_complaint(tmp_path: Path) -> None:
    """A log of another user."""
    locked = tmp_path / "job.log"
    locked.write_bytes(b"x")
    locked.chmod(0)
    if os.access(locked, os.R_OK):
        pytest.skip("this user may read everything")
    with pytest.raises(UserError, match="cannot be read"):
        log_scan.scan(Source.file(locked))


def test_a_device_is_no_log() -> None:
    """/dev/zero has no end: reading it would never answer."""
    with pytest.raises(UserError, match="a device"):
        log_scan.scan(Source.file(Path("/dev/zero")))
