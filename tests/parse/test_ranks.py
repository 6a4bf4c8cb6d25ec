"""One job, many voices: failures of several processes in one log, which came first, and what follows from it."""

from __future__ import annotations

import random

import pytest
from collected import for_each
from logs_of_torch import LOSS, message, read, traceback

from diagnose.parse.events import interleaved_tracebacks, order
from diagnose.parse.events.folding import MEMBERS
from diagnose.parse.model.event import Event
from diagnose.parse.model.reading import Reading

OOM = f"torch.OutOfMemoryError: {message()}"


def told(reading: Reading) -> list[tuple[str, int | None]]:
    """Family and cause of each event."""
    return [(event.family, event.consequence_of) for event in reading.events]


# -- who failed


@for_each(
    "label, same_card",
    [
        ("[rank{0}]: ", False),
        ("{0}: ", False),
        (" {0}: [rank{0}]: ", False),
        ("[1,{0}]<stderr>:", False),
        ("[default{0}]:", False),
        ("(WorkerDict pid=70{0}) ", False),
        ("(WorkerDict pid=70{0}) ", True),
        ("(WorkerDict pid=701, ip=10.0.0.{0}) ", True),
        ("\x1b[36m(RayTrainWorker pid=70{0}, ip=10.0.0.7)\x1b[0m ", True),
        ("worker-{0}: ", True),
        ("", False),
    ],
)
def test_equal_failures_are_one_event_with_members(label: str, same_card: bool) -> None:
    """However ranks are labelled, each keeps its own figures; a process that sees one card calls it 0 wherever it is."""
    lines = []
    for rank in range(3):
        own = message(0 if same_card else rank, free=f"{rank}.50 GiB")
        lines += [label.format(rank) + line for line in (*LOSS, f"torch.OutOfMemoryError: {own}")]
    reading = read("\n".join(lines))
    assert len(reading.events) == 1
    event = reading.events[0]
    assert (event.count, [str(member.free) for member in event.members]) == (3, ["1.50 GiB", "2.50 GiB"])
    assert [len(member.frames) for member in (event, *event.members)] == [3, 3, 3]


def test_the_same_figures_of_two_workers_are_two_failures() -> None:
    """Balanced ranks print the same to the last digit; only the process tells that both failed."""
    lines = [f"(WorkerDict pid={pid}) {line}" for pid in (701, 702) for line in (*LOSS, OOM)]
    assert [event.count for event in read("\n".join(lines)).events] == [2]


def test_the_driver_reports_the_failure_of_a_worker() -> None:
    """Ray raises the worker's error again in the driver, under the driver's own number: one failure."""
    driver = [
        "(TaskRunner pid=11) ray.exceptions.RayTaskError(OutOfMemoryError): ray::WorkerDict.actor_update() (pid=701, ip=10.0.0.7)",
        *(f"(TaskRunner pid=11) {line}" for line in (*LOSS[1:], OOM)),
    ]
    reading = read("\n".join([*(f"(WorkerDict pid=701) {line}" for line in (*LOSS, OOM)), *driver]))
    assert [(event.count, event.pid) for event in reading.events] == [(1, 701)]


@pytest.mark.parametrize(("first", "count"), [(True, 8), (False, 8)])
def test_ray_prints_one_line_for_all_other_workers(first: bool, count: int) -> None:
    """`repeated 7x` is seven processes besides the first that was printed, in what was read or before it."""
    again = f"(WorkerDict pid=705) {OOM.replace('1.41', '1.52')}\x1b[32m [repeated 7x across cluster]\x1b[0m"
    lines = [f"(WorkerDict pid=701) {OOM}", again] if first else ["step 9", again]
    event = read("\n".join(lines)).events[0]
    assert (event.count, len(event.members)) == (count, int(first))


def test_unlabelled_tracebacks_are_dealt_out_again() -> None:
    """Lines of several processes shuffled into each other without any label: each failure has the frames of one of them."""
    frames = traceback(*((f"model/layer{depth % 3}.py", f"forward{depth % 3}", f"return self.inner{depth % 3}(x)") for depth in range(9)))
    for seed in range(20):
        dice, lines = random.Random(seed), []
        lanes = [[*frames, f"torch.OutOfMemoryError: {message(gpu)}"] for gpu in range(3)]
        while any(lanes):
            lines.append(dice.choice([lane for lane in lanes if lane]).pop(0))
        event = read("\n".join(lines)).events[0]
        assert event.count == 3
        for one in (event, *event.members):
            assert [frame.function for frame in one.frames] == [f"forward{depth % 3}" for depth in range(9)]
            assert [frame.statement for frame in one.frames] == [f"return self.inner{depth % 3}(x)" for depth in range(9)]
            assert all(lines[place.line - 1].strip() in place.text for place in one.evidence)


def test_a_cluster_too_long_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time stays bounded where thousands of lines stand between a head and its end."""
    monkeypatch.setattr(interleaved_tracebacks, "LONGEST", 4)
    lines = [LOSS[0], LOSS[0], *LOSS[1:], *LOSS[1:], f"torch.OutOfMemoryError: {message(0)}", f"torch.OutOfMemoryError: {message(1)}"]
    assert read("\n".join(lines)).events[0].count == 2


def test_a_thousand_equal_ranks_are_counted_and_some_of_them_kept() -> None:
    """The report stays readable: more members than a few hundred are counted, and it says so."""
    reading = read("\n".join(f"[rank{rank}]: torch.OutOfMemoryError: {message(rank % 8)}" for rank in range(700)))
    event = reading.events[0]
    assert (event.count, len(event.ranks), len(event.members)) == (700, 700, MEMBERS)
    assert [notice.code for notice in reading.notices] == ["more_members"]


# -- who failed first


def stamped(second: str, rank: int) -> str:
    return (
        f"2026-03-02 10:11:{second} - ERROR - train - [rank{rank}]: torch.OutOfMemoryError: {message(rank, requested=f'{rank + 2}.00 GiB')}"
    )


@for_each(
    "seconds, root",
    [
        (("12,500", "12,100"), 5),  # printed later, happened earlier
        (("12,100", "12,500"), 0),
        (("12", "12"), 0),  # within the same second nobody knows: the order of the lines
        (("14", "12"), 5),
        (("13", "12,900"), 5),
    ],
)
def test_time_stamps_say_who_was_first(seconds: tuple[str, str], root: int) -> None:
    """Merged logs are not always in order; a stamp decides where its precision leaves no doubt."""
    reading = read("\n".join([stamped(seconds[0], 0), stamped(seconds[1], 5)]))
    assert reading.root is not None
    assert reading.events[reading.root].gpu == root


@for_each(
    "line, kind, seconds",
    [
        ("[2026-03-02 10:11:12,345] [ERROR] x", "date", 36672.345),
        ("E0302 10:11:12.131000 41 api.py:869] x", "glog", 36672.131),
        ("(EngineCore_DP0 pid=4) ERROR 03-02 10:11:12 [core.py:8] x", "short", 36672.0),
        ("Mar  2 10:11:12 node kernel: x", "syslog", 36672.0),
        ("took 10:11:12 hours", None, 0),
    ],
)
def test_stamps(line: str, kind: str | None, seconds: float) -> None:
    """The forms that loggers write; a duration is none."""
    found = order.stamp(line)
    assert (found.kind, round(found.seconds, 3)) == (kind, seconds) if found else kind is None


def table(first: int, *rows: tuple[int, str]) -> list[str]:
    """torchrun's summary: rank and second of each failure, the named one last."""
    head = ["Failures:", *(f"[{i + 1}]:\n{block(*row)}" for i, row in enumerate(rows) if row[0] != first)]
    return [*head, "Root Cause (first observed failure):", "[0]:", *(block(*row) for row in rows if row[0] == first)]


def block(rank: int, second: str) -> str:
    when = f"  time      : 2026-03-02_10:11:{second}\n  host      : node"
    return f"{when}\n  rank      : {rank} (local_rank: {rank})\n  exitcode  : 1 (pid: 41{rank})"


@pytest.mark.parametrize(("seconds", "root"), [(("14", "12"), 5), (("12", "12"), 0), (("13", "12"), 0)])
def test_the_launcher_decides_within_one_log_only_beyond_a_second(seconds: tuple[str, str], root: int) -> None:
    """Its times are those of noticing, to the second: lines that stand in order say more."""
    failures = [f"[rank{rank}]: torch.OutOfMemoryError: {message(rank, requested=f'{rank + 2}.00 GiB')}" for rank in (0, 5)]
    reading = read("\n".join([*failures, *table(5, (0, seconds[0]), (5, seconds[1]))]))
    assert reading.root is not None
    assert reading.events[reading.root].rank == root


# -- what follows


FOLLOWING = [
    (
        "collective_timeout",
        "[rank1]:[E302 ProcessGroupNCCL.cpp:607] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(",
        "nccl",
    ),
    ("collective_error", "[rank1]: torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:219, remote process exited", "nccl"),
    ("connection", "[rank1]: RuntimeError: Connection reset by peer", "other"),
    ("connection", "BrokenPipeError: [Errno 32] Broken pipe", "other"),
    ("gloo", "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.7]:3011", "other"),
    ("store", "[W302 TCPStore.cpp:115] recvVector failed on SocketImpl(fd=62): failed to recv, got 0 bytes", "other"),
    ("sigterm", "W0302 10:11:14 41 api.py:897] Sending process 5131 closing signal SIGTERM", "other"),
    ("abort", "E0302 10:11:19 41 api.py:869] failed (exitcode: -6) local_rank: 3 (pid: 513) of binary: /opt/env/bin/python", "other"),
    ("engine", "RuntimeError: Engine core initialization failed. See root cause above.", "other"),
    ("actor", "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.", "other"),
    ("exit", "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:", "other"),
]


@for_each("kind, line, family", FOLLOWING)
def test_what_a_dead_process_brings_about(kind: str, line: str, family: str) -> None:
    """One event per kind, linked to the failure, with how often it was read; without a failure before it, it is no event."""
    reading = read("\n".join([OOM, *[line] * 3, "bye"]))
    assert told(reading) == [("torch_cuda", None), (family, 0)]
    assert (reading.events[1].count, reading.events[1].status, reading.events[1].evidence[0].line) == (3, "none", 2)
    assert read(f"{line}\n{line}\nbye\n").events == ()


def test_what_stands_before_the_failure_does_not_follow_from_it() -> None:
    """A job whose network broke first did not break it by running out of memory."""
    assert told(read(f"RuntimeError: Connection reset by peer\n{OOM}\n")) == [("torch_cuda", None)]


def test_siblings_that_are_killed_follow_from_the_device() -> None:
    """A launcher ends what is left of the job with signal 9: no shortage of host memory."""
    kills = [
        f"E0302 10:11:19.0 41 api.py:869] failed (exitcode: -9) local_rank: {rank} (pid: 51{rank}) of binary: python" for rank in (1, 2)
    ]
    reading = read("\n".join([OOM, *kills]))
    assert told(reading) == [("torch_cuda", None), ("host_oom_killer", 0)]
    assert (reading.events[1].count, [member.local_rank for member in reading.events[1].members]) == (2, [2])


def test_a_card_that_is_full_after_a_host_kill_is_a_failure_of_its_own() -> None:
    """The kill does not explain it, nor it the kill."""
    kernel = "[118.55] Memory cgroup out of memory: Killed process 871263 (python) total-vm:1kB, anon-rss:9kB"
    assert told(read(f"{kernel}\n{OOM}\n")) == [("cgroup_oom", None), ("torch_cuda", None)]


def test_consequences_name_their_ranks() -> None:
    """Who waited in vain is worth knowing: it is not who failed."""
    lines = [f"[rank{rank}]: torch.distributed.DistBackendError: NCCL error in: x.cpp:1" for rank in (1, 3, 1)]
    event: Event = read("\n".join(["[rank2]: " + OOM, *lines])).events[1]
    assert (event.ranks, event.count, event.rank) == ((1, 3), 3, 1)
