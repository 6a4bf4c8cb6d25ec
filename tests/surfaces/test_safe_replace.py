"""`--apply` and `--patch` lose nothing: whatever fails or is killed, every byte of the old files is where the message says."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forked import forked
from logs_of_torch import LOG
from sweep import SWEEP

from diagnose.errors import UserError
from diagnose.surfaces.terminal import safe_replace
from diagnose.surfaces.terminal.safe_replace import read_file, replace_files

#: The calls that write, each of which is let fail once at every place where it is made.
CALLS = ("open", "write", "fsync", "fchmod", "setxattr", "link", "replace", "unlink", "close")
OLD = {"a.yaml": b"stage: sft\n", "b.yaml": b"cutoff_len: 8192\n"}
NEW = {"a.yaml": b"stage: dpo\n", "b.yaml": b"cutoff_len: 4096\n"}


def lay_files(folder: Path) -> None:
    folder.mkdir()
    for name, data in OLD.items():
        (folder / name).write_bytes(data)
        os.setxattr(folder / name, "user.note", b"mine")


def change(folder: Path) -> list[safe_replace.Replaced]:
    return replace_files([(read_file(folder / name), NEW[name]) for name in OLD])


def interrupt(monkeypatch: pytest.MonkeyPatch, name: str, number: int, act: Callable[[], None]) -> list[int]:
    """Let the call of this number act first; the list grows with each call."""
    real, calls = getattr(os, name), []

    def call(*arguments: Any, **named: Any) -> Any:
        calls.append(1)
        if len(calls) == number:
            act()
        return real(*arguments, **named)

    monkeypatch.setattr(os, name, call)
    return calls


def nothing_is_lost(folder: Path) -> bool:
    """Whether each old content is at its path or in the original beside it, and nothing is half written."""
    contents = {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith(".oomdoctor")}
    safe = all(old in (contents.get(name), contents.get(f"{name}.orig")) for name, old in OLD.items())
    return safe and all(contents[name] in (OLD[name], NEW[name]) for name in OLD) and contents.keys() <= {*OLD, *(f"{n}.orig" for n in OLD)}


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES], ids=("full", "forbidden"))
@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_fails(name: str, number: int, tmp_path: Path) -> None:
    """All files have their old content again and nothing lies about, or all are changed; the error is one sentence."""

    def fail() -> None:
        raise OSError(number, os.strerror(number))

    failed = 0
    for place in range(1, 40):
        folder = tmp_path / f"{place}"
        lay_files(folder)
        with pytest.MonkeyPatch.context() as patch:
            calls = interrupt(patch, name, place, fail)
            try:
                change(folder)
                is_changed = True
            except UserError:
                is_changed, failed = False, failed + 1
            except OSError:  # of reading: nothing was begun
                is_changed = False
        wanted = NEW if is_changed else OLD
        assert {name: (folder / name).read_bytes() for name in OLD} == wanted and nothing_is_lost(folder), (name, place)
        if is_changed or name not in ("unlink", "close"):  # a draft that cannot be removed stays
            assert not [path for path in folder.iterdir() if path.name.endswith(".oomdoctor") and name != "unlink"]
        if len(calls) < place:
            break
    assert (failed or name in ("unlink", "setxattr")) and place > 2, "the call is never made"


def test_a_kill_at_any_call(tmp_path: Path) -> None:
    """The process ends where it stands. In a process of its own, which is small: each place costs a fork."""
    code = "import sys; sys.path[:0] = sys.argv[1:]; import test_safe_replace as t; t.kill_everywhere()"
    done = forked(code, str(Path(__file__).parent), cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def kill_everywhere() -> None:
    for name in CALLS:
        Path(name).mkdir()
        kill_at_each(name, Path(name))


def kill_at_each(name: str, tmp_path: Path) -> None:
    for place in range(1, 40):
        folder = tmp_path / f"{place}"
        lay_files(folder)
        child = os.fork()
        if not child:
            with pytest.MonkeyPatch.context() as patch:
                interrupt(patch, name, place, lambda: os.kill(os.getpid(), signal.SIGKILL))
                change(folder)
                os._exit(0)
        _, status = os.waitpid(child, 0)
        assert nothing_is_lost(folder), (name, place)
        if not status:
            break
        assert os.WTERMSIG(status) == signal.SIGKILL, (name, place)
    assert place > 2, f"{name} is never called"


@pytest.mark.skipif(not SWEEP or not shutil.which("strace"), reason="a sweep, with strace")
@pytest.mark.parametrize("fault", ["error=ENOSPC", "error=EACCES", "signal=KILL"])
def test_every_system_call(fault: str, tmp_path: Path) -> None:
    """The same below Python: each system call of the write fails or is the last."""
    code = "import sys; sys.path[:0] = sys.argv[2:]; from pathlib import Path; import test_safe_replace as t; t.change(Path(sys.argv[1]))"
    injected = set()
    for call in ("write", "link,linkat", "rename", "fsync", "fchmod", "fsetxattr", "unlink"):
        for place in range(1, 12):
            folder, trace = tmp_path / f"{call.partition(',')[0]}{place}", tmp_path / "trace"
            lay_files(folder)
            command = ["strace", "-qq", "-o", str(trace), "-e", f"trace={call}", "-e", f"inject={call}:{fault}:when={place}"]
            environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
            words = [*command, sys.executable, "-c", code, str(folder), *map(str, Path(__file__).parents[:2])]
            subprocess.run(words, env=environment, capture_output=True, check=False, timeout=60)
            assert nothing_is_lost(folder), (call, place)
            if "INJECTED" in trace.read_text() or "SIGKILL" in trace.read_text():
                injected.add(call)
            elif place > 1:
                break
    assert len(injected) == 7


def test_a_file_that_cannot_be_put_back_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second file cannot be changed and the first not restored: the error says where its old content is."""
    lay_files(tmp_path / "x")
    real, calls = os.replace, []

    def replace(*paths: Any) -> None:
        calls.append(paths)
        if len(calls) > 1:
            raise OSError(errno.EROFS, "read-only")
        real(*paths)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(UserError, match=r"a\.yaml\.orig"):
        change(tmp_path / "x")
    assert nothing_is_lost(tmp_path / "x") and (tmp_path / "x" / "a.yaml").read_bytes() == NEW["a.yaml"]


# -- what is already there


def test_each_state_of_a_file_is_kept(tmp_path: Path) -> None:
    """The first original stays; later states are numbered, none twice."""
    lay_files(tmp_path / "x")
    path = tmp_path / "x" / "a.yaml"
    for data in (b"one\n", b"two\n", b"stage: sft\n", b"three\n"):
        replace_files([(read_file(path), data)])
    kept = {file.name: file.read_bytes() for file in path.parent.iterdir() if ".orig" in file.name}
    assert kept == {"a.yaml.orig": b"stage: sft\n", "a.yaml.orig.1": b"one\n", "a.yaml.orig.2": b"two\n"}


@pytest.mark.parametrize("kind", ["folder", "link", "broken link", "cut", "empty", "pipe"])
def test_what_is_no_original_is_refused(kind: str, tmp_path: Path) -> None:
    """A folder, a link, half of the file after a full disk: the file is left alone, and so is what is there."""
    lay_files(tmp_path / "x")
    original = tmp_path / "x" / "b.yaml.orig"
    match kind:
        case "folder":
            original.mkdir()
        case "link" | "broken link":
            original.symlink_to(tmp_path / "x" / ("a.yaml" if kind == "link" else "nowhere"))
        case "pipe":
            os.mkfifo(original)
        case _:
            original.write_bytes(OLD["b.yaml"][: 5 if kind == "cut" else 0])
    before = original.lstat()
    with pytest.raises(UserError, match=r"b\.yaml\.orig"):
        change(tmp_path / "x")
    assert {name: (tmp_path / "x" / name).read_bytes() for name in OLD} == OLD and original.lstat() == before
    assert {path.name for path in (tmp_path / "x").iterdir()} == {*OLD, original.name}


def test_a_file_that_changes_at_the_last_moment_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one does, after the first was changed: both are as they were, with the newest content."""
    lay_files(tmp_path / "x")
    real = safe_replace.refuse_if_changed

    def check(old: safe_replace.OldFile) -> None:
        if old.path.name == "b.yaml":
            old.path.write_bytes(b"cutoff_len: 1\n")
        real(old)

    monkeypatch.setattr(safe_replace, "refuse_if_changed", check)
    with pytest.raises(UserError, match="changed"):
        change(tmp_path / "x")
    assert (tmp_path / "x" / "a.yaml").read_bytes() == OLD["a.yaml"] and (tmp_path / "x" / "b.yaml").read_bytes() == b"cutoff_len: 1\n"


def test_owner_mode_and_attributes_stay_and_setuid_goes(tmp_path: Path) -> None:
    lay_files(tmp_path / "x")
    path = tmp_path / "x" / "a.yaml"
    if os.getuid() == 0:
        os.chown(path, 1234, 4321)
    path.chmod(0o6751)
    [replaced] = replace_files([(read_file(path), b"new\n")])
    for file in (path, replaced.original):
        assert os.getxattr(file, "user.note") == b"mine" and stat.S_IMODE(file.stat().st_mode) == 0o751
        assert os.getuid() or (file.stat().st_uid, file.stat().st_gid) == (1234, 4321)


def test_other_names_of_a_file_are_told(tmp_path: Path) -> None:
    lay_files(tmp_path / "x")
    (tmp_path / "other").hardlink_to(tmp_path / "x" / "a.yaml")
    assert [replaced.has_other_names for replaced in change(tmp_path / "x")] == [True, False]
    assert (tmp_path / "other").read_bytes() == OLD["a.yaml"]


def test_without_hard_links_the_original_is_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay_files(tmp_path / "x")

    def link(*_: Any, **__: Any) -> None:
        raise OSError(errno.EOPNOTSUPP, "not supported")

    monkeypatch.setattr(os, "link", link)
    change(tmp_path / "x")
    assert (tmp_path / "x" / "a.yaml.orig").read_bytes() == OLD["a.yaml"]


# -- the command line: encodings, names, what --patch writes over

CONFIG = "model_name_or_path: Qwen/Qwen2-7B\nstage: sft\nfinetuning_type: full\ncutoff_len: 8192\nper_device_train_batch_size: 8\n"


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "job").mkdir()
    monkeypatch.chdir(tmp_path / "job")
    (tmp_path / "error.log").write_text(LOG)
    return tmp_path


@pytest.mark.parametrize("encoding, comment", [
    ("utf-8", "# 训练\n"), ("utf-8-sig", "# 训练\n"), ("gb18030", "# 训练配置文件\n"), ("utf-16", "# 训练\n"),
    ("utf-16-be", "\ufeff# 训练\n"),
    ("latin-1", "# d\xe9j\xe0 vu \xff\n"),
])  # fmt: skip
def test_a_file_is_written_back_in_its_own_encoding(encoding: str, comment: str, oomdoctor: Any, job: Path) -> None:
    """And the diff applies to it, where tools that read lines of bytes can do that at all."""
    path = Path("train.yaml")
    before = f"{comment}{CONFIG}".replace("\n", "\r\n").encode(encoding)
    path.write_bytes(before)
    ended = oomdoctor("explain", job / "error.log", "--config", path, "--apply", "--patch", "fix.diff")
    after = path.read_bytes()
    assert after != before, ended.err
    lines = [bytes_.decode(encoding, "strict").splitlines() for bytes_ in (before, after)]
    assert lines[0][0] == lines[1][0] and after.decode(encoding).count("\r\n") == after.decode(encoding).count("\n")
    assert Path("train.yaml.orig").read_bytes() == before
    if encoding.startswith("utf-16"):
        assert not Path("fix.diff").exists() and "UTF-16" in ended.err
        return
    for tool in ("patch", "git"):
        path.write_bytes(before)
        applies(tool, Path("fix.diff"))
        assert path.read_bytes() == after


def applies(tool: str, diff: Path, folder: Path | None = None) -> None:
    if not shutil.which(tool):
        pytest.skip(f"{tool} is not installed")
    command = ["patch", "-p1", "--binary", "-s", "-i"] if tool == "patch" else ["git", "apply"]
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": "/"}
    done = subprocess.run([*command, diff.absolute()], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr + diff.read_text(errors="replace")


NAMES = (
    "a b.yaml",
    "../up.yaml",
    "ABSOLUTE",
    "./sub/dir/x.yaml",
    "训练.yaml",
    'quo"te.yaml',
    "tab\tname.yaml",
    "-dash.yaml",
    "\u2028.yaml",
    "b\udc80ad.yaml",
)
ENDS = ("\n", "\r\n")


@pytest.mark.parametrize(
    ("name", "end"), [(name, end) for at, name in enumerate(NAMES) for end in (ENDS if SWEEP else ENDS[at % 2 : at % 2 + 1])]
)
def test_a_diff_applies_whatever_the_file_is_called(name: str, end: str, oomdoctor: Any, job: Path) -> None:
    path = Path(name) if name != "ABSOLUTE" else job / "else where" / "x.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    before = f"# comment\n{CONFIG}".replace("\n", end).encode()
    path.write_bytes(before)
    ended = oomdoctor("explain", job / "error.log", f"--config={path}", "--patch", "fix.diff")
    first = Path("fix.diff").read_bytes().decode().split("\n")[0]
    folder = Path(first.partition("In ")[2].partition(": patch")[0]) if first.startswith("# ") else None
    assert ended.status in (0, 3) or ended.err
    oomdoctor("explain", job / "error.log", f"--config={path}", "--apply")
    after = path.read_bytes()
    assert after != before
    for tool in ("patch", "git"):
        path.write_bytes(before)
        applies(tool, Path("fix.diff"), folder)
        assert path.read_bytes() == after


def test_only_a_line_feed_ends_a_line_of_a_diff(oomdoctor: Any, job: Path) -> None:
    path = Path("train.sh")
    command = " ".join(["llamafactory-cli train", *(f"--{line}".replace(":", "") for line in CONFIG.splitlines())])
    before = f"#!/bin/bash\n# \f, \x85, \u2028, \v and a lone \r end no line\necho 1\n{command}\n".encode()
    path.write_bytes(before)
    oomdoctor("explain", job / "error.log", "--config", path, "--patch", "fix.diff")
    oomdoctor("explain", job / "error.log", "--config", path, "--apply")
    after = path.read_bytes()
    assert after != before
    for tool in ("patch", "git"):
        path.write_bytes(before)
        applies(tool, Path("fix.diff"))
        assert path.read_bytes() == after


def test_a_patch_replaces_an_older_patch_and_nothing_else(oomdoctor: Any, job: Path) -> None:
    Path("train.yaml").write_text(CONFIG)
    Path("notes.md").write_text("--- mine\n")
    for target in ("train.yaml", "../job/train.yaml", "notes.md"):
        before = Path(target).read_bytes()
        ended = oomdoctor("explain", job / "error.log", "--config", "train.yaml", "--patch", target)
        assert ended.status == 2 and Path(target).name in ended.err and Path(target).read_bytes() == before
    for _ in range(2):
        assert oomdoctor("explain", job / "error.log", "--config", "train.yaml", "--patch", "fix.diff").status == 0
    assert Path("fix.diff").read_text().startswith("--- a/train.yaml")


def test_a_patch_follows_a_link_and_takes_a_pipe_as_it_was_read(oomdoctor: Any, job: Path) -> None:
    """Nothing is written there, so nothing is asked of the file; --apply leaves both alone."""
    Path("real.yaml").write_text(CONFIG)
    Path("link.yaml").symlink_to("real.yaml")
    assert oomdoctor("explain", job / "error.log", "--config", "link.yaml", "--patch", "fix.diff").status == 0
    assert Path("fix.diff").read_text().startswith("--- a/link.yaml")
    reading, writing = os.pipe()
    os.write(writing, CONFIG.encode())
    os.close(writing)
    assert oomdoctor("explain", job / "error.log", "--config", f"/dev/fd/{reading}", "--patch", "pipe.diff").status == 0
    assert "+++ b/dev/fd/" in Path("pipe.diff").read_text()
    os.close(reading)


def test_apply_without_a_file_that_it_may_write_is_a_sentence(oomdoctor: Any, job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The config came from standard input: there is no file to change."""
    import io

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CONFIG.encode())))
    ended = oomdoctor("explain", job / "error.log", "--config", "-", "--apply")
    assert ended.status == 0 and "no file that --config names" in ended.err and ended.err.count("\n") == 1
