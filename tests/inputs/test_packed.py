"""Compressed logs and archives: the same answer as the plain log, within limits, and one sentence for what cannot be opened."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import resource
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from archives import LOG, MESSAGE, tar, told, zipped
from checkout import ROOT
from collected import for_each
from hypothesis import given, settings
from hypothesis import strategies as st

from diagnose.cluster.find import object_stores
from diagnose.errors import UserError
from diagnose.inputs import job_reader
from diagnose.packed import streams, unpack_limits
from diagnose.pipeline import explain
from diagnose.surfaces.terminal import path_arguments


def zstd(data: bytes) -> bytes:
    module = pytest.importorskip("zstandard")
    packed: bytes = module.ZstdCompressor().compress(data)
    return packed


PACKERS: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zst": zstd}


def read(report: dict[str, Any]) -> list[tuple[str, int, int]]:
    """Name, bytes and lines of the logs."""
    return [(one["name"], one["bytes"], one["lines"]) for one in report["inputs"]]


def sentences(report: dict[str, Any]) -> list[str]:
    return [notice["message"] for notice in report["notices"] if notice["level"] in ("error", "warning")]


# -- compressed


@pytest.mark.parametrize("form", PACKERS)
@pytest.mark.parametrize("name", ["job.log", "job.log.gz"])
def test_a_compressed_log_is_the_log(tmp_path: Path, form: str, name: str) -> None:
    """The first bytes say what it is, the name nothing: every report but the name's is that of the plain log."""
    (tmp_path / name).write_bytes(PACKERS[form](LOG))
    assert {**told(tmp_path / name), "inputs": 0} == {**told(_plain(tmp_path, name)), "inputs": 0}


def _plain(folder: Path, name: str) -> Any:
    from diagnose.scan.source import Source

    return Source.text(LOG, str(folder / name))


def test_a_plain_log_with_the_wrong_name_is_read(tmp_path: Path) -> None:
    """Someone renamed it without packing it."""
    (tmp_path / "job.log.gz").write_bytes(LOG)
    assert read(told(tmp_path / "job.log.gz"))[0][1:] == (len(LOG), 2001)


@for_each("form", PACKERS)
def test_streams_one_after_the_other_are_one_text(form: str) -> None:
    """`cat a.gz b.gz`, pigz, and rotated logs that were appended; padding of zeros between them is none of the text."""
    pack = PACKERS[form]
    parts = [LOG[:100], b"", LOG[100:9000], LOG[9000:]]
    padding = b"" if form == "zst" else b"\0" * 512
    assert read(told(padding.join(pack(part) for part in parts)))[0][1:] == (len(LOG), 2001)


@pytest.mark.parametrize("form", ["gz", "bz2", "xz"])
def test_garbage_behind_the_stream_is_passed_over(form: str) -> None:
    """gzip itself ignores it."""
    assert read(told(PACKERS[form](LOG) + b"garbage behind the end"))[0][1:] == (len(LOG), 2001)


@given(
    text=st.lists(st.one_of(st.binary(max_size=300), st.just(MESSAGE.encode())), max_size=40).map(b"\n".join),
    form=st.sampled_from(["gz", "bz2", "xz"]),
    split=st.integers(0, 3000),
)
def test_packed_bytes_give_the_report_of_the_plain_ones(text: bytes, form: str, split: int) -> None:
    """Whatever the bytes are, unless they are packed themselves."""
    if any(text.startswith(magic) for magic in (*streams.MAGIC, b"PK", b"7z", b"Rar", b"\x1f\x9d", b"\x04\x22")):
        return
    pack = PACKERS[form]
    assert told(pack(text[:split]) + pack(text[split:])) == told(text)


def test_a_zstd_frame_to_be_skipped_is_skipped() -> None:
    """pzstd puts one before each of its own."""
    skipped = b"\x50\x2a\x4d\x18\x04\x00\x00\x00size"
    assert read(told(skipped + zstd(LOG[:99]) + skipped + zstd(LOG[99:])))[0][1:] == (len(LOG), 2001)


def test_a_compressed_utf_16_log_is_read() -> None:
    """Redirected by PowerShell, then packed."""
    assert told(gzip.compress(MESSAGE.encode("utf-16")))["verdict"]["status"] == "oom"


def test_the_standard_library_does_where_the_fast_one_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """isal is an extra."""
    monkeypatch.setitem(sys.modules, "isal", None)
    assert read(told(gzip.compress(LOG) * 2))[0][1:] == (2 * len(LOG), 4002)


def test_zstd_without_its_extra_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says what to install, and the other log is still diagnosed."""
    monkeypatch.setitem(sys.modules, "zstandard", None)
    monkeypatch.setitem(sys.modules, "compression", None)
    (tmp_path / "a.log.zst").write_bytes(b"\x28\xb5\x2f\xfd" + b"x" * 100)
    with pytest.raises(UserError, match=r"a\.log\.zst: reading zstd needs an extra; in the clone: pip install '\.\[packed\]'"):
        explain(tmp_path / "a.log.zst")
    report = told(tmp_path / "a.log.zst", LOG)
    assert report["verdict"]["status"] == "oom" and any("zstd" in line for line in sentences(report))


# -- damaged, and worse


@pytest.mark.parametrize("form", ["gz", "bz2", "xz", "zst"])
def test_what_stands_before_the_damage_is_diagnosed(form: str, tmp_path: Path) -> None:
    """A copy that broke off: the notice names the file and how far it was read."""
    whole = PACKERS[form](MESSAGE.encode() + os.urandom(1_200_000) + LOG)
    (tmp_path / "job.gz").write_bytes(whole[: len(whole) - 3000])
    report = told(tmp_path / "job.gz")
    size = report["inputs"][0]["bytes"]
    assert report["verdict"]["status"] == "oom" and "damaged" in report["inputs"][0]["notes"]
    assert any(f"job.gz is damaged or cut off after {size} bytes" in line for line in sentences(report))


def test_a_file_that_is_damaged_from_the_start_is_a_complaint() -> None:
    """Nothing of it is text."""
    with pytest.raises(UserError, match="damaged from its start"):
        explain(gzip.compress(LOG)[:12])


@pytest.mark.parametrize("form", ["gz", "xz", "zst"])
def test_a_bomb_of_a_gibibyte_stops_within_bounds(form: str, tmp_path: Path) -> None:
    """It is read to the limit and no further, in bounded time and memory; what stands before it is diagnosed."""
    pack: Any = {"gz": gzip.compress, "xz": lambda part: lzma.compress(part, preset=1), "zst": zstd}[form]
    bomb = tmp_path / "job.log.gz"
    piece = pack(b"\0" * (64 << 20))
    bomb.write_bytes(pack(MESSAGE.encode()) + piece * 16)
    start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    report = told(bomb)
    assert report["verdict"]["status"] == "oom"
    assert report["inputs"][0]["bytes"] < unpack_limits.FREE + (64 << 20) and report["inputs"][0]["notes"][-1] == "expands"
    assert any("expands beyond all measure" in line for line in sentences(report))
    assert time.monotonic() - start < 30
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10  # kilobytes


def test_all_that_is_packed_in_one_job_shares_one_allowance() -> None:
    """A thousand members of a gigabyte each are no way round the limit."""
    gathered = job_reader.JobInputs(allowance=unpack_limits.Allowance(len(LOG) + 100))
    members = {"a.log": LOG, "b.log": LOG, "c.log": LOG}
    gathered.add(_source(zipped(members)), 0)
    assert [(one.input.name, one.input.bytes) for one in gathered.logs] == [
        ("logs/a.log", len(LOG)),
        ("logs/b.log", 100),
        ("logs/c.log", 0),
    ]


def _source(data: bytes, name: str = "logs") -> Any:
    from diagnose.scan.source import Source

    return Source.text(data, name)


# -- archives


@pytest.mark.parametrize("mode", ["w:", "w:gz", "w:bz2", "w:xz"])
def test_a_tar_is_one_job(tmp_path: Path, mode: str) -> None:
    """Its members are named after it and carry the rank of their path."""
    (tmp_path / "logs.tar.gz").write_bytes(tar({"rank_3/stderr.log": LOG, "rank_0/stderr.log": b"fine\n", "notes.md": LOG}, mode))
    report = told(tmp_path / "logs.tar.gz")
    assert [name.rpartition("logs.tar.gz")[2] for name, _, _ in read(report)] == ["/rank_0/stderr.log", "/rank_3/stderr.log"]
    assert report["events"][0]["rank"] == 3
    assert report["events"][0]["evidence"][0]["source"].endswith("logs.tar.gz/rank_3/stderr.log")
    assert report["events"][0]["evidence"][0]["line"] == 2001


@pytest.mark.parametrize("format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_every_kind_of_tar_is_read_with_its_long_names(format: int) -> None:
    """GNU and POSIX write a long name, or one that is no ASCII, in a header of its own."""
    folder = "jobs/" + "long-" * 25 if format != tarfile.USTAR_FORMAT else "jobs/" + "long-" * 16
    name = f"{folder}/节点/rank_3.log" if format != tarfile.USTAR_FORMAT else f"{folder}/rank_3.log"
    report = told(_source(tar({name: LOG}, format=format), "a.tar"))
    assert read(report) == [(f"a.tar/{name}", len(LOG), 2001)] and report["events"][0]["rank"] == 3


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_zip_is_one_job(method: int) -> None:
    report = told(_source(zipped({"rank_10.log": b"fine\n", "rank_2.log": LOG}, method), "logs.zip"))
    assert [name for name, _, _ in read(report)] == ["logs.zip/rank_2.log", "logs.zip/rank_10.log"]
    assert report["events"][0]["rank"] == 2


def test_a_compressed_member_is_unpacked_and_an_archive_in_an_archive_is_not() -> None:
    """One level, said in one sentence."""
    report = told(_source(tar({"rank_1.log.gz": gzip.compress(LOG), "more.tar.gz": tar({"a.log": LOG}, "w:gz")}), "a.tar"))
    assert read(report) == [("a.tar/rank_1.log.gz", len(LOG), 2001)]
    assert [line for line in sentences(report) if "more.tar.gz" in line] == [
        "a.tar/more.tar.gz: this is an archive inside an archive and was not opened; unpack it and give the logs inside"
    ]


def test_names_that_lead_elsewhere_are_only_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written anywhere, and nothing is opened because of a name."""
    monkeypatch.chdir(tmp_path)
    for data in (tar({"/etc/evil.log": LOG, "../../up.log": LOG}), zipped({"/etc/evil.log": LOG, "../../up.log": LOG})):
        report = told(_source(data, "a"))
        assert sorted(name for name, _, _ in read(report)) == ["a/etc/evil.log", "a/up.log"]
    assert not list(tmp_path.iterdir())


def test_links_and_devices_in_a_tar_are_no_logs(tmp_path: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE):
            about = tarfile.TarInfo(f"{kind.decode()}.log")
            about.type, about.linkname = kind, "/etc/passwd"
            archive.addfile(about)
        about = tarfile.TarInfo("real.log")
        about.size = len(LOG)
        archive.addfile(about, io.BytesIO(LOG))
    assert [name for name, _, _ in read(told(_source(out.getvalue(), "a.tar")))] == ["a.tar/real.log"]


def test_encrypted_members_are_one_sentence() -> None:
    """The others are read. (The flag is what makes a member encrypted; Python cannot write one.)"""
    data = bytearray(zipped({"a.log": LOG, "b.log": LOG, "c.log": LOG}, zipfile.ZIP_STORED))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        central = data.index(b"PK\x01\x02")
        for number, info in enumerate(archive.infolist()):
            if number < 2:
                data[info.header_offset + 6] |= 1
                data[central + 8] |= 1
            central = data.find(b"PK\x01\x02", central + 4)
    report = told(_source(bytes(data), "a.zip"))
    assert [name for name, _, _ in read(report)] == ["a.zip/c.log"]
    assert [line for line in sentences(report) if "encrypted" in line] == [
        "a.zip/a.log: 2 files of the archive are encrypted, this one first; unpack it and give the logs inside"
    ]


@for_each(
    "data, says",
    [
        (tar({"a.log": LOG, "b.log": LOG})[: 512 + 20_000], "damaged or cut off"),
        (tar({"a.log": LOG, "b.log": LOG})[: 512 + len(LOG) + (-len(LOG) % 512) + 300], "the archive is damaged or cut off"),
        (zipped({"a.log": LOG})[:3000], "directory is damaged"),
        (b"7z\xbc\xaf\x27\x1c" + b"x" * 600, r"this packing \(7z\) is not read here"),
        (b"Rar!\x1a\x07\x01" + b"x" * 600, r"this packing \(rar\) is not read here"),
        (zipped({"a.log": LOG}, zipfile.ZIP_LZMA), r"this packing \(zip method 14\)"),
        (gzip.compress(zipped({"a.log": LOG})), r"this packing \(zip\)"),
        (tar({"notes.md": LOG}), "no log in it"),
        (zipped({}), "no log in it"),
    ],
)
def test_what_cannot_be_opened_is_one_sentence(data: bytes, says: str) -> None:
    """File, place, and what to do, in both languages."""
    gathered = job_reader.read_job([_source(data, "pack")])
    found = gathered.errors + [notice for notice in gathered.notices if notice.level == "warning"]
    texts = [one.to("en") if isinstance(one, UserError) else one.message.en for one in found]
    chinese = [one.to("zh") if isinstance(one, UserError) else one.message.zh for one in found]
    import re

    assert len(texts) == 1 and texts[0].startswith("pack") and re.search(says, texts[0]), texts
    assert chinese[0] != texts[0] and "\n" not in texts[0]


def test_a_header_that_claims_gigabytes_is_refused() -> None:
    """An extended header is read whole, so its size is bounded first."""
    about = tarfile.TarInfo("x")
    about.type, about.size = tarfile.XHDTYPE, 4 << 30
    gathered = job_reader.read_job([_source(about.tobuf(tarfile.GNU_FORMAT) + b"\0" * 4096, "a.tar")])
    assert [one.to("en") for one in gathered.errors] == [
        "a.tar: the archive's directory is damaged or out of all proportion; unpack it and give the logs inside"
    ]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_bytes_that_were_changed_never_raise(data: st.DataObject) -> None:
    """A damaged archive is a sentence or a shorter log, whatever was changed in it."""
    whole = data.draw(st.sampled_from([tar({"a.log": LOG[-3000:]}), zipped({"a.log": LOG[-3000:]}), gzip.compress(LOG[-3000:])]))
    raw = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 6))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    gathered = job_reader.read_job([_source(bytes(raw[: data.draw(st.integers(1, len(raw)))]), "pack")])
    assert gathered.logs or gathered.errors


# -- where it comes from


@for_each("data", [gzip.compress(LOG), tar({"a.log": LOG}, "w:gz"), zipped({"a.log": LOG}), LOG])
def test_standard_input_may_be_packed_too(data: bytes) -> None:
    """Through a real pipe, which cannot be rewound."""
    done = subprocess.run(
        [sys.executable, "-m", "diagnose", "explain", "-", "--format", "json"],
        input=data,
        capture_output=True,
        check=False,
        cwd=ROOT,
    )
    import json

    report = json.loads(done.stdout)
    assert done.returncode == 0 and report["verdict"]["status"] == "oom" and report["inputs"][0]["bytes"] == len(LOG)


def test_a_pipe_that_gives_little_at_a_time_is_recognised() -> None:
    """The first read of a pipe may bring three bytes."""
    reader, writer = os.pipe()
    packed_log = tar({"a.log": LOG}, "w:gz")

    def write() -> None:
        with os.fdopen(writer, "wb", buffering=0) as out:
            for at in range(0, 900, 3):
                out.write(packed_log[at : at + 3])
            out.write(packed_log[900:])

    thread = threading.Thread(target=write)
    thread.start()
    with os.fdopen(reader, "rb") as pipe:
        report = told(pipe)
    thread.join()
    assert read(report) == [("-/a.log", len(LOG), 2001)]


def test_a_pattern_that_the_shell_left_alone(tmp_path: Path) -> None:
    """`'logs/*.out'` in quotes, or on a system whose shell expands nothing."""
    for name in ("b.out", "a.out", "c.err"):
        (tmp_path / name).write_bytes(LOG)
    assert path_arguments.logs([str(tmp_path / "*.out")]) == [tmp_path / "a.out", tmp_path / "b.out"]
    (tmp_path / "odd[1].log").write_bytes(LOG)
    assert path_arguments.logs([str(tmp_path / "odd[1].log")]) == [tmp_path / "odd[1].log"]
    with pytest.raises(UserError, match="nothing matches"):
        path_arguments.logs([str(tmp_path / "*.txt")])


def test_an_object_is_read_through_its_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only for schemes that are stores; names and patterns."""
    fsspec = pytest.importorskip("fsspec")
    monkeypatch.setitem(object_stores.STORES, "memory", "memory")
    store = fsspec.filesystem("memory")
    for name in ("rank_0.log", "rank_1.log"):
        with store.open(f"/bucket/{name}", "wb") as out:
            out.write(gzip.compress(LOG))
    report = told(*path_arguments.logs(["memory://bucket/rank_1.log"]))
    assert report["verdict"]["status"] == "oom" and report["inputs"][0]["name"].endswith("bucket/rank_1.log")
    assert len(path_arguments.logs(["memory://bucket/*.log"])) == 2
    with pytest.raises(UserError, match="nothing matches"):
        path_arguments.logs(["memory://bucket/*.txt"])
    with pytest.raises(UserError, match="no such file"):
        explain(path_arguments.logs(["memory://bucket/gone.log"]))


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("s3://bucket/job.log", r"reading object stores needs an extra; in the clone: pip install '\.\[s3\]'"),
        ("https://example.org/job.log", "this kind of address is not read; download the file"),
    ],
)
def test_an_address_that_cannot_be_read_is_one_sentence(url: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(UserError, match=says):
        path_arguments.logs([url])


def test_characters_are_never_unpacked() -> None:
    """What came over the web is text, whatever archive it looks like."""
    text = zipped({"a.log": LOG}, zipfile.ZIP_STORED).decode("latin-1")
    assert [name for name, _, _ in read(told(text))] == ["text"]


def test_an_address_is_only_an_address_on_the_command_line() -> None:
    """The library and the servers take text as text."""
    assert told("s3://bucket/job.log")["inputs"][0]["bytes"] == len("s3://bucket/job.log")


def test_a_store_that_fails_while_it_is_read_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever kind of error it raises."""

    class Broken:
        def open(self, path: str, mode: str) -> Any:
            raise RuntimeError("no credentials")

    core = SimpleNamespace(url_to_fs=lambda url: (Broken(), url))
    monkeypatch.setitem(sys.modules, "fsspec", SimpleNamespace(core=core))
    with pytest.raises(UserError, match=r"s3://.*cannot be read \(no credentials\)"):
        explain(path_arguments.logs(["s3://bucket/job.log"]))


# -- pipes in the file system


def test_a_named_pipe_is_read_when_somebody_writes(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    def write() -> None:
        with (tmp_path / "pipe").open("wb") as out:
            time.sleep(0.2)
            out.write(LOG)

    thread = threading.Thread(target=write)
    thread.start()
    report = told(tmp_path / "pipe")
    thread.join()
    assert report["inputs"][0]["bytes"] == len(LOG)


def test_a_named_pipe_without_a_writer_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would wait for ever."""
    monkeypatch.setattr("diagnose.scan.source.PATIENCE", 0.1)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match="nobody writes into this pipe"):
        explain(tmp_path / "pipe")
