"""Tables of processes beside a kill: which process holds the node's memory, and whose role the killed one had."""

from __future__ import annotations

import pytest
from books_of_logs import book, plain
from collected import for_each

KILL = (
    "Memory on the node (IP: 10.1.2.3, ID: ab12) where the task (actor ID: 65, name={name}, pid=5315, memory used={used}GB) was running "
    "was 445.48GB / 468.75GB (0.950365), which exceeds the memory usage threshold of 0.95. Ray killed this worker (ID: 38) because it was "
    "the most recently scheduled task"
)
HEAD = "Top 10 memory users:\nPID\tMEM(GB)\tCOMMAND\n"


def test_the_role_is_that_of_the_process_that_was_killed() -> None:
    """Ray names the killed actor; the rows of its table are other actors, with roles and phases of their own."""
    rows = "5312\t211.81\tray::ActorModelRayActor\n5313\t202.20\tray::CriticModelRayActor.init_model\n5315\t1.67\tray::RewardModelRayActor"
    known = book(KILL.format(name="RewardModelRayActor.__init__", used="1.67"), HEAD + rows)
    assert (known.value("log.role"), known.value("log.phase")) == ("reward", None)
    assert [plain(known.value(f"log.largest_{what}")) for what in ("process", "name")] == ["211.81 GB", "ray::ActorModelRayActor"]


def test_processes_of_one_kind_are_counted_together() -> None:
    """A method of an actor is a part of its name, not another kind of process."""
    rows = (
        "5315\t56.57\tray::WorkerDict.actor_rollout_generate_sequences\n5316\t56.36\tray::WorkerDict.actor_rollout_generate_sequences\n"
        "5317\t56.00\tray::WorkerDict\n77\t0.83\t/opt/gcs_server --lo"
    )
    known = book(KILL.format(name="abcWorkerDict_0:3:WorkerDict.__init__", used="56.57"), HEAD + rows)
    held = known.size("log.alike_held")
    assert known.value("log.alike") == 3
    assert held is not None
    assert round(held.bytes / 2**30, 2) == 168.93


def test_a_name_with_commas() -> None:
    """A launcher that names its tasks as it likes: process number and memory are the killed one's all the same."""
    known = book(KILL.format(name="head, rank=0,", used="1.93"))
    assert plain(known.value("log.process_in_use")) == "1.93 GB"


def test_what_ray_ends_after_the_training_is_over_did_not_live_on() -> None:
    """Ray ends workers of the job, which may still save; the kernel's victim after the end may be any helper."""
    ended = "{'train_runtime': 23328.5, 'train_samples_per_second': 0.391, 'train_loss': 0.628, 'epoch': 1.0}"
    from diagnose.parse import log_reader
    from diagnose.scan import log_scan
    from diagnose.scan.source import Source

    read = log_reader.read_logs([log_scan.scan(Source.text(f"{ended}\n{KILL.format(name='train', used='1.93')}\n"))])
    assert [(event.family, event.fatal) for event in read.events] == [("ray_oom", True)]


def test_the_kernels_table_names_its_processes() -> None:
    """One of two processes of a name holds nearly all that both hold."""
    table = (
        "[1.1] [ 202779]  1000 202779 274650088 243385180 1957441536     7930          -998 python\n"
        "[1.2] [ 202780]  1000 202780 33475461  2529507 25161728     3314          -998 python\n"
        "[1.3] [ 206183]  1000 206183      642      141    49152        0          -998 sh\n"
        "[1.4] Memory cgroup out of memory: Killed process 202779 (python) total-vm:1098600352kB, anon-rss:973461112kB, file-rss:79608kB"
    )
    known = book(*table.splitlines())
    assert [plain(known.value(f"log.{name}")) for name in ("largest_name", "alike")] == ["python", 2]


@for_each(
    "label, step",
    [("Compute log probs", None), ("Train mini-batches", None), ("Update policy", None), ("Running step", 244)],
)
def test_a_bar_within_a_step_counts_no_steps(label: str, step: int | None) -> None:
    """EasyR1 draws bars over the micro batches of each part of a step."""
    bar = f"{label}:  76%|███████▍  | 244/320 [08:56<02:05,  1.65s/it]"
    assert book(bar, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.").value("log.step") == step


FRAME = 'Traceback (most recent call last):\n  File "{file}", line 10, in {function}\n    {statement}\n'
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB."


@for_each(
    "file, framework",
    [
        ("/verl/verl/workers/fsdp_workers.py", "verl"),
        ("/code/slime/slime/backends/megatron_utils/actor.py", "slime"),
        ("/env/openrlhf/trainer/ppo_trainer.py", "openrlhf"),
        ("/env/site-packages/swift/llm/train/sft.py", "swift"),
        ("/env/site-packages/trl/trainer/grpo_trainer.py", None),
        ("/root/Megatron-LM/megatron/core/transformer/module.py", None),
    ],
)
def test_the_framework_whose_code_fails(file: str, framework: str | None) -> None:
    """Libraries that train for others name no framework."""
    assert book(FRAME.format(file=file, function="f", statement="g()") + OOM).value("train.framework") == framework


@for_each(
    "file, function, statement, name, value",
    [
        ("megatron/core/transformer/module.py", "float_conversion", "val = val.float()", "phase", "loss"),
        ("torch/optim/adamw.py", "_multi_tensor_adamw", "root = torch._foreach_sqrt(squares)", "doing", "update_in_lists"),
        ("torch/optim/adamw.py", "_multi_tensor_adamw", "torch._foreach_add_(steps, 1)", "doing", None),
        ("deepspeed/runtime/zero/partition_parameters.py", "__enter__", "self.params[0].all_gather()", "doing", "gather_parameters"),
        ("train.py", "main", "accelerator.load_state(path)", "doing", "load_optimizer"),
        ("train.py", "main", "accelerator.load_state(path)", "resumed", True),
    ],
)
def test_what_frames_show(file: str, function: str, statement: str, name: str, value: object) -> None:
    assert book(FRAME.format(file=f"/env/{file}", function=function, statement=statement) + OOM).value(f"log.{name}") == value


def test_the_pool_of_an_engine_is_refused_whoever_says_it() -> None:
    """Ray puts the name of the engine's actor before the line."""
    assert (
        book("(LLMRayActor pid=7) CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:62").value("rollout.pool_refused")
        is True
    )


@pytest.mark.parametrize("code", ["PI_ERROR_OUT_OF_DEVICE_MEMORY", "ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY"])
def test_what_intels_runtimes_say(code: str) -> None:
    """SYCL's older plugin interface and Level Zero below it, as intel_extension_for_pytorch passes them on."""
    assert book(f"RuntimeError: Native API failed. Native API returns: -39 ({code})").value("log.family") == "torch_xpu"


@pytest.mark.parametrize("before", ["", "Failed to replace a layer with the exception: "])
def test_one_figure_behind_other_words(before: str) -> None:
    """Libraries put torch's message behind words of their own, and people paste it without its class."""
    assert plain(book(f"{before}CUDA out of memory. Tried to allocate 112.00 MiB.").value("log.requested")) == "112.00 MiB"
