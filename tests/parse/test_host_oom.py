"""Host memory: the kernel, schedulers, containers, launchers, Ray, data loaders, allocators of the CPU. Figures, and who died."""

from __future__ import annotations

import pytest
from collected import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from sweep import examples
from wordings import FIGURES, Wording, check, only, reading

from diagnose.facts import Value
from diagnose.parse.messages import scheduler_oom
from diagnose.units import Size

EARLYOOM = '"python3": badness 912, VmRSS {process_in_use:mb} MiB'
OOMD = "swap used (7503994880) / total (7969173504) being more than 90.00%"
RAY_TASK = "(task ID: ffff, name=f, pid=3048, memory used={process_in_use:gb}GB)"

WORDINGS = [
    # the kernel and those that kill before it
    Wording(
        "systemd-oomd marks",
        f"Marked /a.scope for killing due to memory used (7177072640) / total ({{capacity:bytes}}) and {OOMD}",
        "systemd_oomd",
    ),
    Wording(
        "systemd-oomd killed",
        f"systemd-oomd[7]: Killed /a.scope due to memory used (71) / total ({{capacity:bytes}}) and {OOMD}",
        "systemd_oomd",
    ),
    Wording(
        "pressure", "systemd-oomd[7]: Killed /a.scope due to memory pressure for /a.slice being 78.12% > 50.00% for > 20s", "systemd_oomd"
    ),
    Wording("unit of oomd", "systemd[9]: app.scope: systemd-oomd killed 17 process(es) in this unit.", "systemd_oomd"),
    Wording("unit", "systemd[1]: train.service: A process of this unit has been killed by the OOM killer.", "host_oom_killer"),
    Wording("result", "systemd[1]: train.service: Failed with result 'oom-kill'.", "host_oom_killer"),
    Wording("earlyoom", f"earlyoom[6]: sending SIGTERM to process 2187 uid 0 {EARLYOOM}", "host_oom_killer"),
    Wording("group kill", "Tasks in /kubepods/pod7 are going to be killed due to memory.oom.group set", "cgroup_oom"),
    # schedulers
    Wording("slurm 17.11", "slurmstepd: error: Detected 1 oom-kill event(s). Some of your processes may have been killed", "slurm_oom"),
    Wording(
        "slurm 18.08", "slurmstepd: error: Detected 2 oom-kill event(s) in step 370626.batch cgroup. Some of your processes", "slurm_oom"
    ),
    Wording("slurm 20.11", "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=771204.batch. Some of your processes", "slurm_oom"),
    Wording(
        "slurm 23.02",
        "slurmstepd: error: Detected 3 oom_kill events in StepId=44172.0. Some of the step tasks have been OOM Killed.",
        "slurm_oom",
    ),
    Wording(
        "slurm het job",
        "slurmstepd: error: Detected 1 oom_kill event in StepId=44172+1.0. Some of the step tasks have been OOM Killed.",
        "slurm_oom",
    ),
    Wording(
        "slurm limit",
        "slurmstepd: error: StepId=441.0 exceeded memory limit ({process_in_use:bytes} > {capacity:bytes}), being killed",
        "slurm_oom",
    ),
    Wording(
        "slurm limit in KB",
        "slurmstepd: error: Step 441.0 exceeded memory limit ({process_in_use:kb} > {capacity:kb}), being killed",
        "slurm_oom",
    ),
    Wording("slurmd", "slurmd[n1]: Job 99 exceeded memory limit ({process_in_use:mb}>{capacity:mb}), cancelling it", "slurm_oom"),
    Wording("slurm virtual", "slurmstepd: error: StepId=441.0 exceeded virtual memory limit (69 > 68), being killed", "slurm_oom"),
    Wording("slurm at some point", "slurmstepd: error: Exceeded job memory limit at some point.", "slurm_oom", "suspected"),
    Wording("sacct", "4417223.0      python               OUT_OF_ME+    0:125", "slurm_oom"),
    Wording("scontrol", "   JobState=OUT_OF_MEMORY Reason=OutOfMemory Dependency=(null)", "slurm_oom"),
    Wording(
        "seff",
        "State: OUT_OF_MEMORY (exit code 0)\nNodes: 1\nCores per node: 8\nMemory Utilized: {process_in_use:gb} GB\n"
        "Memory Efficiency: 99.84% of {capacity:gb} GB",
        "slurm_oom",
    ),
    Wording("pbs", "=>> PBS: job killed: mem {process_in_use:kb}kb exceeded limit {capacity:kb}kb", "cgroup_oom"),
    Wording(
        "lsf",
        "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.\nResource usage summary:\n"
        "    Max Memory :                                 {process_in_use:mb} MB\n"
        "    Total Requested Memory :                     {capacity:mb} MB",
        "cgroup_oom",
    ),
    Wording(
        "sge",
        'job exceeds job hard limit "h_vmem" of queue "q" ({process_in_use:bytes}.00000 > limit:{capacity:bytes}.00000) - sending SIGKILL',
        "cgroup_oom",
    ),
    Wording("condor", "\tJob has gone over cgroup memory limit of {capacity:mb} megabytes. Peak usage: 65540 megabytes.", "cgroup_oom"),
    # containers and platforms
    Wording("pod", "    Last State:     Terminated\n      Reason:       OOMKilled\n      Exit Code:    137", "k8s_oom"),
    Wording("api", '{"state":{"terminated":{"exitCode":137,"reason":"OOMKilled"}}}', "k8s_oom"),
    Wording("docker", '    "OOMKilled": true,\n    "HostConfig": {{\n      "Memory": {capacity:bytes},'.replace("{{", "{"), "cgroup_oom"),
    Wording("vertex", "The replica workerpool0-0 ran out-of-memory and exited with a non-zero status of 137.", "host_oom_killer"),
    Wording("sagemaker", "ClientError: Please use an instance type with more memory, or reduce the size of job data", "host_oom_killer"),
    Wording("colab", "Your session crashed after using all available RAM.", "host_oom_killer"),
    Wording("kaggle", "Your notebook tried to allocate more memory than is available. It has restarted.", "host_oom_killer"),
    Wording("jupyter", "The kernel appears to have died. It will restart automatically.", "host_oom_killer", "suspected", "kernel_gone"),
    # launchers: no proof
    Wording("shell", "Killed", "host_oom_killer", "suspected"),
    Wording("shell, quoted in one line of code", "Killed`", "host_oom_killer", "suspected"),
    Wording("shell, quoted in bold", "**Killed**", "host_oom_killer", "suspected"),
    Wording("shell of a Chinese locale", "已杀死", "host_oom_killer", "suspected"),
    Wording("bash", "./run.sh: line 12: 48213 Killed                  python train.py", "host_oom_killer", "suspected"),
    Wording("job control", "[1]+  Killed                  python train.py", "host_oom_killer", "suspected"),
    Wording("zsh", "zsh: killed     python train.py", "host_oom_killer", "suspected"),
    Wording("job of zsh", "[1]  + 21877 killed     python train.py", "host_oom_killer", "suspected"),
    Wording("job of zsh in a subshell", "[1]    21877 killed     python train.py", "host_oom_killer", "suspected"),
    Wording("job of zsh without a number", "[2]  - killed     python train.py", "host_oom_killer", "suspected"),
    Wording("macOS", "Killed: 9", "host_oom_killer", "suspected"),
    Wording("torchrun", "failed (exitcode: -9) local_rank: 3 (pid: 904) of binary: /usr/bin/python", "host_oom_killer", "suspected"),
    Wording("torchrun 1.8", "Child process 3223 (local_rank 0) FAILED (exitcode -9)", "host_oom_killer", "suspected"),
    Wording(
        "bus error",
        "failed (exitcode: -7) local_rank: 3 (pid: 904) of binary: /usr/bin/python",
        "dataloader_shm",
        "suspected",
        "bus_signal",
    ),
    Wording(
        "accelerate",
        "subprocess.CalledProcessError: Command '['python', 'a.py']' died with <Signals.SIGKILL: 9>.",
        "host_oom_killer",
        "suspected",
    ),
    Wording(
        "spawn",
        "torch.multiprocessing.spawn.ProcessExitedException: process 2 terminated with signal SIGKILL",
        "host_oom_killer",
        "suspected",
    ),
    Wording("srun", "srun: error: n1: task 3: Killed", "host_oom_killer", "suspected"),
    Wording("compose", "trainer-1 exited with code 137", "host_oom_killer", "suspected"),
    Wording("kubectl", "command terminated with exit code 137", "host_oom_killer", "suspected"),
    Wording("exit status", "subprocess.CalledProcessError: Command 'x' returned non-zero exit status 137.", "host_oom_killer", "suspected"),
    # Ray
    Wording(
        "ray",
        "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\n"
        f"Memory on the node (IP: 10.1.2.3, ID: 5d0c) where the task {RAY_TASK} was running was 240.10GB / {{capacity:gb}}GB (0.95)",
        "ray_oom",
    ),
    Wording(
        "ray lease",
        f"Memory on the node (IP: 10.1.2.3, ID: 5d0c) where the lease {RAY_TASK} was running was 240.10GB / {{capacity:gb}}GB (0.95)",
        "ray_oom",
    ),
    Wording(
        "raylet",
        "(raylet) 2 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons",
        "ray_oom",
    ),
    Wording(
        "old ray",
        "ray.memory_monitor.RayOutOfMemoryError: More than 95% of the memory on node n1 is used (60.1 / {capacity:gb} GB).",
        "ray_oom",
    ),
    Wording("ray exit", "Worker exit type: NODE_OUT_OF_MEMORY Worker exit detail: see the logs", "ray_oom"),
    Wording(
        "object store",
        "ray.exceptions.ObjectStoreFullError: Failed to put object 00ff because it is full. Object size is {requested:bytes} bytes.",
        "ray_oom",
    ),
    Wording(
        "guesses",
        "There are some potential root causes. (1) The process is killed by SIGKILL by OOM killer due to high memory usage. (2) ray stop",
        "host_oom_killer",
        "suspected",
    ),
    # shared memory
    Wording("loader killed", "RuntimeError: DataLoader worker (pid 1224) is killed by signal: Killed. ", "host_oom_killer", "suspected"),
    Wording("loader gone", "RuntimeError: DataLoader worker (pid(s) 8123, 8124) exited unexpectedly", "host_oom_killer", "suspected"),
    Wording(
        "loader bus",
        "RuntimeError: DataLoader worker (pid 8123) is killed by signal: Bus error. ",
        "dataloader_shm",
        "suspected",
        "bus_error",
    ),
    Wording(
        "loader shm",
        "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).\0",
        "dataloader_shm",
    ),
    Wording("write", "RuntimeError: unable to write to file </torch_512_1730381_3>: No space left on device (28)", "dataloader_shm"),
    # before torch 1.10 without a reason
    Wording("old write", "RuntimeError: unable to write to file </torch_1131_12260386>", "dataloader_shm"),
    Wording(
        "oldest write", "RuntimeError: unable to write to file </torch_76_36> at /pytorch/aten/src/TH/THAllocator.c:383", "dataloader_shm"
    ),
    Wording(
        "old open",
        "RuntimeError: unable to open shared memory object </torch_299_13961> in read-write mode",
        "dataloader_shm",
        "suspected",
        "shared_object",
    ),
    Wording(
        "old resize",
        "RuntimeError: unable to resize file </torch_224_38> to the right size",
        "dataloader_shm",
        "suspected",
        "shared_object",
    ),
    Wording("mapping of windows", "RuntimeError: Couldn't open shared file mapping: <torch_136_16_6>, error code: <1455>", "python_memory"),
    Wording(
        "map of torch",
        "RuntimeError: unable to mmap {requested:bytes} bytes from file </torch_1_2_3>: Cannot allocate memory (12)",
        "dataloader_shm",
    ),
    Wording(
        "nccl segment",
        "NCCL WARN Error while creating shared memory segment /dev/shm/nccl-Xq1Ab2 (size {requested:bytes})",
        "dataloader_shm",
    ),
    # allocators
    Wording(
        "cpu",
        "RuntimeError: [enforce fail at alloc_cpu.cpp:118] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate "
        "{requested:bytes} bytes. Error code 12 (Cannot allocate memory)",
        "cpu_allocator",
    ),
    Wording(
        "cpu on windows",
        "RuntimeError: DefaultCPUAllocator: not enough memory: you tried to allocate {requested:bytes} bytes.",
        "cpu_allocator",
    ),
    Wording(
        "pinned",
        "RuntimeError: Malloc pin memory failed, host out of memory, Rried to allocate size: {requested:bytes}, total_allocated_memory: 1",
        "pinned_host",
    ),
    Wording("pin thread", "RuntimeError: Pin memory thread exited unexpectedly", "pinned_host", "suspected"),
    Wording("arrow", "pyarrow.lib.ArrowMemoryError: malloc of size {requested:bytes} failed", "python_memory"),
    Wording("rust", "memory allocation of {requested:bytes} bytes failed", "cpp_bad_alloc"),
    Wording("java", "java.lang.OutOfMemoryError: Java heap space", "cpp_bad_alloc"),
    Wording("node", "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory", "cpp_bad_alloc"),
    Wording("go", "fatal error: runtime: out of memory", "cpp_bad_alloc"),
    Wording("bad_alloc", "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc", "cpp_bad_alloc"),
    Wording("bare", "MemoryError", "python_memory"),
    Wording("errno", "OSError: [Errno 12] Cannot allocate memory", "python_memory"),
    Wording(
        "mapped file",
        "RuntimeError: unable to mmap {requested:bytes} bytes from file </data/a.safetensors>: Cannot allocate memory (12)",
        "python_memory",
    ),
    Wording(
        "paging file",
        "OSError: [WinError 1455] The paging file is too small for this operation to complete. Error loading",
        "python_memory",
    ),
]


@pytest.mark.parametrize("wording", WORDINGS, ids=lambda wording: wording.name)
@settings(max_examples=examples(8), deadline=None)
@given(data=st.data())
def test_what_is_printed_is_read_back(wording: Wording, data: st.DataObject) -> None:
    """One event of the right family and no more proof than there is; every printed figure inside its interval."""
    check(wording, {name: data.draw(st.integers(1 << 30, 190 << 30)) for name, _ in wording.slots})


WRAPPERS = {
    "quoted": "> {}",
    "container": "2025-09-02T04:01:12.118220144Z stderr F {}",
    "rank": "[rank3]: {}",
    "torchrun": "[default3]:{}",
    "dated": "2025-09-02 04:01:12,118 ERROR {}",
    "journal": "Sep  2 04:01:12 gpu7 trainer[881]: {}",
    "coloured": "\x1b[31m{}\x1b[0m",
    "windows": "{}\r",
    "indented": "    {}",
}


@for_each("wrapper", WRAPPERS)
@for_each("wording", WORDINGS)
def test_noise_changes_nothing(wording: Wording, wrapper: str) -> None:
    """Whatever stands before or round each line, the message is the same."""
    text = wording.printed({name: 77 << 30 for name, _ in wording.slots})
    plain = only(reading(f"{text}\n"))
    noisy = only(reading("".join(f"{WRAPPERS[wrapper].format(line)}\n" for line in text.split("\n"))))
    shown = [(one.family, one.status, one.reason, *(str(getattr(one, name)) for name in FIGURES)) for one in (plain, noisy)]
    assert shown[0] == shown[1]


# -- the kernel's report


def kernel(pid: int, anon: int, shmem: int, limit: int | None, page: int = 4) -> str:
    """A kill as a kernel since 5.3 prints it, with its table in pages; figures in KiB."""
    total = (anon + shmem + 30_000_000) // page * page
    lines = [
        "python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
        *(
            [f"memory: usage {limit}kB, limit {limit}kB, failcnt 88121", "swap: usage 0kB, limit 0kB, failcnt 0"]
            if limit
            else ["67108864 pages RAM", "1108864 pages reserved"]
        ),
        "Tasks state (memory values in pages):",
        "[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name",
        f"[ {pid - 9:6}]     0 {pid - 9:5} {255:8} {1:8}    24576        0           0 pause",
        f"[ {pid:6}]     0 {pid:5} {total // page:8} {(anon + shmem) // page:8} 133165056        0           0 pt_main_thread",
        f"oom-kill:constraint=CONSTRAINT_{'MEMCG' if limit else 'NONE'},nodemask=(null),cpuset=/,task=python,pid={pid},uid=0",
        (
            f"{'Memory cgroup out' if limit else 'Out'} of memory: Killed process {pid} (pt_main_thread) total-vm:{total}kB, "
            f"anon-rss:{anon}kB, file-rss:204kB, shmem-rss:{shmem}kB, UID:0 pgtables:130044kB oom_score_adj:0"
        ),
        f"oom_reaper: reaped process {pid} (pt_main_thread), now anon-rss:0kB, file-rss:0kB, shmem-rss:{shmem}kB",
    ]
    return "".join(f"[ 99{number}.331042] {line}\n" for number, line in enumerate(lines))


kib = st.integers(1 << 20, 400 << 20).map(lambda count: count // 64 * 64)


@settings(max_examples=25, deadline=None)
@given(anon=kib, shmem=st.one_of(st.just(0), kib), limit=kib, page=st.sampled_from([4, 16, 64]))
def test_a_limit_that_the_kernel_enforced(anon: int, shmem: int, limit: int, page: int) -> None:
    """What the process held without mapped files, the limit, and the table in the pages of this machine."""
    event = only(reading(kernel(55120, anon, shmem, limit, page)))
    assert (event.family, event.status, event.pid) == ("cgroup_oom", "oom", 55120)
    assert event.process_in_use is not None and event.process_in_use.bytes == (anon + shmem) << 10
    assert event.capacity is not None and event.capacity.bytes == limit << 10
    assert [(one.pid, one.own) for one in event.other_processes] == [(55120, True), (55111, False)]
    assert event.other_processes[0].in_use == Size.exactly((anon + shmem) << 10)
    assert event.other_processes[1].in_use == Size.exactly(page << 10)


def test_a_node_without_memory() -> None:
    """No limit: the capacity is what the node has, and a fact of that name with its line."""
    read = reading(kernel(55120, 70_000_000, 0, None))
    event = only(read)
    assert (event.family, str(event.process_in_use)) == ("host_oom_killer", "70000000 KiB")
    ram = next(fact for fact in read.facts if fact.name == "host.ram")
    assert isinstance(ram.value, Size)
    assert ram.value.bytes == (67108864 - 1108864) * 4096
    assert not any(fact.name == "log.container_limit" for fact in read.facts)


def limited(text: str) -> list[Value]:
    return [fact.value for fact in reading(text).facts if fact.name == "host.limited"]


def test_the_kernel_says_whether_it_was_the_node_that_was_full() -> None:
    """A scheduler that saw the kill as well counts kills of either kind; of a limit the kernel says so itself."""
    node, limit = kernel(55120, 70_000_000, 0, None), kernel(55120, 70_000_000, 0, 64 << 20)
    assert limited(node) == [False]
    assert (
        limited(limit)
        == limited("slurmstepd: error: Detected 1 oom_kill event in StepId=9.0. Some processes may have been killed\n" + node)
        == []
    )
    assert limited("train.sh: line 3: 4120 Killed                  python train.py\n") == []


def test_no_limit_is_unknown() -> None:
    """A group without a limit prints 2^63 less a page: no memory has that."""
    assert only(reading(kernel(55120, 70_000_000, 0, 9007199254740988))).capacity is None


@pytest.mark.parametrize("opening", ["Memory cgroup out of memory", "Out of memory"])
def test_the_two_lines_of_an_old_kernel(opening: str) -> None:
    """Before 5.0 the reason and the figures stood in two lines."""
    event = only(
        reading(
            "Jun 25 13:22:40 gpu7 kernel: [182.55] memory: usage 69206016kB, limit 69206016kB, failcnt 5123\n"
            f"Jun 25 13:22:40 gpu7 kernel: [182.56] {opening}: Kill process 871263 (ray::Worker) score 998 or sacrifice child\n"
            "Jun 25 13:22:40 gpu7 kernel: [182.57] Killed process 871263 (ray::Worker) total-vm:3124kB, anon-rss:66871236kB, file-rss:1kB\n"
        )
    )
    assert (event.family, event.pid, str(event.process_in_use), str(event.capacity)) == (
        "cgroup_oom",
        871263,
        "66871236 KiB",
        "69206016 KiB",
    )


def test_every_process_that_was_killed_keeps_its_figures() -> None:
    """Two deaths are one event with a member, each with what it held; the launcher's ranks go with their own process numbers."""
    table = "".join(
        f"[{index}]:\n  time      : 2026-03-02_04:11:09\n  host      : node-3\n  rank      : {rank} (local_rank: {rank})\n"
        f"  exitcode  : -9 (pid: {pid}) (SIGKILL)\n  error_file: <N/A>\n  traceback : Signal 9 (SIGKILL) received by PID {pid}\n"
        for index, (rank, pid) in enumerate([(5, 906), (3, 904)])
    )
    event = only(reading(table + kernel(904, 60_000_000, 0, None) + kernel(906, 50_000_000, 0, None)))
    found = sorted((one.rank, one.pid, str(one.process_in_use)) for one in (event, *event.members))
    assert found == [(3, 904, "60000000 KiB"), (5, 906, "50000000 KiB")]
    assert (event.status, event.count, sorted(event.ranks), event.host) == ("oom", 2, [3, 5], "node-3")


def test_numbers_of_a_container_are_not_those_of_the_kernel() -> None:
    """With one death launcher and kernel speak of the same process; with two nobody can say which rank is which."""
    launcher = "failed (exitcode: -9) local_rank: 3 (pid: 31) of binary: /usr/bin/python\n"
    assert only(reading(launcher + kernel(55904, 60_000_000, 0, 64 << 20))).local_rank == 3
    event = only(reading(launcher + kernel(55904, 60_000_000, 0, 64 << 20) + kernel(55906, 50_000_000, 0, 64 << 20)))
    assert (event.local_rank, event.count) == (None, 2)


def test_all_voices_of_one_death_are_one_event() -> None:
    """Loader, Slurm, srun, launcher and kernel; the kernel knows most."""
    event = only(
        reading(
            "RuntimeError: DataLoader worker (pid 2187) is killed by signal: Killed. \n"
            "failed (exitcode: -9) local_rank: 0 (pid: 2100) of binary: /usr/bin/python\n"
            "slurmstepd: error: Detected 1 oom_kill event in StepId=4417223.0. Some of the step tasks have been OOM Killed.\n"
            "srun: error: gpu-a07: task 2: Out Of Memory\n" + kernel(2187, 60_000_000, 0, 64 << 20)
        )
    )
    assert (event.family, event.status, event.pid, event.phase) == ("cgroup_oom", "oom", 2187, "dataset")
    assert len(event.evidence) >= 5


# -- schedulers and containers


def test_slurm_names_the_tasks() -> None:
    """The task list is who died."""
    event = only(reading("srun: error: gpu[03-04]: tasks 5,9-10: Out Of Memory\n"))
    assert (event.rank, event.ranks, event.count, event.host) == (5, (5, 9, 10), 3, None)
    assert [member.rank for member in event.members] == [9, 10]
    assert only(reading("srun: error: gpu-a07: task 2: Out Of Memory\n")).host == "gpu-a07"
    assert scheduler_oom.parse_tasks("tasks 0-999999") == ()


def test_a_figure_that_may_be_bytes_or_kilobytes_is_unknown() -> None:
    """512 MiB or 512 GiB: older releases count in KB, newer in bytes."""
    event = only(reading("slurmstepd: error: Step 4.0 exceeded memory limit (536870999 > 536870912), being killed\n"))
    assert (event.capacity, event.process_in_use) == (None, None)


POD = """  State:          Waiting
    Reason:       CrashLoopBackOff
  Last State:     Terminated
    Reason:       OOMKilled
    Exit Code:    137
  Ready:          False
  Restart Count:  3
  Limits:
    cpu:             32
    memory:          {}
    nvidia.com/gpu:  8
  Requests:
    cpu:     16
    memory:  1Gi
"""


@for_each(
    "text, size",
    [
        ("64Gi", 64 << 30),
        ("65536Mi", 64 << 30),
        ("64G", 64 * 10**9),
        ("64000M", 64 * 10**9),
        ("68719476736", 64 << 30),
        ("1500m", 2),
        ("1.5Gi", 3 << 29),
    ],
)
def test_quantities_of_kubernetes(text: str, size: int) -> None:
    """Gi is binary and G is decimal; the limit of the container is a fact of its own, not the node's memory."""
    assert scheduler_oom.parse_quantity(text) == Size(size, size, size, text)
    read = reading(POD.format(text))
    facts: dict[str, Value] = {fact.name: fact.value for fact in read.facts}
    assert facts["log.container_limit"] == scheduler_oom.parse_quantity(text)
    assert "host.ram" not in facts
    assert [witness.line for witness in only(read).evidence[:2]] == [4, 10]


@for_each("text", ["", "Gi", "64Qi", "9999999Pi", "-1Gi", "1e400"])
def test_what_is_no_quantity_is_unknown(text: str) -> None:
    """Neither nonsense nor more than any memory has."""
    assert scheduler_oom.parse_quantity(text) is None


API = """apiVersion: v1
kind: Pod
spec:
  containers:
  - name: trainer
    resources:
      limits:
        memory: 480Gi
        nvidia.com/gpu: "8"
      requests:
        memory: 200Gi
status:
  containerStatuses:
  - lastState:
      terminated:
        exitCode: 137
        reason: OOMKilled
"""


def test_the_limit_in_an_object_of_the_api() -> None:
    """YAML has the specification above the state, JSON may have all in one line; of several limits none is taken."""
    assert str(only(reading(API)).capacity) == "480Gi"
    two = API.replace("status:", "  - name: sidecar\n    resources:\n      limits:\n        memory: 2Gi\nstatus:")
    assert only(reading(two)).capacity is None
    line = '{"spec":{"resources":{"limits":{"cpu":"8","memory":"64Gi"}}},"state":{"terminated":{"exitCode":137,"reason":"OOMKilled"}}}'
    assert str(only(reading(line + "\n")).capacity) == "64Gi"


def test_evictions() -> None:
    """For memory, for a memory-backed volume, for the disk: three different things."""
    memory = only(
        reading("  Warning  Evicted  2m  kubelet  The node was low on resource: memory. Container t was using 66012Mi, request is 32Gi\n")
    )
    assert (memory.family, str(memory.process_in_use)) == ("k8s_oom", "66012Mi")
    shm = reading('  Warning  Evicted  2m  kubelet  Usage of EmptyDir volume "dshm" exceeds the limit "8Gi".\n')
    assert only(shm).family == "dataloader_shm"
    assert {fact.name: fact.value for fact in shm.facts}["log.shm_limit"] == scheduler_oom.parse_quantity("8Gi")
    for line in (
        'Usage of EmptyDir volume "scratch" exceeds the limit "8Gi".',
        "Pod ephemeral local storage usage exceeds the total limit",
    ):
        disk = only(reading(f"  Warning  Evicted  2m  kubelet  {line}\n"))
        assert (disk.status, disk.reason) == ("lookalike", "disk_full")


def test_the_table_of_ray() -> None:
    """Tabs or blanks, glued or not, commands of any kind; GB are binary."""
    head = (
        "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\n"
        "Memory on the node (IP: 10.1.2.3, ID: 5d) where the task (task ID: ff, name=WorkerDict.init_model, pid=3048, memory used=49.21GB) "
        "was running was 239.10GB / 251.50GB (0.950696), which exceeds the memory usage threshold of 0.95. Ray killed this worker (ID: 6f) "
        "because it was the most recently scheduled task; to see more, use `ray logs raylet.out -ip 10.1.2.3. "
    )
    tables = [
        "Top 10 memory users:\nPID\tMEM(GB)\tCOMMAND\n3048\t49.21\tray::WorkerDict.init_model\n1200\t48.02\t/usr/bin/java -jar x.jar 9 9",
        "\nTop 10 memory users:\nPID     MEM(GB) COMMAND\n3048    49.21   ray::WorkerDict.init_model\n1200    48.02   /usr/bin/java",
        "Top 10 memory users: PID MEM(GB) COMMAND 3048 49.21 ray::WorkerDict.init_model 1200 48.02 ray::IDLE",
    ]
    for table in tables:
        event = only(reading(head + table + "\n"))
        assert (event.host, event.pid, str(event.capacity), event.phase) == ("10.1.2.3", 3048, "251.50 GB", "init")
        assert [(one.pid, str(one.in_use), one.own) for one in event.other_processes] == [
            (3048, "49.21 GB", True),
            (1200, "48.02 GB", False),
        ]


def test_what_the_largest_process_of_rays_table_does_is_when_it_happened() -> None:
    """Ray ends the newest task, here the driver, whose name says nothing of the moment."""
    report = (
        "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\n"
        "Memory on the node (IP: 10.1.2.3, ID: 5d) where the task (task ID: ff, name={name}, pid=3048, memory used=9.62GB) was running was "
        "478.86GB / 503.52GB (0.951019), which exceeds the memory usage threshold of 0.95. Top 10 memory users:\nPID\tMEM(GB)\tCOMMAND\n"
        "15034\t51.57\tray::WorkerDict.actor_rollout_save_checkpoint\n3048\t9.62\tray::{name}\n812\t1.02\tray::Other.init_model\n"
    )
    assert only(reading(report.format(name="main_task"))).phase == "checkpoint_save"
    assert only(reading(report.format(name="WorkerDict.generate_sequences"))).phase == "generation"


# -- allocators


@settings(max_examples=40, deadline=None)
@given(
    shape=st.lists(st.integers(1, 5000), min_size=1, max_size=3),
    kind=st.sampled_from([("float64", 8), ("float32", 4), ("int8", 1), ("bool", 1), ("complex128", 16), ("<U10", 40), ("object", 8)]),
)
def test_a_shape_tells_the_size_exactly(shape: list[int], kind: tuple[str, int]) -> None:
    """numpy prints three digits, with a full stop after three whole ones; shape and type say the rest."""
    exact = kind[1]
    for length in shape:
        exact *= length
    unit = max(0, (exact.bit_length() - 1) // 10)
    value = exact / 1024**unit
    printed = (
        f"{exact} bytes" if not unit else f"{value:#.3g} {'KMGT'[unit - 1]}iB" if value < 1000 else f"{value:#.0f} {'KMGT'[unit - 1]}iB"
    )
    shown = f"({shape[0]},)" if len(shape) == 1 else f"({', '.join(map(str, shape))})"
    line = (
        f"numpy._core._exceptions._ArrayMemoryError: Unable to allocate {printed} for an array with shape {shown} and data type {kind[0]}"
    )
    event = only(reading(f"{line}\n"))
    assert event.requested == Size(exact, exact, exact, printed)


def test_a_shape_that_does_not_fit_the_size_is_not_believed() -> None:
    """A message that was edited or cut: the printed size stands."""
    event = only(
        reading("numpy.core._exceptions.MemoryError: Unable to allocate 14.9 GiB for an array with shape (9, 9) and data type float64\n")
    )
    assert event.requested == Size.printed("14.9", "GiB")


@pytest.mark.parametrize("count", ["18446744073709551615", "-4096", "1125899906842625000"])
def test_a_size_that_no_memory_has_is_unknown(count: str) -> None:
    """An overflow is a defect, not a request."""
    line = f"RuntimeError: DefaultCPUAllocator: can't allocate memory: you tried to allocate {count} bytes."
    assert only(reading(f"{line}\n")).requested is None


@pytest.mark.parametrize(
    "line",
    ["RuntimeError: $ Torch: not enough memory: you tried to allocate 14GB. Buy new RAM! at /pytorch/aten/src/TH/THGeneral.cpp:218"],
)
def test_the_oldest_torch_cut_the_size(line: str) -> None:
    """An integer division: from 14 GiB to less than 15."""
    assert only(reading(f"{line}\n")).requested == Size(14 << 30, (15 << 30) - 1, 14 << 30, "14GB")


# -- what is no death by memory


@for_each(
    "line, reason",
    [
        ("slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***", "time_limit"),
        ("slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***", "time_limit"),
        ("slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO PREEMPTION ***", "preempted"),
        ("slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO NODE FAILURE, SEE SLURMCTLD LOG ***", "node_failed"),
        ("slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-01T00:00:00 ***", "cancelled"),
        ("=>> PBS: job killed: walltime 86423 exceeded limit 86400", "time_limit"),
        ("TERM_RUNLIMIT: job killed after reaching LSF run time limit.", "time_limit"),
        ("TERM_OWNER: job killed by owner.", "cancelled"),
    ],
)
@for_each("after", ["", "Killed\n", "srun: error: n1: tasks 0-7: Killed\n", "failed (exitcode: -9) local_rank: 0 (pid: 7)\n"])
def test_a_job_that_was_stopped(line: str, reason: str, after: str) -> None:
    """The scheduler says why; the kills round it are its own."""
    event = only(reading(f"{line}\n{after}"))
    assert (event.status, event.family, event.reason) == ("lookalike", "other", reason)


def test_a_kill_long_before_the_end_is_not_explained_by_it() -> None:
    """A rank died, the others waited until the time was over."""
    waiting = "".join(f"step {number} waiting for peers, nothing received so far\n" for number in range(400))
    read = reading(
        f"failed (exitcode: -9) local_rank: 0 (pid: 7)\n{waiting}*** JOB 7 ON n1 CANCELLED AT 2026-01-01 DUE TO TIME LIMIT ***\n"
    )
    assert read.root is not None
    assert (read.events[read.root].status, read.events[read.root].pid) == ("suspected", 7)


@pytest.mark.parametrize(("step", "status"), [("extern", "lookalike"), ("0", "oom")])
def test_a_helper_that_was_killed_after_the_end(step: str, status: str) -> None:
    """Training had ended well: what Slurm's own step does afterwards is not its death; a step of the job may have lost its last save."""
    end = "{'train_runtime': 5123.1, 'train_loss': 0.9, 'epoch': 1.0}\nSaving model checkpoint to out\n"
    event = only(reading(f"{end}slurmstepd: error: Detected 1 oom_kill event in StepId=4417223.{step}. Some of the step tasks\n"))
    assert (event.status, event.fatal, event.reason) == (status, status == "oom", "after_end" if status == "lookalike" else "")


def test_what_ray_guesses_is_no_failure_beside_one() -> None:
    """It prints the list before a worker's own error arrives."""
    guess = "(1) The process is killed by SIGKILL by OOM killer due to high memory usage. (2) ray stop --force is called."
    event = only(reading(f"ray.exceptions.ActorDiedError: The actor died unexpectedly.\n{guess}\nMemoryError\n"))
    assert (event.family, event.status) == ("python_memory", "oom")


@for_each(
    "opening",
    [
        "2026-06-25T13:22:40.509571+08:00 gpu7 kernel: [182.57] ",
        "Jun 25 13:22:40 gpu7 kernel: ",
        "<3>[  182.570000] ",
        "[Thu Jun 25 13:22:40 2026] ",
        "",
    ],
)
@for_each("comm, role", [("VLLM::EngineCor", "engine"), ("ray::WorkerDict", None), ("(sd-pam)", None), ("a: b", None)])
def test_however_the_kernel_is_quoted(opening: str, comm: str, role: str | None) -> None:
    """Every way in which its lines reach a log, and names with colons, blanks and brackets."""
    line = f"Out of memory: Killed process 871263 ({comm}) total-vm:99kB, anon-rss:66871236kB, file-rss:1kB, shmem-rss:0kB, UID:0"
    event = only(reading(f"{opening}{line}\n"))
    assert (event.family, event.pid, str(event.process_in_use), event.role) == ("host_oom_killer", 871263, "66871236 KiB", role)


def test_a_process_that_was_asked_to_end() -> None:
    """A launcher's SIGTERM is no shortage, whatever it looks like."""
    text = (
        "[0]:\n  rank      : 1 (local_rank: 1)\n  exitcode  : -15 (pid: 21877)\n  traceback : Signal 15 (SIGTERM) received by PID 21877\n"
    )
    event = only(reading(text))
    assert (event.status, event.reason, event.rank) == ("lookalike", "terminated", 1)
    agent = "torch.distributed.elastic.multiprocessing.api.SignalException: Process 4711 got signal: 15\n"
    event = only(reading(agent))
    assert (event.status, event.reason, event.pid) == ("lookalike", "terminated", 4711)


def test_the_number_of_a_shells_job_is_no_rank() -> None:
    """`[1]` is what Hydra's mpiexec puts before lines of rank 1, and what a shell calls its first job."""
    event = only(reading("[1]  123 killed     python train.py\n"))
    assert (event.rank, event.pid) == (None, 123)
    assert only(reading("[1] RuntimeError: CUDA error: out of memory\n")).rank == 1


@for_each(
    "line",
    [
        "[2026-03-02 04:11:12,004] [INFO] [launch.py:335:sigkill_handler] Killing subprocess 21877",
        "W0411 06:06:50.31 811 torch/distributed/elastic/multiprocessing/api.py:897] Sending process 901 closing signal SIGTERM",
        "Use kill -9 2187 to stop it, or it will be killed later.",
        "  exitcode  : 1 (pid: 21877)",
        "  exitcode  : -6 (pid: 21877)",
        "failed (exitcode: -11) local_rank: 3 (pid: 904) of binary: /usr/bin/python",
        "python: page allocation failure: order:4, mode:0xcc0",
        "(raylet) 0 Workers (tasks / actors) killed due to memory pressure (OOM), 1 Workers crashed due to other reasons at node",
        '            "OOMKilled": false,',
        "slurmstepd: error: *** STEP 1.0 ON n1 CANCELLED AT 2025-04-11T06:07:22 ***",
        "BlockingIOError: [Errno 11] Resource temporarily unavailable",
        "StepId=44.0 hit memory+swap limit at least once during execution. This may or may not result in some failure.",
        "Memory specification can not be satisfied",
        "[step 137] loss 1.37, code 1370, skilled and filled",
        "systemd-oomd[726]: Considered 139 cgroups for killing, top candidates were:",
    ],
)
def test_harmless_lines(line: str) -> None:
    """Words of death in lines that tell of none."""
    assert reading(f"{line}\n").events == ()


@for_each(
    "line, rank, local_rank, pid, host",
    [
        ("mpirun noticed that process rank 3 with PID 2187 on node n1 exited on signal 9 (Killed).", 3, None, 2187, "n1"),
        ("prterun noticed that process rank 0 with PID 0 on node n1 exited on signal 9 (Killed).", 0, None, None, "n1"),
        ("=   RANK 31 PID 1078 RUNNING AT c1u12\n=   KILLED BY SIGNAL: 9 (Killed)", 31, None, 1078, "c1u12"),
        (
            "=   PID 497 RUNNING AT n1\n=   EXIT CODE: 9\nYOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)",
            None,
            None,
            497,
            "n1",
        ),
        ("ProcessExitedException: process 2 terminated with signal SIGKILL", None, 2, None, None),
        ("  host: node-3\n  rank: 11 (local_rank: 3)\n  exitcode: -9 (pid: 904)\n", 11, 3, 904, "node-3"),
        ("srun: error: gpu-a07: task 4: Killed", 4, None, None, None),
    ],
)
def test_who_was_found_dead(line: str, rank: int | None, local_rank: int | None, pid: int | None, host: str | None) -> None:
    """Every launcher names the process in its own way."""
    event = only(reading(f"{line}\n"))
    assert (event.status, event.rank, event.local_rank, event.pid, event.host) == ("suspected", rank, local_rank, pid, host)


@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_broken_reports_give_no_impossible_figure(data: st.DataObject) -> None:
    """Reports cut, doubled and with digits changed: nothing raises, and no size is negative or more than any memory has."""
    count = st.sampled_from([1, 77 << 30, 1 << 63, (1 << 64) - 1, 10**30])
    texts = [
        wording.printed({name: data.draw(count) for name, _ in wording.slots}) for wording in data.draw(st.lists(st.sampled_from(WORDINGS)))
    ]
    text = "\n".join([*texts, POD.format("64Gi"), kernel(55120, 70_000_000, 8, data.draw(st.sampled_from([None, 64 << 20])))])
    for _ in range(data.draw(st.integers(0, 12))):
        at = data.draw(st.integers(0, len(text)))
        text = (
            text[:at]
            + data.draw(st.sampled_from(["", "9" * 30, ".", "-", "\n", "\r", "(", '"', "\0", " "]))
            + text[at + data.draw(st.integers(0, 40)) :]
        )
    for event in reading(text).events:
        for one in (event, *event.members):
            sizes = [getattr(one, name) for name in FIGURES] + [other.in_use for other in one.other_processes]
            assert all(0 <= size.low <= size.bytes <= size.high and size.bytes <= 1 << 50 for size in sizes if size is not None)
