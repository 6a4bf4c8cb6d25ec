"""How the tests run: examples, the corpus diagnosed once for all workers; what several modules of tests start."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import cases
import pytest
from hypothesis import settings
from sweep import examples

if TYPE_CHECKING:
    import httpx
    from browser import Browser
    from chatting import Kept
    from serving import Server

# A first example loads tables; a deadline would measure that, or the machine's other work.
settings.register_profile("local", deadline=None, max_examples=examples(100))
# CI judges a change, so it must not fail by what it happened to draw; the search for new examples is for people's machines.
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=examples(100))
settings.load_profile("ci" if os.environ.get("CI") else "local")


#: Tests that wait for processes and networks: modules with the longest waits, the longest first, and folders.
WAITING = (
    "test_serve_limits",
    "test_hostile_surfaces",
    "test_bot_feishu",
    "test_bot_slack",
    "test_full_disk",
    "test_ray",
    "test_worker_engine",
)
WAITING_FOLDERS = ("surfaces", "live")


#: Folders of tests of what is read and computed before any advice.
READING = ("adapters", "budget", "catalogue", "decide", "inputs", "parse", "snapshot")


def pytest_configure(config: pytest.Config) -> None:
    # Started in the background or under nohup, the tests would hand ignored signals on to every command that they interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    gc.disable()  # until everything is collected: nothing that imports make is garbage
    if not hasattr(config, "workerinput"):
        os.environ[cases.SHARED] = tempfile.mkdtemp(prefix="oomdoctor-tests-")
        os.environ["XDG_DATA_HOME"] = os.environ[cases.SHARED]  # no notes of whoever runs the tests
    elif all(Path(folder).is_dir() for folder in config.args):
        # In a clean checkout every module is compiled first. Each worker begins with its own share and finds those of the others compiled.
        modules = sorted({str(path) for folder in config.args for path in Path(folder).rglob("test_*.py")})
        first = len(modules) * int(config.workerinput["workerid"].removeprefix("gw")) // config.workerinput["workercount"]
        config.args = modules[first:] + modules[:first]


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ.pop(cases.SHARED), ignore_errors=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The tests that wait come first, so that they are the first worker's, one waits at a time and the processors are busy with the others
    (each worker begins with one part of the list). The end of a run is many short tests, which idle workers take over from the others."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: (_wait(item.path), item.path))  # the workers collected in different orders


def _wait(path: Path) -> int:
    """The place of a module among those that wait; behind them for one that does not."""
    if path.stem in WAITING:
        return WAITING.index(path.stem)
    return len(WAITING) + (path.parent.name not in WAITING_FOLDERS)


def pytest_collection_finish() -> None:
    """As in a process of the command (diagnose/surfaces/cli/entry.py): no collection visits again what stays for the whole run."""
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(400_000, 20, 20)  # four times as rarely: diagnoses leave hardly any cycles


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: Any) -> Generator[None, None, None]:
    """A run without a browser or a shell says so in its last lines: it proves less than a run with them."""
    yield
    reasons = Counter(report.longrepr[2] for report in terminalreporter.stats.get("skipped", []) if isinstance(report.longrepr, tuple))
    for reason, number in sorted(reasons.items()):
        if reason.endswith(" is not installed"):
            terminalreporter.write_line(
                f"NOT TESTED: {reason.removeprefix('Skipped: ')}; tests skipped for it: {number}", red=True, bold=True
            )


@pytest.fixture(autouse=True, scope="module")
def advice_when_asked(request: pytest.FixtureRequest) -> Iterator[None]:
    """Tests of what is read search for remedies only where they ask for them; inputs made to break something meet the whole program, and
    so does a limit of time (tests/pace.py)."""
    if request.path.parent.name not in READING or request.path.stem.startswith(("test_hostile", "test_bad")):
        yield
        return
    with cases.deferred_advice():
        yield


@pytest.fixture
def oomdoctor(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Any:
    """The command in this process: status, standard output, standard error."""
    from diagnose.surfaces.cli import entry

    def run(*words: str | Path) -> SimpleNamespace:
        monkeypatch.setattr(sys, "argv", ["oomdoctor", *map(str, words)])
        with pytest.raises(SystemExit) as left:
            entry.main()
        out, err = capfd.readouterr()
        return SimpleNamespace(status=int(left.value.code or 0), out=out, err=err)

    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    return run


@pytest.fixture(scope="module")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser for a module, whose tests each start over in it."""
    from browser import Browser

    held = Browser(tmp_path_factory.mktemp("chrome"))
    yield held
    held.close()


@pytest.fixture(scope="module")
def crew() -> Iterator[Kept]:
    """What diagnoses for the chat bots of a module, which each close their own desk."""
    from chatting import Kept

    held = Kept(workers=1, seconds=30, capacity=64)
    yield held
    held.end()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """`oomdoctor serve` with one worker and small requests, for all modules: it remembers nothing of a request."""
    from serving import serving

    with serving("--workers", "1", "--max-mib", "2") as held:
        yield held


@pytest.fixture(scope="session")
def client(server: Server) -> Iterator[httpx.Client]:
    """A client of it."""
    import httpx

    with httpx.Client(base_url=server.url, timeout=60, trust_env=False) as held:
        yield held
