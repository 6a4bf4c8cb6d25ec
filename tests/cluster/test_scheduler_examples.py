"""The examples of docs/examples do what they say, with the commands of the cluster replaced at the boundary of the process."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from checkout import ROOT

EXAMPLES = ROOT / "docs" / "examples"

SACCT = "JobID|JobName|State|ExitCode|StdOut\n17|sft|OUT_OF_MEMORY|0:125|/logs/17.out\n"

NEEDED = ("bash", "flock", "timeout", "nice")
pytestmark = pytest.mark.skipif(not all(map(shutil.which, NEEDED)), reason="the examples are scripts for Linux")


def stub(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/bash\n{script}\n")
    path.chmod(0o755)


def until(condition: Any, seconds: float = 15.0) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return bool(condition())


# -- Slurm


class Slurm:
    """A controller on which a job has ended."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.called = folder / "called"
        (folder / "sacct.txt").write_text(SACCT)
        stub(folder / "bin", "sacct", f'echo "sacct $*" >> {self.called}; cat {folder}/sacct.txt')
        stub(folder / "bin", "oomdoctor", f'cp "$2" {folder}/given.txt; echo "oomdoctor ${{@:3}}" >> {self.called}')

    def ends(self, status: int, **variables: str) -> float:
        """Seconds that Slurm waited for the epilog."""
        environment = {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "SLURM_JOB_ID": "17",
            "SLURM_JOB_EXIT_CODE": str(status),
            "OOMDOCTOR_STORE": str(self.folder / "triage.duckdb"),
            "OOMDOCTOR_PAUSE": "0.01",
            "TMPDIR": str(self.folder),
            **variables,
        }
        begun = time.monotonic()
        done = subprocess.run(["bash", EXAMPLES / "slurm-epilog.sh"], env=environment, capture_output=True, text=True, timeout=30)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        return time.monotonic() - begun

    def calls(self) -> list[str]:
        return self.called.read_text().splitlines() if self.called.exists() else []


@pytest.fixture
def slurm(tmp_path: Path) -> Slurm:
    return Slurm(tmp_path)


def test_a_failed_job_is_diagnosed_from_its_record(slurm: Slurm) -> None:
    slurm.ends(256, OOMDOCTOR_NOTIFY="https://hooks.example/x")
    assert until(lambda: len(slurm.calls()) == 2)
    assert slurm.calls()[0].startswith("sacct -P -j 17 --format=JobID,") and "StdOut" in slurm.calls()[0]
    assert slurm.calls()[1] == f"oomdoctor --store {slurm.folder}/triage.duckdb --notify https://hooks.example/x --jobs 1"
    assert (slurm.folder / "given.txt").read_text() == SACCT
    assert until(lambda: not list(slurm.folder.glob("tmp.*")))  # nothing stays behind


def test_a_task_of_an_array_is_asked_for_by_its_number(slurm: Slurm) -> None:
    slurm.ends(256, SLURM_ARRAY_JOB_ID="15", SLURM_ARRAY_TASK_ID="3")
    assert until(lambda: slurm.calls())
    assert "-j 15_3 " in slurm.calls()[0]


def test_a_job_that_ended_well_costs_nothing(slurm: Slurm) -> None:
    slurm.ends(0)
    time.sleep(0.3)
    assert slurm.calls() == []


def test_accounting_that_comes_late_is_waited_for(slurm: Slurm) -> None:
    (slurm.folder / "late.txt").write_text(SACCT)
    (slurm.folder / "sacct.txt").write_text(SACCT.replace("OUT_OF_MEMORY", "COMPLETING"))
    stub(
        slurm.folder / "bin",
        "sacct",
        f"echo sacct >> {slurm.called}; cat {slurm.folder}/sacct.txt; cp {slurm.folder}/late.txt {slurm.folder}/sacct.txt",
    )
    slurm.ends(256)
    assert until(lambda: (slurm.folder / "given.txt").exists())
    assert slurm.calls()[:2] == ["sacct", "sacct"] and (slurm.folder / "given.txt").read_text() == SACCT


def test_slurm_never_waits_for_a_diagnosis(slurm: Slurm) -> None:
    stub(slurm.folder / "bin", "oomdoctor", f"sleep 2; echo late >> {slurm.called}")
    assert slurm.ends(256) < 1.5
    assert until(lambda: "late" in slurm.calls())


@pytest.mark.parametrize("broken", ["sacct", "oomdoctor"])
def test_the_epilog_never_fails(slurm: Slurm, broken: str) -> None:
    """An epilog that fails takes its node out of service."""
    stub(slurm.folder / "bin", broken, f"echo broken >> {slurm.called}; exit 1")
    slurm.ends(256)
    assert until(lambda: "broken" in slurm.calls())
    assert slurm.ends(256, SLURM_JOB_ID="") < 5


def test_jobs_that_end_together_are_diagnosed_one_after_the_other(slurm: Slurm) -> None:
    """They share a database."""
    stub(slurm.folder / "bin", "oomdoctor", f"echo begin >> {slurm.called}; sleep 0.1; echo end >> {slurm.called}")
    stub(slurm.folder / "bin", "sacct", f"cat {slurm.folder}/sacct.txt")
    for _ in range(3):
        slurm.ends(256)
    assert until(lambda: len(slurm.calls()) == 6)
    assert slurm.calls() == ["begin", "end"] * 3


# -- Kubernetes


def documents() -> dict[str, dict[str, Any]]:
    return {one["kind"]: one for one in yaml.safe_load_all((EXAMPLES / "cronjob.yaml").read_text())}


def pod_of_job() -> dict[str, Any]:
    spec: dict[str, Any] = documents()["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    return spec


def test_the_cron_job_may_do_what_it_does_and_no_more() -> None:
    kinds = documents()
    assert {verb for rule in kinds["Role"]["rules"] for verb in rule["verbs"]} == {"get", "list"}
    assert kinds["RoleBinding"]["roleRef"]["name"] == kinds["Role"]["metadata"]["name"]
    assert kinds["RoleBinding"]["subjects"][0]["name"] == pod_of_job()["serviceAccountName"] == kinds["ServiceAccount"]["metadata"]["name"]
    volumes = {volume["name"] for volume in pod_of_job()["volumes"]}
    for container in (*pod_of_job()["initContainers"], *pod_of_job()["containers"]):
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes


def test_the_command_of_the_cron_job_is_one_that_we_have() -> None:
    """Every option of it parses, and the variables that it uses are set."""
    import typer

    from diagnose.surfaces.cli.commands import app

    (container,) = pod_of_job()["containers"]
    environment = {variable["name"]: variable.get("value", "https://hooks.example/x") for variable in container["env"]}
    words = [*container["command"], *container["args"]]
    for name, value in environment.items():
        words = [word.replace(f"$({name})", value) for word in words]
    assert "$(" not in " ".join(words) and words[0] == "oomdoctor"
    root: Any = typer.main.get_command(app)
    asked = root.get_command(None, words[1]).make_context(words[1], words[2:]).params
    assert list(asked["path"]) == ["/taken/pods.json", "/taken/logs"] and asked["notify"] == "https://hooks.example/x"
    assert asked["store"] == "/data/triage.duckdb" and asked["since"] == "2d"


PODS = """\
sft-0     0/1   OOMKilled          0            5h
ppo-0     1/1   Running            2 (3h ago)   5h
fine-0    1/1   Running            0            5h
done-0    0/1   Completed          0            5h
gone-0    0/1   Error              0            5h
"""


def test_what_the_cron_job_collects_is_what_triage_reads(tmp_path: Path) -> None:
    """The collecting script with a kubectl of ours, then the finding of jobs on what it left."""
    from diagnose.cluster.find.job import Job
    from diagnose.cluster.find.job_finder import find

    ended = {"terminated": {"reason": "OOMKilled", "exitCode": 137}}
    names = ("sft-0", "ppo-0", "fine-0", "done-0", "gone-0")
    pods = [
        {
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "team"},
            "spec": {"containers": [{"name": "main"}]},
            "status": {"phase": "Failed", "containerStatuses": [{"name": "main", "state": ended if name == "sft-0" else {}}]},
        }
        for name in names
    ]
    (tmp_path / "pods").write_text(json.dumps({"items": pods}))
    (tmp_path / "table").write_text(PODS)
    kubectl = f"""
case "$*" in
  "get pods -o json") cat {tmp_path}/pods ;;
  "get pods --no-headers") cat {tmp_path}/table ;;
  "logs gone-0"*|*--previous*) [ "$2" = ppo-0 ] && echo before && exit 0; echo "no such log" >&2; exit 1 ;;
  "logs "*) echo "said by $2" ;;
esac"""
    stub(tmp_path / "bin", "kubectl", kubectl)
    (container,) = pod_of_job()["initContainers"]
    script = container["args"][0].replace("/taken/", f"{tmp_path}/taken/")
    environment = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    done = subprocess.run([*container["command"], script], env=environment, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, shlex.join(done.args) + done.stderr
    collected = sorted(str(path.relative_to(tmp_path / "taken/logs")) for path in (tmp_path / "taken/logs").rglob("*.log"))
    assert collected == ["ppo-0/0.log", "ppo-0/1.log", "sft-0/1.log"]
    found = {one.id: one for one in find([str(tmp_path / "taken/pods.json"), str(tmp_path / "taken/logs")]) if isinstance(one, Job)}
    assert {name: len(one.logs) for name, one in found.items()} == {"kubernetes:team/sft-0": 1, "kubernetes:team/ppo-0": 2}
    assert found["kubernetes:team/sft-0"].about.state == "OOMKilled"
