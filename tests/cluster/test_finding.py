"""Which logs are one job: folders, patterns, lists, archives, stores; and what the jobs are called in every run."""

from __future__ import annotations

import gzip
import io
import os
import sqlite3
import tarfile
import tempfile
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from collected import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from sweep import examples

from diagnose.cluster.find import addresses, object_stores
from diagnose.cluster.find.job import Job, UnreadableJob
from diagnose.cluster.find.job_files import last_modified, open_inputs, stamp
from diagnose.cluster.find.job_finder import find
from diagnose.cluster.find.job_folders import log_stem
from diagnose.cluster.find.job_index import JobIndex
from diagnose.errors import UserError
from diagnose.pipeline import explain

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. "
    "GPU 0 has a total capacity of 79.15 GiB of which 1.00 GiB is free.\n"
)


def lay(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(OOM if path.suffix in (".log", ".out", ".err", ".txt") else "stage: sft\n")


def jobs(*paths: Path | str, pattern: str | None = None, since: float | None = None) -> list[Job]:
    found = list(find([str(path) for path in paths], pattern, since))
    assert all(isinstance(one, Job) for one in found), found
    return [one for one in found if isinstance(one, Job)]


def found(folder: Path) -> list[tuple[str, int, int]]:
    return [(os.path.relpath(job.id, folder), len(job.logs), len(job.configs)) for job in jobs(folder)]


def texts(job: Job) -> list[bytes]:
    return [source.read() for source in open_inputs(job)[0]]


# -- folders


def test_a_folder_with_a_config_is_one_job(tmp_path: Path) -> None:
    lay(tmp_path, "a/error.log", "a/train.log", "a/train.yaml", "b/error.log", "b/ds.json")
    assert found(tmp_path) == [("a", 2, 1), ("b", 1, 1)]


def test_ranks_and_streams_of_one_name_are_one_job(tmp_path: Path) -> None:
    lay(tmp_path, "run/rank_0.log", "run/rank_1.log", "slurm/job-17.out", "slurm/job-17.err", "slurm/job-18.out", "slurm/job-18.err")
    assert found(tmp_path) == [("run", 2, 0), ("slurm/job-17", 2, 0), ("slurm/job-18", 2, 0)]


def test_other_logs_without_a_config_are_jobs_of_their_own(tmp_path: Path) -> None:
    lay(tmp_path, "monday.log", "tuesday.log", "wednesday.txt", "README.md", ".hidden.log", ".git/a.log", "node_modules/b.log")
    assert found(tmp_path) == [("monday.log", 1, 0), ("tuesday.log", 1, 0), ("wednesday.txt", 1, 0)]


def test_numbers_of_a_scheduler_are_jobs_even_beside_a_config(tmp_path: Path) -> None:
    """A project's folder with its config and the outputs of all of its runs. PBS writes NAME.o123 and NAME.e123."""
    lay(tmp_path, "train.yaml", "slurm-41_1.out", "slurm-41_2.out", "x/sft-1001.out", "x/sft-1001.err", "x/sft-1002.out", "x/train.yaml")
    for name in ("p/sft.o771", "p/sft.e771", "p/sft.o772"):
        (tmp_path / "p").mkdir(exist_ok=True)
        (tmp_path / name).write_text(OOM)
    assert found(tmp_path) == [
        ("slurm-41_1", 1, 1),
        ("slurm-41_2", 1, 1),
        ("p/sft.771", 2, 0),
        ("p/sft.772", 1, 0),
        ("x/sft-1001", 2, 1),
        ("x/sft-1002", 1, 1),
    ]


def test_a_job_has_the_same_id_when_another_comes_beside_it(tmp_path: Path) -> None:
    """A nightly run over a growing folder must know yesterday's jobs again."""
    lay(tmp_path, "slurm-1.out")
    before = found(tmp_path)
    lay(tmp_path, "slurm-1.err", "slurm-2.out")
    assert before[0][0] in {name for name, _, _ in found(tmp_path)}


def test_a_folder_of_ranks_nodes_or_attempts_is_one_job(tmp_path: Path) -> None:
    """torchrun --log-dir, srun --output=rank_%t/..., Lightning's and people's own."""
    lay(tmp_path, *(f"exp/none_x1/attempt_0/{rank}/{stream}.log" for rank in range(2) for stream in ("stdout", "stderr")), "exp/train.yaml")
    lay(tmp_path, "own/rank_0/train.log", "own/rank_1/train.log", "own/node1/train.log", "own/cfg.yaml")
    assert found(tmp_path) == [("exp/none_x1", 4, 1), ("own", 3, 1)]


def test_sessions_of_ray_runs_of_wandb_and_pods_are_jobs_whole(tmp_path: Path) -> None:
    worker = f"worker-{'a' * 20}-01000000-12.out"
    lay(tmp_path, f"ray/session_2024-01-01_00-00-00_000001_1/logs/{worker}", f"ray/session_2024-01-02_00-00-00_000001_1/logs/{worker}")
    lay(tmp_path, *(f"wandb/run-20240101_00000{run}-abc/files/{name}" for run in range(2) for name in ("output.log", "config.yaml")))
    (tmp_path / "wandb/run-20240101_000000-abc/files/wandb-metadata.json").write_text("{}")
    pod = "team_sft-master-0_01234567-1111-2222-3333-444444444444"
    lay(tmp_path, f"pods/{pod}/pytorch/0.log", f"pods/{pod}/pytorch/1.log", f"pods/{pod}/sidecar/0.log")
    lay(
        tmp_path,
        f"pods/{pod.replace('master-0_01', 'worker-0_02')}/pytorch/0.log",
        f"pods/{pod.replace('sft-master-0', 'eval')}/main/0.log",
    )
    assert found(tmp_path) == [
        ("pods/team_sft", 4, 0),
        ("pods/team_eval_01234567-1111-2222-3333-444444444444", 1, 0),
        ("ray/session_2024-01-01_00-00-00_000001_1", 1, 0),
        ("ray/session_2024-01-02_00-00-00_000001_1", 1, 0),
        ("wandb/run-20240101_000000-abc", 2, 1),
        ("wandb/run-20240101_000001-abc", 1, 1),
    ]


def test_the_newest_wandb_run_belongs_to_the_job_beside_it(tmp_path: Path) -> None:
    lay(tmp_path, "exp/train.log", "exp/wandb/run-20240101_000000-a/files/output.log", "exp/wandb/run-20240102_000000-a/files/output.log")
    (job,) = jobs(tmp_path)
    assert [Path(log).parts[-3:] for log in job.logs[1:]] == [("run-20240102_000000-a", "files", "output.log")]


def test_a_config_counts_in_the_folder_of_logs_below_it(tmp_path: Path) -> None:
    lay(tmp_path, "proj/train.yaml", "proj/logs/monday.log", "proj/logs/tuesday.log", "proj/data/x.txt", "proj/src/y.txt")
    assert found(tmp_path) == [
        ("proj/data/x.txt", 1, 0),
        ("proj/logs/monday.log", 1, 1),
        ("proj/logs/tuesday.log", 1, 1),
        ("proj/src/y.txt", 1, 0),
    ]


def test_a_sweep_of_configs_is_not_taken_for_one_jobs(tmp_path: Path) -> None:
    lay(tmp_path, "a.log", *(f"run{number}.yaml" for number in range(40)))
    assert found(tmp_path) == [("a.log", 1, 0)]


def test_as_many_logs_as_no_job_leaves_are_jobs_of_their_own_even_beside_a_config(tmp_path: Path) -> None:
    lay(tmp_path, "base.yaml", *(f"run_{chr(97 + number)}.log" for number in range(20)))
    assert len(found(tmp_path)) == 20


@for_each(
    "name, common",
    [
        ("rank0.log", "log"),
        ("train_rank3.log", "train"),
        ("job-17.err", "job-17"),
        ("stdout.log", "log"),
        ("node2.log", "log"),
        ("outer.log", "outer"),
        ("sft.e123", "sft.123"),
    ],
)
def test_the_stem_leaves_rank_and_stream_out(name: str, common: str) -> None:
    assert log_stem(name) == common


FOLDERS = (
    "a",
    "b",
    "logs",
    "rank_0",
    "rank_1",
    "node2",
    "attempt_0",
    "3",
    "session_2024-01-01_00-00-00_000001_1",
    "t_p-worker-0_01234567-89",
)
FILES = (
    "train.log",
    "slurm-12.out",
    "slurm-12.err",
    "slurm-13.out",
    "rank_0.log",
    "sft-1001.log",
    "sft-1002.log",
    "x.o771",
    "cfg.yaml",
    "a.log.1",
)
PLACES = st.builds(lambda above, name: "/".join((*above, name)), st.lists(st.sampled_from(FOLDERS), max_size=3), st.sampled_from(FILES))


@given(st.sets(PLACES, max_size=12))
@settings(max_examples=examples(150), deadline=None)
def test_no_log_is_lost_and_none_is_in_two_jobs(places: set[str]) -> None:
    """Whatever lies where."""
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        for place in places:
            (top / place).parent.mkdir(parents=True, exist_ok=True)
            (top / place).write_text(place)
        found = jobs(top)
    logs = [os.path.relpath(log, top) for job in found for log in job.logs]
    assert sorted(logs) == sorted(place for place in places if not place.endswith(".yaml"))
    assert len({job.id for job in found}) == len(found)


def test_links_lead_nowhere_else(tmp_path: Path) -> None:
    """A link to a log of the same folder is that log; one out of it is named, and never read."""
    lay(tmp_path, "in/a.log", "secret.log")
    (tmp_path / "in/again.log").symlink_to(tmp_path / "in/a.log")
    (tmp_path / "in/out.log").symlink_to(tmp_path / "secret.log")
    (tmp_path / "in/gone.log").symlink_to(tmp_path / "nowhere.log")
    (tmp_path / "in/loop").symlink_to(tmp_path / "in")
    os.mkfifo(tmp_path / "in/pipe.log")
    everything = list(find([str(tmp_path / "in")]))
    assert sorted(one.fault for one in everything if isinstance(one, UnreadableJob)) == ["link_outside", "vanished"]
    assert [Path(one.id).name for one in everything if isinstance(one, Job)] == ["a.log"]


def test_a_folder_that_cannot_be_read_is_a_row_and_the_others_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay(tmp_path, "a/a.log", "b/b.log", "c/c.log")
    real = os.scandir

    def refusing(path: str) -> object:
        if Path(path).name == "b":
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", refusing)
    everything = list(find([str(tmp_path)]))
    assert [(one.fault, Path(one.job.id).name) for one in everything if isinstance(one, UnreadableJob)] == [("unreadable", "b")]
    assert [Path(one.id).name for one in everything if isinstance(one, Job)] == ["a.log", "c.log"]


@pytest.mark.skipif(os.name == "nt", reason="names are bytes")
def test_names_of_any_bytes_are_found_written_as_unicode_and_opened(tmp_path: Path) -> None:
    for name in (b"\xff\xfe.log", b"new\nline.log", "显存.log".encode(), b"a b'\"$(x).log", b"%41.log"):
        (Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))).write_text(OOM)
    (tmp_path / "odd!").mkdir()
    lay(tmp_path, "odd!/x.log")
    for job in jobs(tmp_path):
        " ".join((job.id, job.name, *job.logs)).encode()  # what no database takes would raise
        assert texts(job) == [OOM.encode()] and stamp(job)
    assert len(jobs(tmp_path)) == 6


def test_the_walk_holds_one_folder_at_a_time(tmp_path: Path) -> None:
    """Jobs come before the last folder was looked at."""
    lay(tmp_path, "a/a.log", "b/b.log")
    finding = find([str(tmp_path)])
    assert isinstance(next(finding), Job)
    lay(tmp_path, "b/late.log")
    assert {Path(one.id).name for one in finding if isinstance(one, Job)} == {"b.log", "late.log"}


def test_only_jobs_since_a_time(tmp_path: Path) -> None:
    lay(tmp_path, "old.log", "new.log")
    os.utime(tmp_path / "old.log", (1000, 1000))
    assert [Path(job.id).name for job in jobs(tmp_path, since=2000)] == ["new.log"]
    assert last_modified(jobs(tmp_path / "old.log")[0]) == 1000


# -- what is named itself


def test_compressed_logs_archives_and_patterns_are_jobs(tmp_path: Path) -> None:
    """An archive is what someone packed together; a rotated log is a log. What is wrong with an archive, its reader says."""
    lay(tmp_path, "run/rank_0.log", "run/rank_1.log")
    for name in ("run/rank_2.log.gz", "old.tar.gz", "run.1/train.log.3", "weights.bin"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    assert found(tmp_path) == [("old.tar.gz", 1, 0), ("run", 3, 0), ("run.1/train.log.3", 1, 0)]
    assert len(jobs(tmp_path / "run*")) == 2


def test_a_log_named_itself_is_a_job_with_the_configs_beside_it(tmp_path: Path) -> None:
    lay(tmp_path, "a.log", "b.log", "train.yaml")
    assert [(len(job.logs), len(job.configs)) for job in jobs(tmp_path / "a.log", tmp_path / "b.log")] == [(1, 1), (1, 1)]


def test_streams_named_themselves_are_one_job_as_a_shell_writes_a_pattern_out(tmp_path: Path) -> None:
    lay(tmp_path, "slurm-7.err", "slurm-7.out", "slurm-8.out")
    names = sorted(map(str, tmp_path.iterdir()))
    assert [len(job.logs) for job in jobs(*names)] == [len(job.logs) for job in jobs(tmp_path / "*")] == [2, 1]


def test_what_is_not_there_is_a_row_beside_the_others(tmp_path: Path) -> None:
    lay(tmp_path, "a.log")
    everything = list(find([str(tmp_path / "a.log"), str(tmp_path / "nowhere"), str(tmp_path / "*.none"), "https://example.org/a.log"]))
    assert [Path(one.id).name for one in everything if isinstance(one, Job)] == ["a.log"]
    assert [one.fault for one in everything if isinstance(one, UnreadableJob)] == ["vanished", "no_match", "unknown_store"]


def test_a_log_in_a_folder_that_is_given_too_is_found_once(tmp_path: Path) -> None:
    lay(tmp_path, "x/a.log", "x/y/b.log")
    assert len(jobs(tmp_path / "x", tmp_path / "x/y", tmp_path / "x/a.log", tmp_path / "x")) == 2


# -- as a person tells them apart


def test_a_pattern_tells_jobs_apart(tmp_path: Path) -> None:
    """Over folders, by the group `job`; what it does not match is a job of its own."""
    lay(tmp_path, "out/sft-7-a.log", "err/sft-7-b.log", "out/sft-8-a.log", "out/other.log", "out/train.yaml")
    seen = {os.path.relpath(job.id, tmp_path): len(job.logs) for job in jobs(tmp_path, pattern=r"sft-(?P<job>\d+)")}
    assert seen == {"7": 2, "8": 1, "out/other.log": 1}
    assert {len(job.configs) for job in jobs(tmp_path / "out", pattern=r"sft-\d")} == {1}


def test_a_pattern_that_is_none_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no regular expression"):
        list(find([str(tmp_path)], pattern="("))


def test_how_jobs_are_told_apart_is_said(tmp_path: Path) -> None:
    lay(tmp_path, "a.log")
    said: list[str] = []
    list(find([str(tmp_path)], say=lambda text: said.append(text.en)))
    list(find([str(tmp_path)], pattern="x", say=lambda text: said.append(text.zh)))
    assert "--job-pattern" in said[0] and "x" in said[1]


# -- archives


def packed(path: Path, files: dict[str, str]) -> None:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in files.items():
                archive.writestr(name, text)
        return
    with tarfile.open(path, "w:gz" if path.name.endswith("gz") else "w") as tar:
        for name, text in files.items():
            about = tarfile.TarInfo(name)
            about.size = len(text)
            tar.addfile(about, io.BytesIO(text.encode()))


@pytest.mark.parametrize("name", ["all.tar", "all.tar.gz", "all.zip"])
def test_an_archive_of_many_jobs_folders_is_many_jobs(tmp_path: Path, name: str) -> None:
    files = {f"jobs/{job}/{file}": f"{file} of {job}\n" for job in ("a", "b", "c") for file in ("error.log", "train.yaml")}
    packed(tmp_path / name, files)
    found = jobs(tmp_path)
    assert [job.id for job in found] == [f"{tmp_path / name}!/jobs/{job}" for job in ("a", "b", "c")]
    assert [texts(job) for job in found] == [[f"error.log of {job}\n".encode()] for job in ("a", "b", "c")]
    assert [open_inputs(job)[1][0].data for job in reversed(found)] == [f"train.yaml of {job}\n".encode() for job in ("c", "b", "a")]
    assert len({stamp(job) for job in found}) == 3


@pytest.mark.parametrize(
    "files",
    [
        {"logs/train.log": OOM, "conf/train.yaml": "stage: sft\n", "slurm/job.out": OOM},
        {"run/attempt_0/0/stderr.log": OOM, "run/attempt_0/1/stderr.log": OOM},
        {"rank_0/train.log": OOM, "rank_1/train.log": OOM},
    ],
)
def test_an_archive_of_one_jobs_folders_is_one_job(tmp_path: Path, files: dict[str, str]) -> None:
    packed(tmp_path / "job.tgz", files)
    assert [job.logs for job in jobs(tmp_path)] == [(str(tmp_path / "job.tgz"),)]


def test_an_archive_that_is_cut_off_gives_what_it_holds_and_says_so(tmp_path: Path) -> None:
    packed(tmp_path / "all.tar", {f"{job}/error.log": OOM * 20 for job in "abc"})
    whole = (tmp_path / "all.tar").read_bytes()
    (tmp_path / "all.tar").write_bytes(whole[:-12000])
    everything = list(find([str(tmp_path)]))
    assert [one.fault for one in everything if isinstance(one, UnreadableJob)] == ["broken_archive"]
    assert texts(next(one for one in everything if isinstance(one, Job))) == [(OOM * 20).encode()]


def test_names_in_an_archive_are_names(tmp_path: Path) -> None:
    """Wherever they would lead, what is read is the member."""
    names = ("../../etc/passwd/error.log", "/etc/error.log", "c!/error.log", "d/./error.log")
    packed(tmp_path / "all.tar", {name: name for name in names})
    assert sorted(texts(job)[0].decode() for job in jobs(tmp_path)) == sorted(names)


def test_an_archive_in_an_archive_is_a_job(tmp_path: Path) -> None:
    packed(tmp_path / "inner.tgz", {"error.log": OOM})
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.write(tmp_path / "inner.tgz", "c/inner.tgz")
        for job in "ab":
            archive.writestr(f"{job}/error.log", OOM)
    (tmp_path / "inner.tgz").unlink()
    found = jobs(tmp_path)
    assert [Path(job.id).name for job in found] == ["error.log", "error.log", "inner.tgz"]
    assert all(explain(open_inputs(job)[0]).verdict.status == "oom" for job in found)


def test_an_archive_is_read_once_for_all_of_its_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty jobs of one tar.gz must not cost twenty times its decompression."""
    from diagnose.cluster.find import job_files

    packed(tmp_path / "all.tar.gz", {f"{job:02}/error.log": OOM for job in range(20)})
    found = jobs(tmp_path)
    begun: list[str] = []
    real = job_files._ArchiveReader.__init__

    def begin(self: job_files._ArchiveReader, archive: str) -> None:
        begun.append(archive)
        real(self, archive)

    monkeypatch.setattr(job_files._ArchiveReader, "__init__", begin)
    assert all(texts(job) == [OOM.encode()] for job in found)
    assert len(begun) == 1


def test_a_member_that_is_gone_is_said_when_it_is_read(tmp_path: Path) -> None:
    packed(tmp_path / "all.zip", {f"{job}/error.log": OOM for job in "ab"})
    first, second = jobs(tmp_path)
    packed(tmp_path / "all.zip", {"a/error.log": OOM})
    with pytest.raises(UserError):
        open_inputs(second)[0][0].read()
    assert texts(first) == [OOM.encode()]


# -- lists of paths


def test_a_list_names_logs_and_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From where the command runs, or else from where the list lies; notes and empty lines are no paths."""
    lay(tmp_path, "x/a.log", "x/b/c.log", "x/b/c.yaml")
    (tmp_path / "x/jobs.txt").write_text("# tonight\na.log\n\nb\n")
    monkeypatch.chdir(tmp_path)
    wanted = [str(tmp_path / "x/a.log"), str(tmp_path / "x/b")]
    assert [job.id for job in jobs("x/jobs.txt")] == wanted
    (tmp_path / "list").write_bytes(b"x/a.log\0x/b\0")
    assert [job.id for job in jobs("@list")] == wanted
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"x/a.log\nx/b\n")))
    assert [job.id for job in jobs("@-")] == wanted
    with gzip.open(tmp_path / "jobs.list.gz", "wb") as out:
        out.write(b"x/a.log\nx/b\n")
    assert [job.id for job in jobs(tmp_path / "jobs.list.gz")] == wanted


def test_a_list_that_is_none_is_a_row(tmp_path: Path) -> None:
    packed(tmp_path / "all.zip", {"a.log": OOM})
    everything = list(find([f"@{tmp_path / 'nowhere'}", f"@{tmp_path / 'all.zip'}"]))
    assert [one.fault for one in everything if isinstance(one, UnreadableJob)] == ["vanished", "unreadable"]


def test_a_log_that_names_a_path_is_a_log(tmp_path: Path) -> None:
    """A text is a list only where each of its first lines is a path, and never because it was found in a folder."""
    lay(tmp_path, "a.log")
    (tmp_path / "out.txt").write_text(f"{tmp_path / 'a.log'}\nTraceback (most recent call last):\n")
    assert [job.logs for job in jobs(tmp_path / "out.txt")] == [(str(tmp_path / "out.txt"),)]
    (tmp_path / "out.txt").write_text(f"{tmp_path / 'a.log'}\n")
    assert [Path(job.logs[0]).name for job in jobs(tmp_path / "out.txt")] == ["a.log"]
    assert {Path(job.logs[0]).name for job in jobs(tmp_path)} == {"a.log", "out.txt"}


# -- stores


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> object:
    fsspec = pytest.importorskip("fsspec")
    monkeypatch.setitem(object_stores.STORES, "memory", "memory")
    store = fsspec.filesystem("memory")
    store.store.clear()
    store.pseudo_dirs[:] = [""]
    return store


def test_a_prefix_of_a_store_is_a_folder(bucket: object, tmp_path: Path) -> None:
    packed(tmp_path / "all.zip", {f"{job}/error.log": OOM for job in "ab"})
    files = {"a/error.log": OOM.encode(), "a/train.yaml": b"stage: sft\n", "b/x.log.gz": gzip.compress(OOM.encode())}
    for name, data in {**files, "all.zip": (tmp_path / "all.zip").read_bytes()}.items():
        with bucket.open(f"/b/logs/{name}", "wb") as out:  # type: ignore[attr-defined]
            out.write(data)
    found = jobs("memory://b/logs")
    assert [job.id.removeprefix("memory://b/logs/") for job in found] == ["all.zip!/a/error.log", "all.zip!/b/error.log", "a", "b/x.log.gz"]
    assert open_inputs(found[2])[1][0].data == b"stage: sft\n"
    assert texts(found[0]) == texts(found[2]) == [OOM.encode()]
    assert all(stamp(job) and last_modified(job) for job in found)
    assert [job.id for job in jobs("memory://b/logs/b/x.log.gz")] == ["memory://b/logs/b/x.log.gz"]
    assert len(jobs("memory://b/logs/*/*.log*")) == 2
    (tmp_path / "l.txt").write_text("memory://b/logs/a/error.log\n")
    assert [len(job.configs) for job in jobs(tmp_path / "l.txt")] == [1]


def test_what_a_store_was_listed_as_before_is_asked_again(bucket: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores remember their listings; a watch must see what is new. (The one in memory stands in for one that remembers.)"""
    from fsspec.implementations.memory import MemoryFileSystem

    listed: dict[str, list[dict[str, object]]] = {}
    real = MemoryFileSystem.ls

    def remembered(self: MemoryFileSystem, path: str, detail: bool = True, **options: object) -> list[dict[str, object]]:
        return listed.setdefault(path, real(self, path, detail, **options))

    monkeypatch.setattr(MemoryFileSystem, "ls", remembered)
    monkeypatch.setattr(MemoryFileSystem, "invalidate_cache", lambda self, path=None: listed.clear())
    for count, name in enumerate(("a.log", "b.log"), 1):
        with bucket.open(f"/b/logs/{name}", "wb") as out:  # type: ignore[attr-defined]
            out.write(OOM.encode())
        assert len(jobs("memory://b/logs")) == count


def test_a_manifest_in_a_store_names_what_lies_beside_it(bucket: object) -> None:
    for name, data in {"jobs.jsonl": b'{"id": "r1", "log": "x/a.log", "user": "ada"}\n', "x/a.log": OOM.encode()}.items():
        with bucket.open(f"/b/{name}", "wb") as out:  # type: ignore[attr-defined]
            out.write(data)
    (job,) = jobs("memory://b/jobs.jsonl")
    assert (job.id, job.logs, job.about.user) == ("r1", ("memory://b/x/a.log",), "ada") and texts(job) == [OOM.encode()]


def test_a_store_that_cannot_be_reached_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "fsspec", None)
    (one,) = find(["s3://bucket/logs"])
    assert isinstance(one, UnreadableJob) and one.fault == "store_extra" and ".[s3]" in one.error.en


def test_a_config_that_cannot_be_read_costs_only_itself(tmp_path: Path) -> None:
    """The log beside it is diagnosed all the same, and the config is said to be unusable."""
    lay(tmp_path, "a/error.log", "a/train.yaml")
    (job,) = jobs(tmp_path)
    (tmp_path / "a/train.yaml").unlink()
    logs, configs = open_inputs(job)
    diagnosis = explain(logs, configs=configs)
    assert diagnosis.verdict.status == "oom"
    assert any("train.yaml" in notice.message.en for notice in diagnosis.notices if notice.code == "unusable_input")


def test_a_full_disk_under_the_records_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay(tmp_path, "a.log")

    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(JobIndex, "add", full)
    with pytest.raises(UserError, match=r"disk is full.*TMPDIR"):
        list(find([str(tmp_path)], pattern="a"))


# -- addresses


@given(st.binary(min_size=1, max_size=40).filter(lambda name: b"\0" not in name and b"/" not in name and name not in (b".", b"..")))
@settings(max_examples=200, deadline=None)
def test_any_name_of_bytes_comes_back_from_its_address(name: bytes) -> None:
    path = os.fsdecode(b"/logs/" + name)
    written = addresses.to_address(path)
    written.encode()
    assert os.fsencode(addresses.to_path(written)) == b"/logs/" + name
