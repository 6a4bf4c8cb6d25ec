"""What schedulers and manifests say of jobs, joined with their logs: sacct, kubectl, JSON lines."""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from collected import for_each
from hypothesis import given, settings
from hypothesis import strategies as st

from diagnose.cluster.find import coerce
from diagnose.cluster.find.job import About, Job, UnreadableJob
from diagnose.cluster.find.job_files import open_inputs, stamp
from diagnose.cluster.find.job_finder import find
from diagnose.cluster.find.job_index import JobIndex, JobRecord
from diagnose.cluster.find.json_stream import read_values
from diagnose.cluster.find.sacct import is_header, read_records
from diagnose.cluster.run.job_work import work
from diagnose.cluster.run.task import JobOptions, Task
from diagnose.errors import UserError
from diagnose.pipeline import explain

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. "
    "GPU 0 has a total capacity of 79.15 GiB of which 1.00 GiB is free.\n"
)
QUIET = "step 1 loss 2.1\nstep 2 loss 2.0\n"

SACCT = """\
JobID|JobIDRaw|JobName|User|Account|Partition|State|ExitCode|Submit|Start|End|Elapsed|NNodes|AllocTRES|ReqMem|MaxRSS|NodeList
4711|4711|sft|ada|nlp|a100|OUT_OF_MEMORY|0:125|2024-05-06T09:00:00|2024-05-06T10:00:00|2024-05-07T11:30:00|1-01:30:00|2|billing=64,cpu=64,gres/gpu=16,gres/gpu:a100=16,mem=1000G,node=2|1000G||n[1-2]
4711.batch|4711.batch|batch||nlp||OUT_OF_MEMORY|0:125|2024-05-06T10:00:00|2024-05-06T10:00:00|2024-05-07T11:30:00|1-01:30:00|1|cpu=32,mem=500G,node=1||524288000K|n1
4711.extern|4711.extern|extern||nlp||COMPLETED|0:0|2024-05-06T10:00:00|2024-05-06T10:00:00|2024-05-07T11:30:00|1-01:30:00|2|||1068K|n[1-2]
4712_3|4715|sweep|bob|nlp|a100|FAILED|1:0|2024-05-06T09:00:00|2024-05-06T10:00:00|2024-05-06T10:30:00|00:30:00|1|cpu=8,gres/gpu=1,mem=64G,node=1|64G||n3
4712_[4-9%2]|4712|sweep|bob|nlp|a100|PENDING|0:0|2024-05-06T09:00:00|Unknown|Unknown|00:00:00|1||64G||None assigned
4720+0|4720|ppo|eve|rl|a100|FAILED|1:0|2024-05-06T09:00:00|2024-05-06T10:00:00|2024-05-06T11:00:00|01:00:00|1|gres/gpu=8,node=1|100Gn||n4
4720+1|4721|ppo|eve|rl|a100|FAILED|1:0|2024-05-06T09:00:00|2024-05-06T10:00:00|2024-05-06T11:00:00|01:00:00|1|gres/gpu=4,node=1|100Gn||n5
4730|4730|eval|ada|nlp|cpu|CANCELLED by 1000|0:15|2024-05-06T09:00:00|2024-05-06T10:00:00|2024-05-06T10:10:00|00:10:00|1|cpu=4,mem=8G,node=1|2Gc||n6
4731|4731|gone|ada|nlp|cpu|FAILED|0:9|2024-05-06T09:00:00|2024-05-06T10:00:00|2024-05-06T10:10:00|00:10:00|1|cpu=4,mem=8G,node=1|2Gc||n6
4732|4732|fine|ada|nlp|cpu|COMPLETED|0:0|2024-05-06T09:00:00|2024-05-06T10:00:00|2024-05-06T10:10:00|00:10:00|1|cpu=4,mem=8G,node=1|2Gc||n6
"""  # fmt: skip # noqa: E501


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def by_id(*paths: Path | str) -> dict[str, Job | UnreadableJob]:
    found = list(find([str(path) for path in paths]))
    ids = {one.id if isinstance(one, Job) else one.job.id: one for one in found}
    assert len(ids) == len(found)
    return ids


def job(one: Job | UnreadableJob) -> Job:
    assert isinstance(one, Job), one
    return one


# -- Slurm


def test_sacct_and_a_folder_of_logs_are_joined(tmp_path: Path) -> None:
    """The whole of a record, whatever its steps say beside it; a log of no job stays one of its own."""
    put(tmp_path / "sacct.txt", SACCT)
    for name in ("logs/slurm-4711.out", "logs/sweep-4712_3.out", "logs/sweep-4712_3.err", "logs/ppo.4720.log", "logs/mine.log"):
        put(tmp_path / name, QUIET)
    put(tmp_path / "logs/eval-2024-4730.txt", QUIET)
    found = by_id(tmp_path / "sacct.txt", tmp_path / "logs")
    assert set(found) == {"slurm:4711", "slurm:4712_3", "slurm:4720", "slurm:4730", "slurm:4731", str(tmp_path / "logs/mine.log")}
    first = job(found["slurm:4711"])
    assert [Path(log).name for log in first.logs] == ["slurm-4711.out"] and first.name == "sft"
    about = first.about
    assert (about.scheduler, about.id, about.user, about.project, about.state) == ("slurm", "4711", "ada", "nlp", "OUT_OF_MEMORY")
    assert (about.exit_code, about.signal, about.nodes, about.gpus, about.gpu) == (0, 125, 2, 16, "a100")
    assert about.elapsed == 91800 and about.gpu_seconds == 16 * 91800
    assert (about.submitted, about.started, about.ended) == (1714986000, 1714989600, 1715081400)
    assert about.memory_limit == 500 << 30 and about.memory_used == 500 << 30
    assert len(job(found["slurm:4712_3"]).logs) == 2
    assert job(found["slurm:4720"]).about.gpus == 12 and job(found["slurm:4720"]).about.nodes == 2
    assert job(found["slurm:4730"]).about.state == "CANCELLED" and job(found["slurm:4730"]).about.memory_limit == 8 << 30
    missing = found["slurm:4731"]
    assert isinstance(missing, UnreadableJob) and missing.fault == "log_missing" and missing.job.about.signal == 9
    assert "FAILED" in missing.error.en and "FAILED" in missing.error.zh


def test_columns_may_stand_in_any_order_and_lines_too(tmp_path: Path) -> None:
    """`--parsable` ends lines with the sign; people sort the file, or put two together."""
    header, *lines = [line.split("|") for line in SACCT.splitlines()]
    order = sorted(range(len(header)), key=lambda at: header[at])
    turned = ["|".join([*(line[at] for at in order), ""]) for line in (header, *reversed(lines))]
    put(tmp_path / "a.txt", SACCT)
    put(tmp_path / "b.txt", "\n".join([*turned, turned[0], ""]))
    logs = put(tmp_path / "logs/slurm-4711.out", QUIET)
    one, other = by_id(tmp_path / "a.txt", logs), by_id(tmp_path / "b.txt", logs)
    assert {name: job(found).about for name, found in one.items() if isinstance(found, Job)} == {
        name: job(found).about for name, found in other.items() if isinstance(found, Job)
    }
    assert len(one) == len(other)


@pytest.mark.parametrize(
    ("columns", "row", "log"),
    [
        ("StdOut", "/logs/%x-%j.out", "logs/sft-12.out"),
        ("StdOut|WorkDir", "%x/%A_%4a.log|/home", "home/sft/12_0007.log"),
        ("SubmitLine|WorkDir", "sbatch -p a100 -o out/%u.%j train.sh -o other|/home", "home/out/ada.12"),
        ("WorkDir", "/home", "home/slurm-12_7.out"),
    ],
)
def test_a_record_tells_where_its_log_is(tmp_path: Path, columns: str, row: str, log: str) -> None:
    array = "12_7" if "_" in log else "12"
    raw = row.replace("/logs", str(tmp_path / "logs")).replace("/home", str(tmp_path / "home"))
    text = f"JobID|JobIDRaw|JobName|User|State|{columns}\n{array}|{'19' if '_' in array else '12'}|sft|ada|FAILED|{raw}\n"
    put(tmp_path / log, OOM)
    (found,) = by_id(put(tmp_path / "sacct.txt", text)).values()
    assert job(found).logs == (str(tmp_path / log),)


def test_a_job_that_its_scheduler_ended_for_memory_needs_no_words_in_its_log(tmp_path: Path) -> None:
    """A log that just ends, and no log at all: the scheduler's line is the witness, with use and limit."""
    put(tmp_path / "sacct.txt", SACCT)
    log = put(tmp_path / "logs/slurm-4711.out", QUIET)
    with_log, without = (job(by_id(tmp_path / "sacct.txt", *given)["slurm:4711"]) for given in ((log,), ()))
    assert with_log.logs and not without.logs
    for found in (with_log, without):
        logs, configs = open_inputs(found)
        diagnosis = explain(logs, configs=configs)
        assert diagnosis.verdict.status == "oom" and diagnosis.verdict.family == "slurm_oom"
        event = diagnosis.events[0]
        assert event.evidence[0].source == "slurm:4711" and event.capacity is not None and event.capacity.bytes == 500 << 30
        assert diagnosis.judgement.causes[0].cause == "host_ram" and diagnosis.outcome.plan is not None
        assert [remedy.rule for remedy in diagnosis.outcome.remedies][:1] == ["raise-the-memory-limit"]
    assert stamp(with_log) != stamp(without) != ""


@pytest.mark.parametrize(
    ("state", "code", "status", "said"),
    [
        ("TIMEOUT", "0:0", "lookalike", "time limit"),
        ("PREEMPTED", "0:0", "lookalike", "took the job's place"),
        ("NODE_FAIL", "1:0", "lookalike", "lost the node"),
        ("FAILED", "137:0", "suspected", "was killed"),
        ("FAILED", "0:9", "suspected", "was killed"),
        ("FAILED", "1:0", "none", "No memory failure"),
        ("CANCELLED by 1000", "0:9", "none", "No memory failure"),
        ("COMPLETED", "0:0", "none", "No memory failure"),
    ],
)
def test_what_ended_a_job_is_said_as_what_it_is(tmp_path: Path, state: str, code: str, status: str, said: str) -> None:
    """Its log just ends: whoever killed it, and whether that was for memory, the scheduler alone knows."""
    put(tmp_path / "sacct.txt", f"JobID|State|ExitCode|AllocTRES\n77|{state}|{code}|gres/gpu=8\n")
    put(tmp_path / "logs/slurm-77.out", QUIET)
    found = work(Task(job(by_id(tmp_path / "sacct.txt", tmp_path / "logs")["slurm:77"])), JobOptions())
    assert found.status == status and said in found.headline.en


@pytest.mark.parametrize("state", ["TIMEOUT", "PREEMPTED", "NODE_FAIL"])
def test_a_kill_is_the_schedulers_doing_and_a_cards_failure_is_not(tmp_path: Path, state: str) -> None:
    """A rank runs out of memory, and the others wait until time is up."""
    put(tmp_path / "sacct.txt", f"JobID|State|ExitCode\n77|{state}|0:0\n78|{state}|0:0\n")
    put(tmp_path / "logs/slurm-77.out", QUIET + "/bin/bash: line 1: 12345 Killed   python train.py\n")
    put(tmp_path / "logs/slurm-78.out", OOM)
    found = by_id(tmp_path / "sacct.txt", tmp_path / "logs")
    assert [work(Task(job(found[f"slurm:{number}"])), JobOptions()).status for number in (77, 78)] == ["lookalike", "oom"]


def test_a_pod_that_its_node_ended_was_not_killed_for_memory(tmp_path: Path) -> None:
    """Exit status 137 alone is a kill; a message says whose."""
    for message, status in (("", "suspected"), ("Pod was active on the node longer than the specified deadline", "none")):
        ended = {"terminated": {"reason": "Error", "exitCode": 137, "finishedAt": "2026-01-01T00:00:00Z"}}
        told = {"phase": "Failed", "message": message, "containerStatuses": [{"name": "main", "state": ended}]}
        pod = {"kind": "Pod", "metadata": {"name": "sft-0"}, "spec": {"containers": [{"name": "main"}]}, "status": told}
        put(tmp_path / "pods.json", json.dumps(pod))
        put(tmp_path / "sft-0.log", QUIET)
        [found] = [job(one) for one in by_id(tmp_path / "pods.json", tmp_path / "sft-0.log").values()]
        assert work(Task(found), JobOptions()).status == status


def test_the_cards_failure_in_the_log_stays_the_verdict_where_slurm_says_nothing_of_memory(tmp_path: Path) -> None:
    put(tmp_path / "sacct.txt", SACCT)
    found = job(by_id(tmp_path / "sacct.txt", put(tmp_path / "sweep-4712_3.out", OOM))["slurm:4712_3"])
    assert explain(open_inputs(found)[0]).verdict.family == "torch_cuda"


def test_a_number_that_two_jobs_could_mean_joins_neither(tmp_path: Path) -> None:
    """Better a log of its own than another job's."""
    text = "JobID|Cluster|State\n500|east|FAILED\n500|west|FAILED\n"
    found = by_id(put(tmp_path / "sacct.txt", text), put(tmp_path / "slurm-500.out", OOM))
    assert job(found[str(tmp_path / "slurm-500")]).about == About()
    assert {one.fault for one in found.values() if isinstance(one, UnreadableJob)} == {"log_missing"}


def test_since_goes_by_the_scheduler_and_else_by_the_log(tmp_path: Path) -> None:
    """The log of a job that hung is older than its end."""
    put(tmp_path / "sacct.txt", SACCT)
    for name in ("slurm-4711.out", "sweep-4712_3.out", "old.log", "new.log"):
        path = put(tmp_path / "logs" / name, OOM)
        if name != "new.log":
            os.utime(path, (1000, 1000))
    found = find([str(tmp_path / "sacct.txt"), str(tmp_path / "logs")], since=1715081000)
    assert {Path(one.id).name for one in found if isinstance(one, Job)} == {"slurm:4711", "new.log"}


def test_lines_that_are_no_jobs_are_counted_with_the_first_of_them(tmp_path: Path) -> None:
    put(tmp_path / "sacct.txt", "JobID|State|ExitCode\n1|FAILED|1:0\nslurm_load: connection timed out\nx|y|z\n")
    found = by_id(tmp_path / "sacct.txt")
    bad = found[str(tmp_path / "sacct.txt")]
    assert isinstance(bad, UnreadableJob) and bad.fault == "skipped" and "2 lines" in bad.error.en and "line 3" in bad.error.en


@for_each("line", ["Loss|Step|JobID is 3", "| a | b |", "JobID", "[INFO] JobID|State"])
def test_a_table_in_a_log_is_no_export(line: str) -> None:
    assert not is_header(line)


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=40), max_size=20))
@settings(max_examples=200, deadline=None)
def test_no_line_of_an_export_raises(lines: list[str]) -> None:
    header = "JobID|State|ExitCode|Elapsed|AllocTRES|ReqMem|MaxRSS|StdOut|SubmitLine|Start"
    for each in read_records([header, *lines, *("|".join(lines[at:]) for at in range(3)), "1|" + "|".join(lines)]):
        assert isinstance(each, (int, JobRecord))


# -- Kubernetes


def pod(
    name: str, *, labels: dict[str, str] | None = None, ended: dict[str, Any] | None = None, last: bool = False, **status: Any
) -> dict[str, Any]:
    state = {"terminated": ended} if ended else {"running": {}}
    container = {"name": "pytorch", "restartCount": 2, "lastState" if last else "state": state}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "team", "labels": labels or {}, "uid": "01234567-1111-2222-3333-444444444444"},
        "spec": {
            "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
            "containers": [{"name": "pytorch", "resources": {"limits": {"nvidia.com/gpu": "8", "memory": "512Gi"}}}, {"name": "sidecar"}],
        },
        "status": {"phase": "Failed", "startTime": "2024-05-06T10:00:00Z", "containerStatuses": [container], **status},
    }


KILLED = {"reason": "OOMKilled", "exitCode": 137, "startedAt": "2024-05-06T10:01:00Z", "finishedAt": "2024-05-06T12:00:00Z"}
OF_JOB = {"training.kubeflow.org/job-name": "sft", "team.example/x": "y", "user": "ada"}


def test_the_pods_of_a_job_are_one_job(tmp_path: Path) -> None:
    """As the PyTorch operator starts them; the log that just ends is explained by the state of its pod."""
    pods = [
        pod(f"sft-worker-{rank}", labels=OF_JOB, ended=KILLED if rank else {**KILLED, "reason": "Error", "exitCode": 1})
        for rank in range(2)
    ]
    text = json.dumps({"apiVersion": "v1", "items": pods, "kind": "List", "metadata": {"resourceVersion": ""}}, indent=4)
    put(tmp_path / "pods.json", text)
    for rank in range(2):
        put(tmp_path / f"logs/sft-worker-{rank}.log", QUIET)
    (found,) = by_id(tmp_path / "pods.json", tmp_path / "logs").values()
    about = job(found).about
    assert job(found).id == "kubernetes:team/sft" and len(job(found).logs) == 2
    assert (about.state, about.exit_code, about.gpus, about.nodes, about.user, about.project) == ("OOMKilled", 1, 16, 2, "ada", "team")
    assert about.memory_limit == 512 << 30 and about.elapsed == 7200 and about.restarts == 2 and about.gpu.startswith("NVIDIA-H100")
    diagnosis = explain(open_inputs(job(found))[0])
    assert diagnosis.verdict.status == "oom" and diagnosis.events[-1].capacity is not None
    assert diagnosis.events[-1].capacity.bytes == 512 << 30


@pytest.mark.parametrize("form", ["one", "lines", "array", "raw"])
def test_pods_in_every_form_that_people_save(tmp_path: Path, form: str) -> None:
    pods = [pod("a-0", labels={"volcano.sh/job-name": "a"}, ended=KILLED, last=True), pod("b", ended=KILLED)]
    text = {
        "one": json.dumps(pods[1]),
        "lines": "\n".join(map(json.dumps, pods)),
        "array": json.dumps(pods, indent=2),
        "raw": json.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": pods}),
    }[form]
    found = by_id(put(tmp_path / "pods.json", text))
    assert set(found) == ({"kubernetes:team/b"} if form == "one" else {"kubernetes:team/a", "kubernetes:team/b"})
    assert all(job(one).about.state == "OOMKilled" for one in found.values())


def test_logs_as_a_node_keeps_them_are_joined_with_their_pod(tmp_path: Path) -> None:
    put(tmp_path / "pods.json", json.dumps({"items": [pod("sft-0", ended=KILLED)]}))
    put(tmp_path / "pods/team_sft-0_01234567-1111-2222-3333-444444444444/pytorch/0.log", QUIET)
    (found,) = by_id(tmp_path / "pods.json", tmp_path / "pods").values()
    assert job(found).id == "kubernetes:team/sft-0" and len(job(found).logs) == 1


def test_a_pod_that_was_started_again_and_did_its_work_did_not_fail(tmp_path: Path) -> None:
    put(tmp_path / "pods.json", json.dumps({"items": [pod("sft", ended=KILLED, last=True, phase="Succeeded")]}))
    log = put(tmp_path / "sft.log", QUIET)
    (found,) = by_id(tmp_path / "pods.json", log).values()
    assert job(found).about.state == "Succeeded" and len(open_inputs(job(found))[0]) == 1


def test_a_pod_that_was_evicted_for_memory_is_a_memory_failure(tmp_path: Path) -> None:
    why = "The node was low on resource: memory. Container pytorch was using 500Gi, request is 100Gi, has larger consumption of memory."
    put(tmp_path / "pods.json", json.dumps({"items": [pod("sft", reason="Evicted", message=why)]}))
    (found,) = by_id(tmp_path / "pods.json").values()
    assert job(found).about.state == "Evicted" and explain(open_inputs(job(found))[0]).verdict.family == "k8s_oom"


# -- manifests


def test_a_manifest_names_logs_configs_and_what_is_known(tmp_path: Path) -> None:
    lines = [
        {"id": "r1", "log": "a.log", "config": ["a.yaml"], "user": "ada", "project": "nlp", "state": "failed", "exit_code": 1, "gpus": 8,
         "gpu": "H100", "started": "2024-05-06T10:00:00Z", "ended": 1714993200, "name": "sft"},
        {"Job_ID": 17, "logs": ["x/b.out", "x/b.err"], "num-gpus": "4", "Duration": "1:00:00", "owner": "bob", "gpu": 4},
        {"run_id": "r3", "log_path": "nowhere.log"},
        {"note": "no job"},
    ]  # fmt: skip
    put(tmp_path / "jobs.jsonl", "\n".join(map(json.dumps, lines)) + "\nnot json\n")
    for name in ("a.log", "a.yaml", "x/b.out", "x/b.err"):
        put(tmp_path / name, OOM)
    found = by_id(tmp_path / "jobs.jsonl")
    first, second = job(found["r1"]), job(found["17"])
    assert first.logs == (str(tmp_path / "a.log"),) and first.configs == (str(tmp_path / "a.yaml"),) and first.name == "sft"
    assert first.about == About(
        "manifest", "r1", "ada", "nlp", "failed", exit_code=1, gpus=8, gpu="H100", started=1714989600, ended=1714993200, elapsed=3600
    )
    assert len(second.logs) == 2 and second.about.gpus == 4 and second.about.elapsed == 3600 and second.about.user == "bob"
    gone, bad = found["r3"], found[str(tmp_path / "jobs.jsonl")]
    assert isinstance(gone, UnreadableJob) and gone.fault == "log_missing" and "nowhere.log" in gone.error.en
    assert isinstance(bad, UnreadableJob) and "2 lines" in bad.error.en and "line 4" in bad.error.en


def test_a_log_that_a_manifest_and_a_folder_name_is_one_job(tmp_path: Path) -> None:
    put(tmp_path / "logs/a.log", OOM)
    put(tmp_path / "logs/train.yaml", "stage: sft\n")
    put(tmp_path / "jobs.jsonl", json.dumps({"id": "r1", "log": "logs/a.log", "user": "ada"}) + "\n")
    (found,) = by_id(tmp_path / "jobs.jsonl", tmp_path / "logs").values()
    assert job(found).id == "r1" and len(job(found).logs) == 1 and len(job(found).configs) == 1


def test_json_lines_of_a_log_are_no_manifest(tmp_path: Path) -> None:
    """structlog and docker write JSON lines too."""
    log = put(tmp_path / "train.log", json.dumps({"event": "CUDA out of memory", "level": "error", "timestamp": "2024"}) + "\n")
    assert job(by_id(log)[str(log)]).logs == (str(log),)
    log = put(tmp_path / "docker.log", json.dumps({"log": "step 1\n", "stream": "stderr", "time": "2024-05-06T10:00:00Z"}) + "\n")
    assert job(by_id(log)[str(log)]).logs == (str(log),)


def test_paths_in_a_log_are_never_opened(tmp_path: Path) -> None:
    """Only what is named on the command line names files."""
    put(tmp_path / "logs/jobs.jsonl.log", json.dumps({"id": "1", "log": "/etc/passwd"}) + "\n")
    assert [Path(job(one).logs[0]).name for one in by_id(tmp_path / "logs").values()] == ["jobs.jsonl.log"]


# -- millions


def test_the_shelf_holds_no_job(tmp_path: Path) -> None:
    """Eight thousand records of a scheduler cost no more memory than a thousand."""
    import tracemalloc

    def held(count: int) -> int:
        tracemalloc.start()
        with JobIndex() as index:
            for number in range(count):
                index.add(JobRecord(f"slurm:{number}", About("slurm", str(number), user="ada"), aliases=(str(number),)))
            index.finish()
            assert sum(1 for _ in index.jobs()) == count
            peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    held(100)
    assert held(8_000) < held(1000) + (1 << 20)


@pytest.mark.parametrize("text", ['[{"a": 1}, {"a": ', '{"items": [{"a": 1}, nonsense]}', "[1, 2"])
def test_json_that_is_cut_off_is_said_after_what_stands_before(text: str) -> None:
    seen: list[Any] = []
    with pytest.raises(UserError, match="line 1"):
        seen.extend(value for _, value in read_values(io.BytesIO(text.encode()), "x"))


@given(
    st.lists(st.dictionaries(st.text(max_size=8), st.integers() | st.text(max_size=20), max_size=4), min_size=2, max_size=8), st.booleans()
)
def test_values_come_back_from_an_array_and_from_lines(rows: list[dict[str, Any]], indent: bool) -> None:
    array = json.dumps(rows, indent=2 if indent else None)
    assert [value for _, value in read_values(io.BytesIO(array.encode()), "x")] == rows
    lines = "\n".join(map(json.dumps, rows))
    if "items" not in rows[0] and "jobs" not in rows[0]:
        assert [value for _, value in read_values(io.BytesIO(lines.encode()), "x")] == rows


# -- what is said


@for_each(
    "text, seconds",
    [("1-02:03:04", 93784), ("02:03:04", 7384), ("03:04.5", 184.5), ("1d2h", 93600), (90, 90), ("90", 90), ("Unknown", None), ("x", None)],
)
def test_durations(text: object, seconds: float | None) -> None:
    assert coerce.duration(text) == seconds


@for_each(
    "value, seconds",
    [
        ("2024-05-06T10:00:00", 1714989600),
        ("2024-05-06T10:00:00Z", 1714989600),
        ("2024-05-06T18:00:00+08:00", 1714989600),
        (1714989600, 1714989600),
        ("1714989600000", 1714989600),
        ("Unknown", None),
        (True, None),
        (float("nan"), None),
        ("2024-99-06T10:00:00", None),
    ],
)
def test_moments(value: object, seconds: float | None) -> None:
    assert coerce.timestamp(value) == seconds


@for_each("value, bytes", [("4G", 4 << 30), ("64Gi", 64 << 30), ("1.5T", 3 << 39), ("12K", 12288), ("9x", None), (7, 7)])
def test_sizes(value: object, bytes: int | None) -> None:
    assert coerce.byte_size(value) == bytes


@for_each("value, codes", [("0:9", (0, 9)), ("1:0", (1, None)), (137, (137, None)), ("-9", (None, 9)), ("", (None, None))])
def test_exit_codes(value: object, codes: tuple[int | None, int | None]) -> None:
    assert coerce.exit_code(value) == codes


@given(st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers()))
@settings(max_examples=300, deadline=None)
def test_no_value_of_a_stranger_raises(value: object) -> None:
    for read in (
        coerce.text,
        coerce.count,
        coerce.integer,
        coerce.timestamp,
        coerce.duration,
        coerce.byte_size,
        coerce.exit_code,
        coerce.tres,
    ):
        read(value)
