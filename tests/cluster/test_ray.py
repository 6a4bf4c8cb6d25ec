"""The same jobs through Ray: the same rows, and Parquet partitions. A cluster (of two workers in a sweep) takes a minute of processor time
to start all that it starts: in a quick run one small run goes through it, the others through the same calls in this process."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import ray_here
from many import failure, lay, still, told  # noqa: F401
from sweep import SWEEP

from diagnose.cluster.run import ray_engine
from diagnose.cluster.run.task import JobOptions
from diagnose.cluster.run.triage_run import Run, RunPlan
from diagnose.cluster.store.result_store import Store
from diagnose.errors import UserError


@pytest.fixture(scope="module")
def ray() -> Any:
    """Imported by the worker that needs it: it takes half a second."""
    import ray

    return ray


@pytest.fixture(scope="module")
def cluster(ray: Any) -> Iterator[Any]:
    """Ray on this machine, without anything left in the home folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "disabled")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        ray.init(num_cpus=2 if SWEEP else 1, include_dashboard=False, log_to_driver=False, logging_level="error")
        yield ray
        ray.shutdown()


@pytest.fixture
def engine(request: pytest.FixtureRequest, ray: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The cluster in a sweep, else what stands for it."""
    return request.getfixturevalue("cluster") if SWEEP else ray_here.install(ray, monkeypatch)


def run(path: Path, top: Path, **plan: Any) -> dict[str, list[tuple[Any, ...]]]:
    """What a database says after one run."""
    store = Store.open(path)
    try:
        list(Run(store, RunPlan((str(top),), **plan), JobOptions()).results())
        return told(store)
    finally:
        store.close()


pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # of ray's own
    pytest.mark.usefixtures("still"),
    pytest.mark.skipif(find_spec("ray") is None, reason="there is no wheel of ray for this Python or system"),
]


def test_rows_are_those_of_the_local_engine(engine: Any, tmp_path: Path) -> None:
    """Failures, quiet jobs, shared diagnoses, configs, what cannot be read; and what a second run finds changed."""
    import duckdb

    here, there, out = tmp_path / "local.duckdb", tmp_path / "ray.duckdb", tmp_path / "out"
    top = lay(tmp_path / "jobs", 40, distinct=5)
    run(here, top, workers=1)
    shutil.copy(here, there)
    lay(top / "more", 10, distinct=9)
    (top / "job001" / "error.log").write_text(failure(7))
    (top / "job003" / "error.log").unlink()
    (top / "job003" / "error.log").symlink_to(tmp_path / "nowhere")
    (top / "job005" / "run.tar.gz").write_bytes(b"\x1f\x8b" + b"broken" * 20)
    assert run(there, top, engine="ray", export=str(out)) == run(here, top, workers=1)
    with duckdb.connect() as held:
        read = held.execute("select status, reused from read_parquet(?)", [str(out / "results" / "00002" / "*" / "*.parquet")]).fetchall()
    assert len(read) == 12 and not any(reused for _, reused in read)  # what is as it was never reaches the cluster
    assert {status for status, _ in read} >= {"oom", "none"}


def test_one_job_makes_a_diagnosis_and_the_others_wait_for_it() -> None:
    claims = ray_engine.Claims()
    assert [claims.claim(key, job) for key, job in (("x", "a"), ("x", "b"), ("y", "b"), ("x", "a"))] == [True, False, True, True]


def test_who_waits_in_vain_is_asked_again(engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job that was to make a diagnosis broke off: another one makes it, in a second round."""
    lost: list[str] = []
    real = ray_engine._run_dataset

    def losing(ray: Any, tasks: list[Any], *rest: Any) -> Iterator[Any]:
        for result in real(ray, tasks, *rest):
            if not lost and result.digest and "job003" in result.job.id:  # job005 waits for it
                lost.append(result.job.id)
            else:
                yield result

    monkeypatch.setattr(ray_engine, "_run_dataset", losing)
    top = lay(tmp_path / "jobs", 6, distinct=1)
    found = run(tmp_path / "ray.duckdb", top, engine="ray", workers=1)
    assert len(lost) == 1 and sum(row.count("oom") > 0 for row in found["jobs"]) == 2, found["jobs"]


def test_without_partitions_results_come_straight_to_the_database(cluster: Any, tmp_path: Path) -> None:
    top = lay(tmp_path / "jobs", 4)
    assert run(tmp_path / "ray.duckdb", top, engine="ray", workers=1) == run(tmp_path / "local.duckdb", top, workers=1)


def test_a_cluster_that_cannot_be_reached_is_a_sentence(ray: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refused(**_: Any) -> None:
        raise ConnectionError("ray refused\nand said more")

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", refused)
    with pytest.raises(UserError, match=r"10.0.0.1:6379: the Ray cluster cannot be reached .ray refused."):
        run(tmp_path / "t.duckdb", lay(tmp_path / "jobs", 1), engine="ray", address="10.0.0.1:6379")


def test_without_ray_a_sentence_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(UserError, match=r"\.\[ray\]"):
        run(tmp_path / "t.duckdb", lay(tmp_path / "jobs", 1), engine="ray")
