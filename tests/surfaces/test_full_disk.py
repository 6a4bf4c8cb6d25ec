"""No room left, wherever an answer, a report or an export is written: one sentence and 2; nothing else is harmed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from cases import CORPUS
from collected import for_each
from forked import ENTRY, forked
from serving import SHORT

pytestmark = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full, and limits of POSIX")

CASE = CORPUS / "llamafactory-6800"
LOG, CONFIGS = str(CASE / "error.log"), [f"--config={CASE / name}" for name in ("qwen2vl_dpo.yaml", "ds_z3_config.json")]
#: The command where no file may grow beyond so many bytes: the database of a triage fits, a report does not.
LIMITED = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)),) * 2)
"""


def left(*words: str, cwd: Path, limit: int | None = None, stdout: int | None = None) -> tuple[int, list[str]]:
    """The exit status, and the sentences on standard error but the one on how logs are sorted."""
    start = [ENTRY] if limit is None else [LIMITED + ENTRY, str(limit)]
    done = forked(*start, *words, cwd=cwd, stdout=stdout)
    return done.returncode, [line for line in done.stderr.splitlines() if "is a job of its own" not in line]


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    (tmp_path / "jobs").mkdir()
    for number in range(3):
        (tmp_path / "jobs" / f"job{number}.log").write_text(SHORT.replace("2.00", f"2.0{number}"))
    return tmp_path


@for_each(
    "words",
    [
        ("explain", LOG),
        ("explain", LOG, "--format", "html"),
        ("explain", LOG, *CONFIGS, "--patch", "-"),
        ("check", *CONFIGS),
        ("facts", LOG),
        ("schema",),
        ("rules", "list"),
        ("--version",),
        ("--help",),
        ("explain", "--help"),
        ("triage", LOG),
        ("triage", LOG, "--format", "json"),
    ],
)
def test_standard_output(words: tuple[str, ...]) -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        status, said = left(*words, cwd=CASE, stdout=full.fileno())
    assert status == 2 and len(said) == 1 and "No space left on device" in said[0] and "mistake" not in said[0]


@pytest.mark.parametrize(
    "words",
    [
        ("triage", "jobs", "--export", "full.jsonl"),
        ("triage", "jobs", "--out", "full.html"),
        ("explain", LOG, *CONFIGS, "--patch", "full.diff"),
    ],
)
def test_a_link_to_a_device(words: tuple[str, ...], jobs: Path) -> None:
    """It is written to, and never replaced by a file."""
    target = jobs / words[-1]
    target.symlink_to("/dev/full")
    status, said = left(*words, cwd=jobs)
    assert (status, len(said)) == (2, 1) and target.name in said[0] and "No space left" in said[0]
    assert os.readlink(target) == "/dev/full" and Path("/dev/full").is_char_device()  # noqa: PTH115


@pytest.mark.parametrize("name", ["report.jsonl", "report.diff"])
def test_a_file_that_cannot_grow_is_as_it_was(name: str, jobs: Path) -> None:
    target = jobs / name
    target.write_text(old := "--- a/x\n")
    words = ("explain", LOG, *CONFIGS, "--patch", name) if name.endswith("diff") else ("triage", LOG, "--export", name)
    status, said = left(*words, cwd=jobs, limit=100 if name.endswith("diff") else 30_000)
    assert (status, len(said)) == (2, 1) and said[0].startswith(f"oomdoctor: {name}: cannot be written: File too large")
    assert target.read_text() == old and {path.name for path in jobs.iterdir()} == {name, "jobs"}


@pytest.mark.parametrize("limit", [0, 500, 4000])
def test_an_export_of_tables_names_its_folder(limit: int, jobs: Path) -> None:
    """The database, which has room, is whole; each file of a table is whole or is not there."""
    assert left("triage", "jobs", "--store", "s.duckdb", cwd=jobs)[0] == 0
    code = (
        "from pathlib import Path; from diagnose.cluster.store.result_store import Store; from diagnose.errors import UserError\n"
        "try: Store.open(Path('s.duckdb')).export_tables(Path('tables'))\n"
        "except UserError as error: print(error, file=sys.stderr); sys.exit(2)\n"
    )
    done = forked(LIMITED + code, str(limit), cwd=jobs)
    assert done.returncode == 2 and done.stderr.startswith("tables: cannot be written (File too large)"), done.stderr
    assert not list((jobs / "tables").glob(".*"))
    assert left("triage", "jobs", "--store", "s.duckdb", "--export", "tables", cwd=jobs)[0] == 0


def test_pages_that_do_not_fit(jobs: Path) -> None:
    """The report of before stays; the database has room and keeps the run."""
    assert left("triage", "jobs", "--store", "s.duckdb", "--out", "r.html", cwd=jobs)[0] == 0
    before = (jobs / "r.html").read_text()
    code = (
        "from pathlib import Path; from diagnose.cluster.report import report_files\n"
        "from diagnose.cluster.report.group_summaries import summarize\n"
        "from diagnose.cluster.store.result_store import Store\n"
        "store = Store.open(Path('s.duckdb'))\n"
        "try: report_files.write_html(store, summarize(store, 'fingerprint', None), Path('r.html'))\n"
        "except OSError as error: sys.exit(error.errno)\n"
    )
    done = forked(LIMITED + code, "1000", cwd=jobs)
    assert (done.returncode, done.stderr) == (27, "")
    assert (jobs / "r.html").read_text() == before and not list(jobs.rglob(".*.part"))


def test_the_log_of_run(tmp_path: Path) -> None:
    """The command goes on to its own end, and its output is shown."""
    printing = "print('x' * 1000); raise SystemExit(3)"
    done = forked(LIMITED + ENTRY, "100", "run", "--log", "r.log", "--", sys.executable, "-c", printing, cwd=tmp_path)
    assert done.returncode == 3 and done.stdout == "x" * 1000 + "\n"
    assert "File too large" in done.stderr and "Traceback" not in done.stderr
