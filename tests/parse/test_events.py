"""Messages in their place: one failure is one event, the first of them the root, and its place is true."""

from __future__ import annotations

import random

import pytest
from collected import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from logs_of_torch import LOSS, message, read, traceback
from pace import within

from diagnose.parse.model.event import Event
from diagnose.parse.model.reading import Reading


def of_rank(rank: int, lines: list[str]) -> list[str]:
    return [f"[rank{rank}]: {line}" for line in lines]


# -- several ranks


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 5))
def test_interleaved_ranks_are_told_apart(seed: int, ranks: int) -> None:
    """Lines of several ranks shuffled into each other: every rank has its own frames and figures, the first to finish is the root."""
    blocks = [of_rank(rank, [*LOSS, f"torch.OutOfMemoryError: {message(rank, free=f'{rank + 1}.50 GiB')}"]) for rank in range(ranks)]
    order, lines, first = random.Random(seed), [], None
    while any(blocks):
        block = order.choice([block for block in blocks if block])
        lines.append(block.pop(0))
        if not block and first is None:
            first = int(lines[-1][5])
    event = only(read("\n".join(lines)))
    assert (event.rank, event.count, event.ranks[0], set(event.ranks)) == (first, ranks, first, set(range(ranks)))
    assert {member.rank: str(member.free) for member in event.members} == {
        rank: f"{rank + 1}.50 GiB" for rank in range(ranks) if rank != first
    }
    assert all(
        [frame.function for frame in one.frames] == ["training_step", "_call_impl", "cross_entropy"] for one in (event, *event.members)
    )
    assert event.phase == "loss"


def only(reading: Reading) -> Event:
    causes = [event for event in reading.events if event.consequence_of is None]
    assert len(causes) == 1, causes
    assert reading.root == 0
    return causes[0]


def test_another_request_on_the_same_card_is_another_failure() -> None:
    """Two messages of one process are two events; the first is the root."""
    reading = read(f"RuntimeError: {message(requested='76.00 MiB')}\nRuntimeError: {message(requested='2.35 GiB', free='1.71 GiB')}\n")
    assert [str(event.requested) for event in reading.events] == ["76.00 MiB", "2.35 GiB"]
    assert reading.root == 0


@pytest.mark.parametrize(
    "again",
    [
        ["", "During handling of the above exception, another exception occurred:", "", *LOSS, f"RuntimeError: {message()}"],
        [f"(TaskRunner pid=7) ray.exceptions.RayTaskError(OutOfMemoryError): {message()}"],
        [f"2025-03-14 11:07:52,318 - ERROR - train - {message()}"],
    ],
)
def test_a_failure_printed_twice_is_one(again: list[str]) -> None:
    """`raise ... from`, Ray and loggers print the same message again."""
    event = only(read("\n".join([*LOSS, f"torch.OutOfMemoryError: {message()}", *again])))
    assert event.count == 1
    assert len(event.evidence) > 2


def test_what_c_plus_plus_prints_and_the_traceback_after_it_are_one() -> None:
    """vLLM's allocator writes to standard output before Python raises."""
    cumem = "CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:62"
    frames = traceback(("vllm/device_allocator/cumem.py", "create_and_map", "python_create_and_map(*allocation_handle)"))
    event = only(read("\n".join([cumem, *of_rank(3, [*frames, f"RuntimeError: {cumem}"])])))
    assert (event.family, event.phase, event.rank) == ("cuda_driver", "weight_sync", 3)


def test_frames_come_from_the_second_print_where_the_first_has_none() -> None:
    """A logger prints the message, the interpreter the traceback below it."""
    event = only(read("\n".join([f"ERROR: {message()}", *LOSS, f"torch.OutOfMemoryError: {message()}"])))
    assert (event.phase, event.exception, event.evidence[0].line) == ("loss", "torch.OutOfMemoryError", 1)


def test_what_follows_from_the_failure_is_no_cause() -> None:
    """Shutdown, broken collectives and the kill of what was left are consequences of the root."""
    tail = [
        "W0206 20:16:58.551000 51230 torch/distributed/elastic/multiprocessing/api.py:897] Sending process 51301 closing signal SIGTERM",
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "[rank5]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, unhandled cuda error",
        "E0206 20:17:04.020000 51230 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -9) local_rank: 3",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
    ]
    reading = read("\n".join([*of_rank(3, [*LOSS, f"torch.OutOfMemoryError: {message(3)}"]), *tail]))
    assert [(event.family, event.consequence_of) for event in reading.events[:1]] == [("torch_cuda", None)]
    assert {event.consequence_of for event in reading.events[1:]} == {0}
    assert {event.exception.split(":")[0] for event in reading.events[1:]} >= {
        "SIGTERM",
        "ChildFailedError",
        "DistBackendError",
        "RuntimeError",
    }


def test_across_the_logs_of_ranks_the_launcher_names_the_root() -> None:
    """Files have no order; torchrun's summary says who failed first."""
    summary = "Root Cause (first observed failure):\n[0]:\n  time      : 2025-02-06_20:16:57\n  rank      : 6 (local_rank: 6)\n"
    reading = read(*("\n".join(of_rank(rank, [*LOSS, f"torch.OutOfMemoryError: {message(rank)}"])) for rank in (3, 6)), summary)
    assert reading.events[0].rank == 6
    assert [member.rank for member in reading.events[0].members] == [3]


def test_a_failure_that_training_survives_is_not_fatal() -> None:
    """A batch-size finder catches the first failure; the one that ends the run is the root."""
    bar = "  {0}%|#         | {0}/100 [00:10<01:00,  2.00it/s]"
    lines = [
        bar.format(3),
        f"RuntimeError: {message(requested='9.00 GiB')}",
        bar.format(4),
        bar.format(9),
        *LOSS,
        f"RuntimeError: {message()}",
    ]
    reading = read("\n".join(lines))
    assert [event.fatal for event in reading.events] == [False, True]
    assert reading.root == 1


def test_a_warning_is_an_event_but_not_fatal() -> None:
    """A gather that failed while saving leaves a broken checkpoint and a run that ends well."""
    lines = [
        "Saving model checkpoint to out/checkpoint-200",
        f"a.py:312: UserWarning: Failed to clone() tensor on rank 0. Error: {message()}",
    ]
    event = only(read("\n".join(lines)))
    assert (event.fatal, event.phase) == (False, "checkpoint_save")


# -- places


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.sampled_from(["", "step 1", "显存 10%", "a\rb\rc", "\x1b[36m(Actor pid=3)\x1b[0m x", "x" * 700]), max_size=6),
    st.sampled_from(
        ["", "  3%|3         | 12/400 [00:31<16:20,  2.5s/it]", "[rank1]: ", "显存: ", "2025-03-14 11:07:52,318 - ERROR - x - "]
    ),
)
def test_the_place_of_a_message_is_true(above: list[str], before: str) -> None:
    """Line and column point at the exception, whatever stands above and before it; the witness's text stands on that line."""
    text = "\n".join([*above, f"{before}RuntimeError: {message()}", "bye"])
    witness = only(read(text)).evidence[0]
    line = text.split("\n")[witness.line - 1]
    assert (witness.source, witness.line, line[witness.column - 1 :][:13]) == ("0.log", len(above) + 1, "RuntimeError:")
    assert witness.text in line
    assert len(witness.text) <= 500


@for_each(
    "wrap",
    [
        "> {}",
        "03: [rank0]: {}",
        "gpu-q-13: {}",
        "\x1b[36m(WorkerDict pid=9120, ip=10.0.0.7)\x1b[0m {}",
        "(EngineCore_DP0 pid=4121) ERROR 03-02 11:08:51 [core.py:842] {}",
        "[1,3]<stderr>:{}",
        "[default3]:{}",
        "2026-05-06T10:11:12.131419002Z stderr F {}",
        "[2024-05-06 10:11:12,345] [ERROR] [train.py:316:main] {}",
        "E1209 17:24:09.118000 4100 torch/api.py:869] {}",
        "worker-1  | {}",
        '{{"log": "{}\\n", "stream": "stderr"}}',
    ],
)
def test_frames_and_figures_under_every_prefix(wrap: str) -> None:
    """What launchers, loggers and chats put before each line is peeled off."""
    lines = [*LOSS, f"torch.OutOfMemoryError: {message()}"]
    if "log" in wrap:
        lines = [line.replace('"', '\\"') for line in lines]
    event = only(read("\n".join(wrap.format(line) for line in lines)))
    assert (event.phase, len(event.frames), str(event.allocated), event.exception) == ("loss", 3, "23.51 GiB", "torch.OutOfMemoryError")


def test_a_box_of_rich_is_a_traceback() -> None:
    """Axolotl and torchtune print frames in a box and the message below it, wrapped."""
    box = [
        "╭───────────────────── Traceback (most recent call last) ──────────────────────╮",
        "│ /workspace/axolotl/train.py:123 in train                                     │",
        "│   122 │   model.train()                                                      │",
        "│ ❱ 123 │   loss.backward()                                                    │",
        "╰──────────────────────────────────────────────────────────────────────────────╯",
        "OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. GPU 0 has a ",
        "total capacity of 23.65 GiB of which 1.02 GiB is free.",
    ]
    event = only(read("\n".join(box)))
    assert [(frame.function, frame.statement) for frame in event.frames] == [("train", "loss.backward()")]
    assert (event.phase, str(event.capacity)) == ("backward", "23.65 GiB")


# -- phases


@for_each(
    "frames, phase",
    [
        ([("transformers/modeling_utils.py", "from_pretrained", ") = cls._load_pretrained_model(")], "model_load"),
        ([("deepspeed/runtime/engine.py", "_configure_zero_optimizer", "optimizer = DeepSpeedZeroOptimizer_Stage3(")], "init"),
        ([("torch/nn/parallel/distributed.py", "_ddp_init_helper", "self.reducer = dist.Reducer(")], "init"),
        ([("x/train.py", "main", "model, optimizer = accelerator.prepare(model, optimizer)"), ("x.py", "<genexpr>", "x")], "init"),
        ([("torch/utils/data/_utils/pin_memory.py", "_pin_memory_loop", "data = pin_memory(data)")], "dataset"),
        ([("transformers/models/qwen2/modeling_qwen2.py", "forward", "down_proj = self.down_proj(x)")], "forward"),
        (
            [
                ("transformers/models/llama/modeling_llama.py", "forward", "attn_weights = nn.functional.softmax(attn_weights, dim=-1)"),
                ("torch/nn/functional.py", "softmax", "ret = input.softmax(dim, dtype=dtype)"),
            ],
            "attention",
        ),
        (
            [
                ("openrlhf/models/utils.py", "log_probs_from_logits", "F.log_softmax(logits)"),
                ("torch/nn/functional.py", "log_softmax", "x"),
            ],
            "loss",
        ),
        ([("torch/nn/functional.py", "softmax", "ret = input.softmax(dim)")], "unknown"),  # of attention, of sampling, of the loss
        (
            [
                ("my/trainer.py", "policy_step", "probs = F.softmax(logits, dim=-1)"),
                ("torch/nn/functional.py", "softmax", "ret = input.softmax(dim)"),
            ],
            "loss",
        ),
        ([("torch/autograd/graph.py", "_engine_run_backward", "return Variable._execution_engine.run_backward(")], "backward"),
        ([("torch/optim/adamw.py", "_multi_tensor_adamw", "torch._foreach_sqrt(x)")], "optimizer_step"),
        ([("deepspeed/runtime/zero/partition_parameters.py", "all_gather_coalesced", "param_buffer = torch.empty(")], "all_gather"),
        (
            [
                ("openrlhf/trainer/ppo_utils/experience_maker.py", "make_experience_list", "dist.broadcast_object_list([rollout_samples])"),
                ("torch/distributed/distributed_c10d.py", "_object_to_tensor", "byte_tensor = torch.ByteTensor(byte_storage).to(device)"),
            ],
            "generation",
        ),
        (
            [
                ("transformers/trainer.py", "evaluation_loop", "losses, logits, labels = self.prediction_step("),
                ("transformers/models/llama/modeling_llama.py", "forward", "logits = self.lm_head(hidden_states)"),
            ],
            "eval",
        ),
        (
            [("transformers/trainer.py", "_save_checkpoint", "self.save_model()"), ("torch/nn/modules/module.py", "state_dict", "x")],
            "checkpoint_save",
        ),
        ([("vllm/device_allocator/cumem.py", "wake_up", "create_and_map(handle)")], "weight_sync"),
        ([("torch/_inductor/compile_fx.py", "compile_fx", "return inner_compile(")], "compile"),
        (
            [
                ("torch/autograd/graph.py", "_engine_run_backward", "return Variable._execution_engine.run_backward("),
                ("torch/_inductor/output_code.py", "__call__", "return self.current_callable(inputs)"),
                ("torch/_inductor/utils.py", "run", "return model(new_inputs)"),
                ("/tmp/torchinductor_root/bz/cbz3.py", "call", "buf7 = empty_strided_cuda((262208, 2560), (2560, 1), torch.float32)"),
            ],
            "backward",
        ),
    ],
)
def test_the_phase_of_a_traceback(frames: list[tuple[str, str, str]], phase: str) -> None:
    """The innermost frame that means something speaks; frames further out may change what it says."""
    start = ("train.py", "main", "trainer.train()")
    assert only(read("\n".join([*traceback(start, *frames), f"RuntimeError: {message()}"]))).phase == phase


@for_each(
    "frame, role",
    [
        (("verl/workers/actor/dp_actor.py", "update_policy", "loss.backward()"), "actor"),
        (("verl/workers/actor/dp_actor.py", "compute_log_prob", "x"), None),  # the reference runs it as well
        (("verl/workers/critic/dp_critic.py", "update_critic", "loss.backward()"), "critic"),
        (("openrlhf/trainer/ray/ppo_critic.py", "training_step", "x"), "critic"),
        (("vllm/worker/worker.py", "execute_model", "x"), "engine"),
        (("vllm/model_executor/models/qwen2_vl.py", "forward", "output = apply_rotary_emb(t_, cos, sin)"), "engine"),
    ],
)
def test_the_role_of_a_process_that_nobody_names(frame: tuple[str, str, str], role: str | None) -> None:
    """Code that only one role runs tells it; the inner frames are torch's."""
    inner = [("flash_attn/layers/rotary.py", "forward", "x"), ("torch/autograd/function.py", "apply", "x")]
    assert only(read("\n".join([*traceback(frame, *inner), f"RuntimeError: {message()}"]))).role == role


@for_each(
    "above, phase",
    [
        (["Loading checkpoint shards:  75%|###   | 6/8 [00:08<00:02, 1.40s/it]"], "model_load"),
        (["Loading checkpoint shards: 100%|######| 8/8 [00:08<00:00, 1.40s/it]"], "unknown"),
        (["***** Running Evaluation *****", " 48%|#   | 31/64 [00:43<00:46, 1.40s/it]"], "eval"),
        (["***** Running Evaluation *****", "{'eval_loss': 2.3871}"], "unknown"),
        (["| INFO | fairseq.trainer | Preparing to load checkpoint c/checkpoint_last.pt"], "model_load"),
        (["Preparing to load checkpoint c/last.pt", "No existing checkpoint found c/last.pt"], "unknown"),
        (["Saving model checkpoint to out/checkpoint-5"], "checkpoint_save"),
        (["{'train_runtime': 23328.5, 'epoch': 1.0}", "100%|##| 143/143 [6:28:47<00:00, 163.1s/it]"], "checkpoint_save"),
        (["{'train_runtime': 23328.5, 'epoch': 1.0}", "***** train metrics *****"], "unknown"),
        (["[INFO] [torch_checkpoint_engine.py:21:save] [Torch] Saving out/global_step5/mp_rank_00_model_states.pt..."], "checkpoint_save"),
        (["Saving model checkpoint to out/checkpoint-5", "  1%|#   | 31/64 [00:43<00:46, 1.40s/it]"], "unknown"),
    ],
)
def test_the_phase_without_frames_is_that_of_the_last_lines(above: list[str], phase: str) -> None:
    """A bare message takes its phase from what the job said it was doing, as long as it was still doing it."""
    assert only(read("\n".join([*above, "torch.OutOfMemoryError: CUDA out of memory."]))).phase == phase


# -- other families

KERNEL = "[1182734.551203] Out of memory: Killed process 48213 (python) total-vm:14kB, anon-rss:742391808kB"
FAMILIES = [
    ("RuntimeError: CUDA error: out of memory", "cuda_driver", "oom"),
    ("CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:62", "cuda_driver", "oom"),
    ("numba.cuda.cudadrv.driver.CudaAPIError: [2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY", "cuda_driver", "oom"),
    ("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", "cublas", "oom"),
    ("RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED", "cudnn", "oom"),
    ("node0:33:34 [0] include/alloc.h:205 NCCL WARN Cuda failure 2 'out of memory'", "nccl", "oom"),
    (
        "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 147456, Hardware limit: 101376.",
        "triton_shared",
        "lookalike",
    ),
    ("ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`", "vllm_kv", "oom"),
    ("[118.55] Memory cgroup out of memory: Killed process 871263 (pt_main_thread) total-vm:1kB, anon-rss:9kB", "cgroup_oom", "oom"),
    (KERNEL, "host_oom_killer", "oom"),
    ("slurmstepd: error: Detected 3 oom_kill events in StepId=4417223.0. Some of the step tasks have been OOM Killed.", "slurm_oom", "oom"),
    ("(raylet) 2 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed", "ray_oom", "oom"),
    (
        "RuntimeError: DataLoader worker (pid 1224) is killed by signal: Bus error. It is possible that workers are out of shared memory.",
        "dataloader_shm",
        "oom",
    ),
    ("RuntimeError: DataLoader worker (pid 1224) is killed by signal: Killed. ", "host_oom_killer", "suspected"),
    ("Killed", "host_oom_killer", "suspected"),
    ("command terminated with exit code 137", "host_oom_killer", "suspected"),
    ("[ERROR] [launch.py:322:sigkill_handler] ['python', 'train.py'] exits with return code = -9", "host_oom_killer", "suspected"),
    (
        "RuntimeError: [enforce fail at alloc_cpu.cpp:83] . DefaultCPUAllocator: can't allocate memory: you tried to allocate 24 bytes.",
        "cpu_allocator",
        "oom",
    ),
    ("numpy.core._exceptions._ArrayMemoryError: Unable to allocate 149. GiB for an array with shape (9,)", "python_memory", "oom"),
    ("cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 8,589,934,592 bytes (allocated so far: 16 bytes).", "cupy", "oom"),
]


@for_each("line, family, status", FAMILIES)
def test_families(line: str, family: str, status: str) -> None:
    """Each kind of shortage has its own word, and a kill without a witness is suspected only."""
    event = only(read(f"step 1\n{line}\nbye\n"))
    assert (event.family, event.status) == (family, status)


def test_pinned_memory_is_told_from_the_card() -> None:
    """A bare runtime error below a pin_memory frame is host memory."""
    frames = traceback(("torch/utils/data/_utils/pin_memory.py", "pin_memory", "return data.pin_memory()"))
    assert only(read("\n".join([*frames, "RuntimeError: CUDA error: out of memory"]))).family == "pinned_host"


def test_one_death_has_one_event() -> None:
    """Launcher, shell and kernel each have a word for it; the kernel's is the proof."""
    lines = ["torch.distributed.elastic: [ERROR] failed (exitcode: -9) local_rank: 0", "Killed", KERNEL]
    event = only(read("\n".join(lines)))
    assert (event.family, event.status, event.pid, len(event.evidence)) == ("host_oom_killer", "oom", 48213, 3)


def test_a_time_limit_is_no_shortage() -> None:
    """Schedulers kill with the same signal, and say why."""
    event = only(read("slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-01 DUE TO TIME LIMIT ***\nKilled\n"))
    assert (event.status, event.reason) == ("lookalike", "time_limit")


def test_the_report_of_ray_is_read_whole() -> None:
    """Node, worker and the table of the largest processes; its GB are binary."""
    lines = [
        "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.",
        (
            "Memory on the node (IP: 10.0.0.7, ID: 3f1c) where the task (actor ID: 9a2d, name=WorkerDict, pid=20711, memory used=233.40GB)"
            " was running was 1920.61GB / 2015.02GB (0.953147), which exceeds the memory usage threshold of 0.95."
        ),
        "Top 10 memory users:",
        "PID\tMEM(GB)\tCOMMAND",
        "20711\t233.40\tray::WorkerDict.actor_rollout_save_checkpoint",
        "20712\t232.95\tray::WorkerDict.actor_rollout_save_checkpoint",
    ]
    event = only(read("\n".join(lines)))
    assert (event.family, event.phase, event.role, event.pid, str(event.capacity)) == (
        "ray_oom",
        "checkpoint_save",
        "actor",
        20711,
        "2015.02 GB",
    )
    assert event.process_in_use is not None
    assert event.process_in_use.bytes == round(233.40 * 2**30)
    assert [other.pid for other in event.other_processes] == [20711, 20712]


# -- anything


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_nothing_that_a_log_contains_raises(data: st.DataObject) -> None:
    """Strangers' logs: any bytes, whole and broken messages among them, give a reading whose places are true."""
    broken = [
        *(line.encode() for line, _, _ in FAMILIES),
        *("\n".join([*LOSS, f"torch.OutOfMemoryError: {message()}"]).encode()[: data.draw(st.integers(0, 900))],),
        *(
            b"Max_MA 1.2.3 GB",
            b"CPU Virtual Memory:  used = 1.2 GB, percent = 0.0%",
            b"Model config X {\n",
            b"+ torchrun --nproc_per_node ",
        ),
        *(b"torch==2.", b"GPU 0: NVIDIA", b"[rank99999999]: ", b'{"log":"', b"\x1b[", b"\r", b"\n", b"\0" * 9, b"9" * 5000, b" " * 3000),
    ]
    raw = b"".join(data.draw(st.lists(st.one_of(st.sampled_from(broken), st.binary(max_size=40)), max_size=12)))
    reading = read(raw)
    lines = raw.decode("utf-8", "replace").split("\n")
    for witness in [*(place for event in reading.events for place in event.evidence), *(fact.witness for fact in reading.facts)]:
        assert raw[:2] in (b"\xff\xfe", b"\xfe\xff") or witness.text in lines[witness.line - 1]


@for_each("raw", [b"", b"\0" * 100_000, bytes(range(256)) * 400, b"x" * 5_000_000, b"\n" * 100_000])
def test_garbage_is_no_failure(raw: bytes) -> None:
    """Empty, NUL-filled and binary files, a line of 5 MB: read in no time, nothing found."""
    assert read(raw).events == ()


@for_each(
    "raw",
    [
        *(b"x," + blank * 100_000 + b"torch 2.5.1" for blank in (b" ", b"- ", b"\t")),
        *(unit * (300_000 // len(unit)) for unit in (b"9", b"a-", b"a--", b"/a", b"|  ", b"models--", b"[", b"(A pid=")),
        *(unit * (300_000 // len(unit)) for unit in (b"%|", b"1/", b"\\n", b"torch ")),
        b"Killed".join([b"\\n"] * 3000),
        b"CUDA out of memory. Tried to allocate " * 3000,
        b"MemoryError: Unable to allocate " * 3000,
        b"  File \"a.py\", line 1, in f\n" * 5000 + b"RuntimeError: CUDA out of memory.",
        b"model loading configuration file " + b"/a" * 50_000,
    ],
)  # fmt: skip
def test_no_line_takes_long(raw: bytes) -> None:
    """A line that some pattern could chew on for minutes is read in a moment: triage and the web page are open doors."""
    with within(3):
        read(raw)


@pytest.mark.parametrize(
    "place",
    [
        "/usr/lib/x/loss_utils.py in ForCausalLMLoss(logits, labels, **kwargs)",
        "File /usr/lib/x/loss_utils.py:36, in ForCausalLMLoss(logits, labels)",
    ],
)
def test_a_notebook_points_at_the_line_that_failed(place: str) -> None:
    """IPython prints source around it; Colab's older form has the number only beside the arrow."""
    source = [
        "     34 ) -> torch.Tensor:",
        "     35     # Upcast to float",
        "---> 36     logits = logits.float()",
        "     37     labels = labels",
        "",
    ]
    found = only(
        read(
            "\n".join(
                ["<ipython-input-14> in <cell line: 1>()", "----> 1 trainer.train()", "", place, *source, f"OutOfMemoryError: {message()}"]
            )
        )
    )
    assert [(frame.line, frame.statement) for frame in found.frames] == [(1, "trainer.train()"), (36, "logits = logits.float()")]
    assert found.frames[1].function == "ForCausalLMLoss"


@for_each(
    "above, loading",
    [
        (["Loading checkpoint shards: 100%|######| 8/8 [00:08<00:00, 1.40s/it]"], True),
        (["Loading checkpoint shards:  75%|####  | 6/8 [00:08<00:02, 1.40s/it]"], True),
        (["Loading checkpoint shards: 100%|######| 8/8 [00:08<00:00, 1.40s/it]", "  1%|#   | 31/64 [00:43<00:46, 1.40s/it]"], None),
        (["Loading checkpoint shards: 100%|######| 8/8 [00:08<00:00, 1.40s/it]", "Time to load cpu_adam op: 2.3 seconds"], False),
        ([], None),
    ],
)
def test_a_load_that_has_just_ended_may_be_what_filled_the_memory(above: list[str], loading: bool | None) -> None:
    facts = {fact.name: fact.value for fact in read("\n".join([*above, "train.sh: line 3: 4120 Killed    python train.py"])).facts}
    assert facts.get("log.loading") is loading


def test_memory_that_segments_map_by_the_driver_is_torchs_own() -> None:
    """With expandable segments torch asks the driver, whose message has no sizes; weights that are quantised on their way are loaded."""
    frame = "File ~/env/lib/python3.11/site-packages/bitsandbytes/nn/modules.py:296, in Params4bit._quantize(self, device)"
    source = ["    295 w = self.data", "--> 296 w_4bit, state = quantize_4bit(w)", ""]
    facts = {fact.name: fact.value for fact in read("\n".join([frame, *source, "RuntimeError: CUDA driver error: out of memory"])).facts}
    assert facts["log.sizes_unprinted"] is True
    assert facts["log.phase"] == "model_load"
